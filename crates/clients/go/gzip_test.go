// Answers in gzip. Go's transport asks for them with every request, and inflates what it gets: lists, and the events of a watch
// as they come.

package clients

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"
)

const zippedMaps = 300

// answers that came in gzip and were inflated by the transport, of watches and of other reads.
type inflated struct{ watches, others atomic.Int64 }

func (i *inflated) count(config *rest.Config) *rest.Config {
	config = rest.CopyConfig(config)
	config.Wrap(func(next http.RoundTripper) http.RoundTripper {
		return roundTripper(func(request *http.Request) (*http.Response, error) {
			response, err := next.RoundTrip(request)
			if err == nil && response.Uncompressed {
				if request.URL.Query().Has("watch") {
					i.watches.Add(1)
				} else {
					i.others.Add(1)
				}
			}
			return response, err
		})
	})
	return config
}

// open sends a GET; without an encoding the transport asks for gzip by itself.
func (c *clients) open(ctx context.Context, client *http.Client, path, encoding string) *http.Response {
	c.Helper()
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, c.config.Host+path, nil)
	must(c.T, err)
	request.Header.Set("Accept", "application/json")
	if encoding != "" {
		request.Header.Set("Accept-Encoding", encoding)
	}
	response, err := client.Do(request)
	must(c.T, err)
	c.T.Cleanup(func() { _ = response.Body.Close() })
	if response.StatusCode != http.StatusOK {
		c.Fatalf("%s: %s", path, response.Status)
	}
	return response
}

// sealed waits until the objects are at rest, in blocks.
func (c *clients) sealed() {
	c.Helper()
	if !c.isForebay() {
		return
	}
	const held = `forebay_watch_cache_held_bytes{group="",resource="configmaps",use="blocks"} `
	c.until("the maps are in blocks", func() (bool, string) {
		text, err := c.typed.Discovery().RESTClient().Get().AbsPath("/metrics").DoRaw(c.ctx)
		must(c.T, err)
		_, rest, _ := strings.Cut(string(text), held)
		value, _, _ := strings.Cut(rest, "\n")
		bytes, _ := strconv.Atoi(value)
		return bytes > 20_000, value
	})
}

func TestGzip(t *testing.T) {
	c := start(t, "gzip")
	maps := c.typed.CoreV1().ConfigMaps(c.namespace)
	for at := range zippedMaps {
		text := ""
		for line := range 60 {
			text += fmt.Sprintf("line %d of map %d: what every map says, and %x\n", line, at, at*line*7919)
		}
		made := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprintf("m-%03d", at), Labels: map[string]string{"made": "here"}}, Data: map[string]string{"text": text}}
		_, err := maps.Create(c.ctx, made, metav1.CreateOptions{})
		must(t, err)
	}
	c.sealed()
	client, err := rest.HTTPClientFor(c.config)
	must(t, err)
	path := "/api/v1/namespaces/" + c.namespace + "/configmaps"

	// A list: whole, and of what is at rest and what has just changed.
	for round := range 2 {
		list, err := maps.List(c.ctx, metav1.ListOptions{})
		must(t, err)
		exact := path + "?resourceVersionMatch=Exact&resourceVersion=" + list.ResourceVersion
		plain, err := io.ReadAll(c.open(c.ctx, client, exact, "identity").Body)
		must(t, err)
		response := c.open(c.ctx, client, exact, "")
		if !response.Uncompressed {
			t.Fatal("the list was not compressed")
		}
		zipped, err := io.ReadAll(response.Body)
		must(t, err)
		if !bytes.Equal(plain, zipped) {
			t.Fatalf("round %d: %d bytes in gzip, %d without", round, len(zipped), len(plain))
		}
		for at := 0; at < zippedMaps; at += 50 {
			touch(c, at, round)
		}
	}

	// A watch list: its end is read while nothing else comes, and so is each event after it.
	ctx, cancel := context.WithTimeout(c.ctx, limit)
	defer cancel()
	response := c.open(ctx, client, path+"?watch=1&sendInitialEvents=true&allowWatchBookmarks=true&resourceVersionMatch=NotOlderThan&labelSelector=made%3Dhere", "")
	if c.isForebay() && !response.Uncompressed {
		t.Fatal("the watch list was not compressed")
	}
	lines, added := bufio.NewReader(response.Body), 0
	next := func() (string, corev1.ConfigMap) {
		line, err := lines.ReadBytes('\n')
		must(t, err)
		var event struct {
			Type   string
			Object corev1.ConfigMap
		}
		must(t, json.Unmarshal(line, &event))
		return event.Type, event.Object
	}
	for kind := "ADDED"; kind == "ADDED"; added++ {
		var object corev1.ConfigMap
		kind, object = next()
		if kind != "ADDED" && (kind != "BOOKMARK" || object.Annotations[metav1.InitialEventsAnnotationKey] != "true") {
			t.Fatalf("%s %v", kind, object)
		}
	}
	if added != zippedMaps+1 {
		t.Fatalf("%d initial events and their end", added)
	}
	for at := range 3 {
		touch(c, at, 2)
		if kind, object := next(); kind != "MODIFIED" || object.Name != fmt.Sprintf("m-%03d", at) {
			t.Fatalf("%s %s", kind, object.Name)
		}
	}

	// An informer, with client-go's defaults.
	counted := &inflated{}
	factory := informers.NewSharedInformerFactoryWithOptions(newTyped(c, counted.count(c.config)), 0, informers.WithNamespace(c.namespace), informers.WithTweakListOptions(here))
	lister, informer := factory.Core().V1().ConfigMaps().Lister(), factory.Core().V1().ConfigMaps().Informer()
	factory.Start(c.ctx.Done())
	if !cache.WaitForCacheSync(c.ctx.Done(), informer.HasSynced) {
		t.Fatal("not synced")
	}
	if all, err := lister.List(labels.Everything()); err != nil || len(all) != zippedMaps {
		t.Fatalf("%d maps, %v", len(all), err)
	}
	touch(c, 7, 3)
	c.until("the informer has the change", func() (bool, string) {
		cached, err := lister.ConfigMaps(c.namespace).Get("m-007")
		must(t, err)
		return cached.Data["round"] == "3", cached.Data["round"]
	})
	if c.isForebay() && counted.watches.Load() == 0 {
		t.Fatalf("the informer's watch list was not compressed; %d others were", counted.others.Load())
	}
}

func touch(c *clients, at, round int) {
	c.Helper()
	patch := fmt.Sprintf(`{"data":{"round":"%d"}}`, round)
	_, err := c.typed.CoreV1().ConfigMaps(c.namespace).Patch(
		c.ctx, fmt.Sprintf("m-%03d", at), "application/merge-patch+json", []byte(patch), metav1.PatchOptions{})
	must(c.T, err)
}
