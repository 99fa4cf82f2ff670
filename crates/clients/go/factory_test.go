// A factory of shared informers on a typed clientset: what its listers hold while others write, and after the server went
// and came back.

package clients

import (
	"context"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"
)

// reads counts a client's requests: lists, watches that begin with the state, and watches that go on from a revision.
type reads struct {
	mutex                      sync.Mutex
	lists, watchLists, resumed int
}

func (r *reads) count(config *rest.Config) *rest.Config {
	config = rest.CopyConfig(config)
	config.Wrap(func(next http.RoundTripper) http.RoundTripper {
		return roundTripper(func(request *http.Request) (*http.Response, error) {
			answer, err := next.RoundTrip(request)
			// What found no server has read nothing.
			if err == nil && answer.StatusCode == http.StatusOK && request.Method == http.MethodGet {
				r.add(request)
			}
			return answer, err
		})
	})
	return config
}

func (r *reads) add(request *http.Request) {
	query := request.URL.Query()
	watches, _ := strconv.ParseBool(query.Get("watch"))
	r.mutex.Lock()
	defer r.mutex.Unlock()
	switch {
	case !watches && detectsInconsistency(query):
	case !watches:
		r.lists++
	case query.Get("sendInitialEvents") == "true":
		r.watchLists++
	default:
		r.resumed++
	}
}

func (r *reads) text() string {
	r.mutex.Lock()
	defer r.mutex.Unlock()
	return fmt.Sprintf("%d lists, %d watch lists, %d resumed", r.lists, r.watchLists, r.resumed)
}

// reached tells whether an informer has seen everything up to a revision.
func reached(informer cache.SharedIndexInformer, revision string) (bool, string) {
	at := informer.LastSyncResourceVersion()
	have, err := strconv.ParseUint(at, 10, 64)
	want, wrong := strconv.ParseUint(revision, 10, 64)
	return err == nil && wrong == nil && have >= want, at + " of " + revision
}

func (c *clients) typedFor(config *rest.Config) kubernetes.Interface {
	c.Helper()
	client, err := kubernetes.NewForConfig(config)
	must(c.T, err)
	return client
}

// Three kinds through one factory, while a writer creates, changes and deletes: each lister ends with what a list tells.
func TestListersAgreeWithTheServerUnderAWriter(t *testing.T) {
	c := start(t, "factory-writer")
	counted := &reads{}
	client := c.typedFor(counted.count(c.config))
	factory := informers.NewSharedInformerFactoryWithOptions(client, 0, informers.WithNamespace(c.namespace), informers.WithTweakListOptions(here))
	maps, pods, deployments := factory.Core().V1().ConfigMaps(), factory.Core().V1().Pods(), factory.Apps().V1().Deployments()
	held := []cache.SharedIndexInformer{maps.Informer(), pods.Informer(), deployments.Informer()}
	factory.StartWithContext(c.ctx)
	if synced := factory.WaitForCacheSyncWithContext(c.ctx); synced.AsError() != nil {
		t.Fatal(synced.AsError())
	}
	for round := range 30 {
		name := fmt.Sprintf("m-%02d", round)
		_, err := c.typed.CoreV1().ConfigMaps(c.namespace).Create(c.ctx, &corev1.ConfigMap{
			ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{"made": "here"}}, Data: map[string]string{"round": "0"},
		}, metav1.CreateOptions{})
		must(t, err)
		_, err = c.typed.CoreV1().Pods(c.namespace).Create(c.ctx, &corev1.Pod{
			ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{"made": "here"}}, Spec: podSpec(),
		}, metav1.CreateOptions{})
		must(t, err)
		_, err = c.typed.AppsV1().Deployments(c.namespace).Create(c.ctx, deployment(name, 1), metav1.CreateOptions{})
		must(t, err)
		change := fmt.Appendf(nil, `{"metadata":{"annotations":{"round":"%d"}}}`, round)
		_, err = c.typed.CoreV1().Pods(c.namespace).Patch(c.ctx, name, types.MergePatchType, change, metav1.PatchOptions{})
		must(t, err)
		if round%3 == 0 {
			must(t, c.typed.CoreV1().Pods(c.namespace).Delete(c.ctx, name, metav1.DeleteOptions{}))
			must(t, c.typed.AppsV1().Deployments(c.namespace).Delete(c.ctx, name, metav1.DeleteOptions{}))
		}
	}
	c.until("the caches hold what lists tell", func() (bool, string) {
		for at, list := range []func() (map[string]string, error){
			func() (map[string]string, error) {
				return versions(c.typed.CoreV1().ConfigMaps(c.namespace).List(c.ctx, listHere()))
			},
			func() (map[string]string, error) {
				return versions(c.typed.CoreV1().Pods(c.namespace).List(c.ctx, listHere()))
			},
			func() (map[string]string, error) {
				return versions(c.typed.AppsV1().Deployments(c.namespace).List(c.ctx, listHere()))
			},
		} {
			want, err := list()
			must(t, err)
			got := map[string]string{}
			for _, object := range held[at].GetStore().List() {
				accessor, err := meta.Accessor(object)
				must(t, err)
				got[accessor.GetName()] = accessor.GetResourceVersion()
			}
			if fmt.Sprint(got) != fmt.Sprint(want) {
				return false, fmt.Sprintf("kind %d: %v, not %v", at, got, want)
			}
		}
		return true, ""
	})
	left, err := pods.Lister().Pods(c.namespace).List(labels.Everything())
	must(t, err)
	if len(left) != 20 {
		t.Fatalf("%d pods", len(left))
	}
	if counted.text() != "0 lists, 3 watch lists, 0 resumed" {
		t.Fatal(counted.text())
	}
}

func listHere() metav1.ListOptions { return metav1.ListOptions{LabelSelector: "made=here"} }

// versions of a list's objects, by name.
func versions(list runtime.Object, err error) (map[string]string, error) {
	all := map[string]string{}
	if err != nil {
		return nil, err
	}
	items, err := meta.ExtractList(list)
	for _, item := range items {
		accessor, err := meta.Accessor(item)
		if err != nil {
			return nil, err
		}
		all[accessor.GetName()] = accessor.GetResourceVersion()
	}
	return all, err
}

// A server that comes back on its port is asked for what came since, and not for everything again. kube-apiserver's cache
// begins anew and sends its informers back to a list, so that one is held only to ending with the same objects.
func TestInformersResumeAfterARestart(t *testing.T) {
	c := start(t, "factory-restart")
	counted := &reads{}
	client := c.typedFor(counted.count(c.config))
	factory := informers.NewSharedInformerFactoryWithOptions(client, 0, informers.WithNamespace(c.namespace), informers.WithTweakListOptions(here))
	maps, pods := factory.Core().V1().ConfigMaps(), factory.Core().V1().Pods()
	informers := []cache.SharedIndexInformer{maps.Informer(), pods.Informer()}
	told := &record{}
	_, err := maps.Informer().AddEventHandler(told.handler(func(object any) string { return " " + object.(*corev1.ConfigMap).Data["mode"] }))
	must(t, err)
	factory.StartWithContext(c.ctx)
	if synced := factory.WaitForCacheSyncWithContext(c.ctx); synced.AsError() != nil {
		t.Fatal(synced.AsError())
	}
	write := func(name string) {
		t.Helper()
		labels := map[string]string{"made": "here"}
		made, err := c.typed.CoreV1().ConfigMaps(c.namespace).Create(c.ctx, &corev1.ConfigMap{
			ObjectMeta: metav1.ObjectMeta{Name: name, Labels: labels}, Data: map[string]string{"mode": "one"},
		}, metav1.CreateOptions{})
		must(t, err)
		pod, err := c.typed.CoreV1().Pods(c.namespace).Create(c.ctx, &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: labels}, Spec: podSpec()}, metav1.CreateOptions{})
		must(t, err)
		for at, revision := range []string{made.ResourceVersion, pod.ResourceVersion} {
			c.until("an informer sees the write", func() (bool, string) { return reached(informers[at], revision) })
		}
	}
	// A watch that brought an event goes on; one that ends at once and empty would be begun anew.
	write("before")
	first := counted.text()
	if first != "0 lists, 2 watch lists, 0 resumed" {
		t.Fatal(first)
	}
	for _, name := range []string{"after", "later"} {
		c.ask("@kill")
		c.ask("@start")
		write(name)
	}
	c.until("the handler is told of each once", func() (bool, string) {
		text := told.text()
		if !c.isForebay() {
			// A list after a restart tells what was there as updated.
			text = strings.Join(slices.DeleteFunc(strings.Split(text, "\n"), func(line string) bool {
				return strings.HasPrefix(line, "update ")
			}), "\n")
		}
		return text == "add before one\nadd after one\nadd later one", text
	})
	if c.isForebay() && counted.text() != "0 lists, 2 watch lists, 4 resumed" {
		t.Fatalf("%s; before the restarts %s", counted.text(), first)
	}
}

// The typed client sends protobuf and takes what the server prefers of protobuf and JSON.
func TestTypedClientsSpeakProtobuf(t *testing.T) {
	c := start(t, "typed-protobuf")
	var mutex sync.Mutex
	types := map[string]string{}
	config := rest.CopyConfig(c.config)
	config.Wrap(func(next http.RoundTripper) http.RoundTripper {
		return roundTripper(func(request *http.Request) (*http.Response, error) {
			answer, err := next.RoundTrip(request)
			if err == nil {
				mutex.Lock()
				defer mutex.Unlock()
				key := request.Method
				if request.URL.Query().Get("watch") != "" {
					key = "WATCH"
				}
				types[key] = request.Header.Get("Content-Type") + " -> " + answer.Header.Get("Content-Type")
			}
			return answer, err
		})
	})
	maps := c.typedFor(config).CoreV1().ConfigMaps(c.namespace)
	made, err := maps.Create(c.ctx, &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "m"}, BinaryData: map[string][]byte{"b": {0xff}}}, metav1.CreateOptions{})
	must(t, err)
	_, err = maps.List(c.ctx, metav1.ListOptions{})
	must(t, err)
	ctx, stop := context.WithCancel(c.ctx)
	defer stop()
	events, err := maps.Watch(ctx, metav1.ListOptions{ResourceVersion: "0", FieldSelector: "metadata.name=m"})
	must(t, err)
	event := <-events.ResultChan()
	if seen := event.Object.(*corev1.ConfigMap); seen.UID != made.UID || seen.BinaryData["b"][0] != 0xff {
		t.Fatalf("watched %+v", seen)
	}
	events.Stop()
	_, err = maps.Get(c.ctx, "nothing", metav1.GetOptions{})
	if err == nil {
		t.Fatal("found nothing")
	}
	const protobuf = "application/vnd.kubernetes.protobuf"
	want := map[string]string{
		"POST":  protobuf + " -> " + protobuf,
		"GET":   " -> " + protobuf,
		"WATCH": " -> " + protobuf + ";stream=watch",
	}
	if fmt.Sprint(types) != fmt.Sprint(want) {
		t.Fatalf("%v, not %v", types, want)
	}
}
