// A thousand lists at once, each in the ways in which a list can ask for what is current or needs not.

package clients

import (
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

const (
	// crowd of lists at once.
	crowd = 1000
	// listsRounds in each way; what the server asks etcd for by itself falls into some of them.
	listsRounds = 5
)

// Each round ends with an order: how the lists asked, and how many microseconds it took until all were answered.
func TestListsAtOnce(t *testing.T) {
	c := start(t, "at-once")
	maps := interests()[0]
	writer := c.dynamic.Resource(configMaps).Namespace(c.namespace)
	written := ""
	for number := range 20 {
		made, err := writer.Create(c.ctx, configMap(fmt.Sprintf("map-%d", number), nil), metav1.CreateOptions{})
		must(t, err)
		written = made.GetResourceVersion()
	}
	for _, way := range []struct{ name, query string }{
		{"consistent", "limit=500"},
		{"any", "resourceVersion=0"},
		{"not-older", "resourceVersionMatch=NotOlderThan&resourceVersion=" + written},
	} {
		for range listsRounds {
			c.ask("@begin")
			gate, failed := make(chan struct{}), make(chan error, crowd)
			var all sync.WaitGroup
			for range crowd {
				all.Go(func() {
					<-gate
					if err := c.list(maps, way.query); err != nil {
						failed <- err
					}
				})
			}
			began := time.Now()
			close(gate)
			all.Wait()
			took := time.Since(began)
			close(failed)
			for err := range failed {
				t.Fatalf("%s: %v", way.query, err)
			}
			c.ask(strings.Join([]string{"@asked", way.name, fmt.Sprint(took.Microseconds())}, " "))
		}
	}
}
