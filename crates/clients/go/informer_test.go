// Informers of each kind, and lists in pages, on a server that stays.

package clients

import (
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"sync"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/dynamic/dynamicinformer"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/metadata/metadatainformer"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"
)

// queries of a client, in order.
type queries struct {
	mutex sync.Mutex
	all   []url.Values
}

func (q *queries) watch(config *rest.Config) *rest.Config {
	config = rest.CopyConfig(config)
	config.Wrap(func(next http.RoundTripper) http.RoundTripper {
		return roundTripper(func(request *http.Request) (*http.Response, error) {
			if request.Method == http.MethodGet {
				q.mutex.Lock()
				q.all = append(q.all, request.URL.Query())
				q.mutex.Unlock()
			}
			return next.RoundTrip(request)
		})
	})
	return config
}

// onlyWatchLists fails unless each read was a watch and the first one asked for the initial events.
func (q *queries) onlyWatchLists(c *clients) {
	c.Helper()
	q.mutex.Lock()
	defer q.mutex.Unlock()
	if len(q.all) == 0 || q.all[0].Get("sendInitialEvents") != "true" {
		c.Fatalf("not a watch list first: %v", q.all)
	}
	for _, query := range q.all {
		if query.Get("watch") != "true" && query.Get("watch") != "1" && !detectsInconsistency(query) {
			c.Fatalf("fell back to a list: %v", query)
		}
	}
}

// detectsInconsistency tells the list that client-go compares its watch list with, when the environment asks for it.
func detectsInconsistency(query url.Values) bool {
	return query.Get("resourceVersionMatch") == "Exact"
}

type roundTripper func(*http.Request) (*http.Response, error)

func (f roundTripper) RoundTrip(request *http.Request) (*http.Response, error) { return f(request) }

func mode(object any) string {
	value, _, _ := unstructured.NestedString(object.(*unstructured.Unstructured).Object, "data", "mode")
	return " " + value
}

func TestDynamicInformer(t *testing.T) {
	c := start(t, "dynamic-informer")
	maps := c.dynamic.Resource(configMaps).Namespace(c.namespace)
	for _, name := range []string{"a", "b"} {
		_, err := maps.Create(c.ctx, configMap(name, map[string]any{"mode": "one"}), metav1.CreateOptions{})
		must(t, err)
	}
	seen := &queries{}
	client, err := dynamic.NewForConfig(seen.watch(c.config))
	must(t, err)
	factory := dynamicinformer.NewFilteredDynamicSharedInformerFactory(client, 0, c.namespace, here)
	told := &record{}
	informer := factory.ForResource(configMaps).Informer()
	_, err = informer.AddEventHandler(told.handler(mode))
	must(t, err)
	factory.Start(c.ctx.Done())
	if !cache.WaitForCacheSync(c.ctx.Done(), informer.HasSynced) {
		t.Fatal("not synced")
	}
	c.until("the initial events", func() (bool, string) {
		text := told.text()
		return text == "initial a one\ninitial b one", text
	})
	_, err = maps.Create(c.ctx, configMap("c", map[string]any{"mode": "one"}), metav1.CreateOptions{})
	must(t, err)
	_, err = maps.Patch(c.ctx, "a", types.MergePatchType, []byte(`{"data":{"mode":"two"}}`), metav1.PatchOptions{})
	must(t, err)
	_, err = maps.Patch(c.ctx, "b", types.JSONPatchType, []byte(`[{"op":"remove","path":"/metadata/labels/made"}]`), metav1.PatchOptions{})
	must(t, err)
	must(t, maps.Delete(c.ctx, "c", metav1.DeleteOptions{}))
	want := "initial a one\ninitial b one\nadd c one\nupdate a two\ndelete b\ndelete c"
	c.until("the later events", func() (bool, string) {
		text := told.text()
		return text == want, text
	})
	objects, err := factory.ForResource(configMaps).Lister().ByNamespace(c.namespace).List(labels.Everything())
	must(t, err)
	if len(objects) != 1 {
		t.Fatalf("the lister holds %v", objects)
	}
	seen.onlyWatchLists(c)
}

func TestMetadataInformer(t *testing.T) {
	c := start(t, "metadata-informer")
	maps := c.dynamic.Resource(configMaps).Namespace(c.namespace)
	_, err := maps.Create(c.ctx, configMap("a", map[string]any{"mode": "one"}), metav1.CreateOptions{})
	must(t, err)
	seen := &queries{}
	client, err := metadata.NewForConfig(seen.watch(c.config))
	must(t, err)
	factory := metadatainformer.NewFilteredSharedInformerFactory(client, 0, c.namespace, here)
	told := &record{}
	informer := factory.ForResource(configMaps).Informer()
	_, err = informer.AddEventHandler(told.handler(func(object any) string {
		return " " + object.(*metav1.PartialObjectMetadata).Labels["made"]
	}))
	must(t, err)
	factory.Start(c.ctx.Done())
	if !cache.WaitForCacheSync(c.ctx.Done(), informer.HasSynced) {
		t.Fatal("not synced")
	}
	_, err = c.metadata.Resource(configMaps).Namespace(c.namespace).Patch(
		c.ctx, "a", types.MergePatchType, []byte(`{"metadata":{"annotations":{"k":"v"}}}`), metav1.PatchOptions{})
	must(t, err)
	must(t, c.metadata.Resource(configMaps).Namespace(c.namespace).Delete(c.ctx, "a", metav1.DeleteOptions{}))
	want := "initial a here\nupdate a here\ndelete a"
	c.until("the events", func() (bool, string) {
		text := told.text()
		return text == want, text
	})
	list, err := c.metadata.Resource(configMaps).Namespace(c.namespace).List(c.ctx, metav1.ListOptions{LabelSelector: "made=here"})
	must(t, err)
	if len(list.Items) != 0 || list.ResourceVersion == "" {
		t.Fatalf("the list is %v", list)
	}
	seen.onlyWatchLists(c)
}

func TestTypedInformerInProtobufOrJSON(t *testing.T) {
	for _, content := range []string{"application/json", "application/vnd.kubernetes.protobuf,application/json"} {
		c := start(t, "typed-"+map[bool]string{true: "json", false: "proto"}[content == "application/json"])
		config := rest.CopyConfig(c.config)
		config.AcceptContentTypes = content
		client := newTyped(c, config)
		factory := informers.NewSharedInformerFactoryWithOptions(client, 0, informers.WithNamespace(c.namespace), informers.WithTweakListOptions(here))
		maps := factory.Core().V1().ConfigMaps()
		informer := maps.Informer()
		factory.Start(c.ctx.Done())
		if !cache.WaitForCacheSync(c.ctx.Done(), informer.HasSynced) {
			t.Fatal("not synced")
		}
		made := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{GenerateName: "made-", Labels: map[string]string{"made": "here"}}, Data: map[string]string{"k": "v"}}
		made, err := client.CoreV1().ConfigMaps(c.namespace).Create(c.ctx, made, metav1.CreateOptions{})
		must(t, err)
		c.until("the object is in the cache", func() (bool, string) {
			cached, err := maps.Lister().ConfigMaps(c.namespace).Get(made.Name)
			return err == nil && cached.Data["k"] == "v" && cached.UID == made.UID, fmt.Sprint(cached, err)
		})
	}
}

func TestTwoHundredObjectsInPages(t *testing.T) {
	c := start(t, "pages")
	maps := c.dynamic.Resource(configMaps).Namespace(c.namespace)
	want := []string{}
	for at := range 200 {
		name := fmt.Sprintf("m-%03d", at)
		_, err := maps.Create(c.ctx, configMap(name, map[string]any{"mode": "one"}), metav1.CreateOptions{})
		must(t, err)
		want = append(want, name)
	}
	got := []string{}
	options := metav1.ListOptions{Limit: 33, LabelSelector: "made=here"}
	version := ""
	for {
		page, err := maps.List(c.ctx, options)
		must(t, err)
		for _, item := range page.Items {
			got = append(got, item.GetName())
		}
		if version == "" {
			version = page.GetResourceVersion()
			// Made between two pages: the rest shows the state of the first.
			_, err = maps.Create(c.ctx, configMap("m-100-late", map[string]any{"mode": "one"}), metav1.CreateOptions{})
			must(t, err)
		}
		if page.GetResourceVersion() != version {
			t.Fatalf("a page of %s, not %s", page.GetResourceVersion(), version)
		}
		if options.Continue = page.GetContinue(); options.Continue == "" {
			break
		}
	}
	if !slices.Equal(got, want) {
		t.Fatalf("got %d: %s", len(got), strings.Join(got, " "))
	}
}
