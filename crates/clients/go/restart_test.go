// Informers on a server that is killed and comes back.

package clients

import (
	"fmt"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic/dynamicinformer"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"
)

func newTyped(c *clients, config *rest.Config) kubernetes.Interface {
	c.Helper()
	client, err := kubernetes.NewForConfig(config)
	must(c.T, err)
	return client
}

// An informer outlives the server: nothing acknowledged is lost, and what comes after the restart is seen.
func TestInformerOutlivesTheServer(t *testing.T) {
	c := start(t, "outlives")
	maps := c.dynamic.Resource(configMaps).Namespace(c.namespace)
	factory := dynamicinformer.NewFilteredDynamicSharedInformerFactory(c.dynamic, 0, c.namespace, here)
	told := &record{}
	informer := factory.ForResource(configMaps).Informer()
	_, err := informer.AddEventHandler(told.handler(mode))
	must(t, err)
	factory.Start(c.ctx.Done())
	if !cache.WaitForCacheSync(c.ctx.Done(), informer.HasSynced) {
		t.Fatal("not synced")
	}
	_, err = maps.Create(c.ctx, configMap("before", map[string]any{"mode": "one"}), metav1.CreateOptions{})
	must(t, err)
	c.until("the first event", func() (bool, string) {
		text := told.text()
		return text == "add before one", text
	})
	// Acknowledged, and perhaps not seen by the informer yet.
	_, err = maps.Patch(c.ctx, "before", types.MergePatchType, []byte(`{"data":{"mode":"two"}}`), metav1.PatchOptions{})
	must(t, err)
	c.ask("@kill")
	c.ask("@start")
	kept, err := maps.Get(c.ctx, "before", metav1.GetOptions{})
	must(t, err)
	if mode(kept) != " two" {
		t.Fatalf("an acknowledged write is lost: %v", kept)
	}
	_, err = maps.Create(c.ctx, configMap("after", map[string]any{"mode": "one"}), metav1.CreateOptions{})
	must(t, err)
	must(t, maps.Delete(c.ctx, "before", metav1.DeleteOptions{}))
	c.until("the informer agrees with the server", func() (bool, string) {
		keys := informer.GetStore().ListKeys()
		return len(keys) == 1 && keys[0] == c.namespace+"/after", fmt.Sprint(keys, told.text())
	})
}
