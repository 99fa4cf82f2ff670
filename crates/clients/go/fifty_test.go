// Fifty informers as they come, behind a proxy that counts, on a server that is killed while others write.

package clients

import (
	"context"
	"fmt"
	"maps"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/dynamic/dynamicinformer"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/metadata/metadatainformer"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"
)

const (
	// processes hold an informer of each interest.
	processes = 5
	// pace of each writer.
	pace = 10 * time.Millisecond
	// churnBefore is written by each writer before a kill, at least.
	churnBefore = 60
)

var (
	leases      = schema.GroupVersionResource{Group: "coordination.k8s.io", Version: "v1", Resource: "leases"}
	deployments = schema.GroupVersionResource{Group: "apps", Version: "v1", Resource: "deployments"}
)

// interest is what an informer wants to know.
type interest struct {
	name     string
	resource schema.GroupVersionResource
	labels   string
	fields   string
	// How the client reads it.
	client func(*config, interest) cache.SharedIndexInformer
}

// config of one process's clients.
type config struct {
	typed     kubernetes.Interface
	dynamic   dynamic.Interface
	metadata  metadata.Interface
	namespace string
}

func core(resource string) schema.GroupVersionResource {
	return schema.GroupVersionResource{Version: "v1", Resource: resource}
}

func custom(resource string) schema.GroupVersionResource {
	return schema.GroupVersionResource{Group: "fifty.example.com", Version: "v1", Resource: resource}
}

// interests: five in what is written all the time, and five in what is quiet.
func interests() []interest {
	return []interest{
		{name: "maps", resource: core("configmaps"), client: asTyped},
		{name: "events", resource: core("events"), client: asTyped},
		{name: "pods", resource: core("pods"), client: asTyped},
		{name: "kept pods", resource: core("pods"), labels: "keep=yes", client: asTyped},
		{name: "widgets", resource: custom("widgets"), client: asDynamic},
		{name: "pods of a quiet node", resource: core("pods"), fields: "spec.nodeName=quiet", client: asTyped},
		{name: "gadgets", resource: custom("gadgets"), client: asDynamic},
		{name: "secrets", resource: core("secrets"), client: asTyped},
		{name: "leases", resource: leases, client: asTyped},
		{name: "deployments", resource: deployments, client: asMetadata},
	}
}

func (i interest) options(options *metav1.ListOptions) {
	options.LabelSelector, options.FieldSelector = i.labels, i.fields
}

func asTyped(c *config, i interest) cache.SharedIndexInformer {
	factory := informers.NewSharedInformerFactoryWithOptions(c.typed, 0, informers.WithNamespace(c.namespace), informers.WithTweakListOptions(i.options))
	informer, err := factory.ForResource(i.resource)
	if err != nil {
		panic(err)
	}
	return informer.Informer()
}

func asDynamic(c *config, i interest) cache.SharedIndexInformer {
	return dynamicinformer.NewFilteredDynamicSharedInformerFactory(c.dynamic, 0, c.namespace, i.options).ForResource(i.resource).Informer()
}

func asMetadata(c *config, i interest) cache.SharedIndexInformer {
	return metadatainformer.NewFilteredSharedInformerFactory(c.metadata, 0, c.namespace, i.options).ForResource(i.resource).Informer()
}

// told is one thing that an informer told its handler.
type told struct {
	// '+', '~' or '-'
	verb     byte
	revision uint64
	keep     bool
}

// follower is an informer with all that it told.
type follower struct {
	interest
	process  int
	informer cache.SharedIndexInformer
	// The highest revision that it told of.
	reached atomic.Uint64
	mutex   sync.Mutex
	// name -> what it told of it, in order
	history map[string][]told
}

func follow(c *clients, config *config, i interest, process int) *follower {
	c.Helper()
	f := &follower{interest: i, process: process, history: map[string][]told{}}
	f.informer = i.client(config, i)
	tell := func(verb byte, object any) {
		if gone, is := object.(cache.DeletedFinalStateUnknown); is {
			object = gone.Obj
		}
		accessor, err := meta.Accessor(object)
		if err != nil {
			c.Errorf("%s: %v", i.name, err)
			return
		}
		f.mutex.Lock()
		defer f.mutex.Unlock()
		name := accessor.GetName()
		revision := number(accessor.GetResourceVersion())
		f.history[name] = append(f.history[name], told{verb, revision, accessor.GetLabels()["keep"] == "yes"})
		f.reached.Store(max(revision, f.reached.Load()))
	}
	_, err := f.informer.AddEventHandler(cache.ResourceEventHandlerFuncs{
		AddFunc:    func(object any) { tell('+', object) },
		UpdateFunc: func(_, object any) { tell('~', object) },
		DeleteFunc: func(object any) { tell('-', object) },
	})
	must(c.T, err)
	go f.informer.RunWithContext(c.ctx)
	return f
}

func number(revision string) uint64 {
	value, _ := strconv.ParseUint(revision, 10, 64)
	return value
}

// holds name -> resourceVersion.
func (f *follower) holds() map[string]string {
	held := map[string]string{}
	for _, object := range f.informer.GetStore().List() {
		accessor, err := meta.Accessor(object)
		if err == nil {
			held[accessor.GetName()] = accessor.GetResourceVersion()
		}
	}
	return held
}

// events told so far, by name.
func (f *follower) events() map[string][]told {
	f.mutex.Lock()
	defer f.mutex.Unlock()
	copied := map[string][]told{}
	for name, events := range f.history {
		copied[name] = slices.Clone(events)
	}
	return copied
}

// last that was told: name -> resourceVersion of what is there. Handlers hear of it after the store has it.
func (f *follower) last() map[string]string {
	there := map[string]string{}
	for name, events := range f.events() {
		if last := events[len(events)-1]; last.verb != '-' {
			there[name] = strconv.FormatUint(last.revision, 10)
		}
	}
	return there
}

// writer creates, changes and deletes objects of one resource, and notes each write that was acknowledged.
type writer struct {
	client dynamic.ResourceInterface
	make   func(name string) *unstructured.Unstructured
	mutex  sync.Mutex
	// name -> revisions of acknowledged writes; 0 for a delete, whose answer names none
	acknowledged map[string][]uint64
	count        int
}

// run writes until told to stop; what it is at then, it finishes.
func (w *writer) run(ctx context.Context, stop <-chan struct{}) {
	ticker := time.NewTicker(pace)
	defer ticker.Stop()
	for at := 0; ; at++ {
		name := fmt.Sprintf("o-%04d", at)
		steps := []func() (*unstructured.Unstructured, error){
			func() (*unstructured.Unstructured, error) {
				return w.client.Create(ctx, w.make(name), metav1.CreateOptions{})
			},
			w.change(ctx, name, "no"),
			w.change(ctx, name, "yes"),
		}
		if at%2 == 0 {
			steps = append(steps, func() (*unstructured.Unstructured, error) {
				return nil, w.client.Delete(ctx, name, metav1.DeleteOptions{})
			})
		}
		for _, step := range steps {
			select {
			case <-stop:
				return
			case <-ticker.C:
			}
			object, err := step()
			if err != nil {
				// The server is not there, or was not there for the step before.
				continue
			}
			revision := uint64(0)
			if object != nil {
				revision = number(object.GetResourceVersion())
			}
			w.mutex.Lock()
			w.acknowledged[name] = append(w.acknowledged[name], revision)
			w.count++
			w.mutex.Unlock()
		}
	}
}

// writing has each of them write, until it is told to stop, and waits for what they are at then.
func (c *clients) writing(writers map[string]*writer) (stop func()) {
	told := make(chan struct{})
	var all sync.WaitGroup
	for _, w := range writers {
		all.Go(func() { w.run(c.ctx, told) })
	}
	return func() {
		close(told)
		all.Wait()
	}
}

func (w *writer) change(ctx context.Context, name, keep string) func() (*unstructured.Unstructured, error) {
	patch := fmt.Appendf(nil, `{"metadata":{"labels":{"keep":%q}}}`, keep)
	return func() (*unstructured.Unstructured, error) {
		return w.client.Patch(ctx, name, "application/merge-patch+json", patch, metav1.PatchOptions{})
	}
}

func (w *writer) written() int {
	w.mutex.Lock()
	defer w.mutex.Unlock()
	return w.count
}

func (c *clients) define(plural, kind string) {
	c.Helper()
	singular := strings.ToLower(kind)
	definition := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
		"metadata": map[string]any{"name": plural + ".fifty.example.com"},
		"spec": map[string]any{
			"group": "fifty.example.com", "scope": "Namespaced",
			"names": map[string]any{"plural": plural, "singular": singular, "kind": kind, "listKind": kind + "List"},
			"versions": []any{map[string]any{
				"name": "v1", "served": true, "storage": true,
				"schema": map[string]any{"openAPIV3Schema": map[string]any{"type": "object", "x-kubernetes-preserve-unknown-fields": true}},
			}},
		},
	}}
	resource := schema.GroupVersionResource{Group: "apiextensions.k8s.io", Version: "v1", Resource: "customresourcedefinitions"}
	_, err := c.dynamic.Resource(resource).Create(c.ctx, definition, metav1.CreateOptions{})
	must(c.T, err)
	c.until("the custom resource is served", func() (bool, string) {
		_, err := c.dynamic.Resource(custom(plural)).Namespace(c.namespace).List(c.ctx, metav1.ListOptions{})
		return err == nil, fmt.Sprint(err)
	})
}

func (c *clients) writers() map[string]*writer {
	object := func(version, kind string, more map[string]any) func(string) *unstructured.Unstructured {
		return func(name string) *unstructured.Unstructured {
			made := map[string]any{
				"apiVersion": version, "kind": kind,
				"metadata": map[string]any{"name": name, "namespace": c.namespace, "labels": map[string]any{"keep": "yes"}},
			}
			maps.Copy(made, more)
			return &unstructured.Unstructured{Object: made}
		}
	}
	pod := map[string]any{"spec": map[string]any{"containers": []any{map[string]any{"name": "main", "image": "registry.test/main:1"}}}}
	event := map[string]any{"involvedObject": map[string]any{"kind": "Pod", "name": "p", "namespace": c.namespace}, "reason": "Test", "type": "Normal"}
	writers := map[string]*writer{}
	for name, makes := range map[string]struct {
		resource schema.GroupVersionResource
		make     func(string) *unstructured.Unstructured
	}{
		"maps":    {core("configmaps"), object("v1", "ConfigMap", map[string]any{"data": map[string]any{"k": "v"}})},
		"pods":    {core("pods"), object("v1", "Pod", pod)},
		"events":  {core("events"), object("v1", "Event", event)},
		"widgets": {custom("widgets"), object("fifty.example.com/v1", "Widget", nil)},
	} {
		w := &writer{client: c.dynamic.Resource(makes.resource).Namespace(c.namespace), make: makes.make, acknowledged: map[string][]uint64{}}
		writers[name] = w
	}
	return writers
}

// A server that comes back has what its clients had, so that none of fifty informers asks for everything again: the proxy counts
// what they ask for. kube-apiserver's cache begins anew; of that one only the end is asked for, and its number is told.
func TestFiftyInformersAcrossKills(t *testing.T) {
	c := start(t, "fifty")
	orders := []string{"@kill", "@kill", "@terminate"}
	if !c.isForebay() {
		// It takes its time, and so do informers that were refused again and again.
		orders, limit = orders[:1], 4*time.Minute
	}
	if asked := strings.Fields(os.Getenv("FOREBAY_TEST_ENDS")); len(asked) > 0 {
		// client-go doubles its pause from one refusal to the next, up to a minute.
		orders, limit = asked, 4*time.Minute
	}
	c.define("widgets", "Widget")
	c.define("gadgets", "Gadget")
	proxy := newProxy(c)
	followers := c.followers(proxy)
	first := proxy.counted()
	if first.initial+first.lists != len(followers) {
		t.Fatalf("%d informers asked for %s: %v", len(followers), first.text(), first.whole)
	}
	writers := c.writers()
	stop := c.writing(writers)
	for _, order := range orders {
		c.churn(writers, churnBefore)
		resumed := proxy.counted()
		proxy.close()
		c.ask(order)
		opened := make(chan struct{})
		go func() {
			proxy.open()
			close(opened)
		}()
		c.ask("@start")
		<-opened
		c.until("every informer is back", func() (bool, string) {
			now := proxy.counted()
			back := now.resumed + now.initial + now.lists - resumed.resumed - resumed.initial - resumed.lists
			return back >= len(followers), fmt.Sprint(back)
		})
	}
	c.churn(writers, churnBefore)
	stop()
	c.agree(followers)
	last := proxy.counted()
	fmt.Printf("figure: %d informers, %d ends (%s), %d writes acknowledged: %d relists (%d lists, %d watches with initial events), %d watches resumed\n",
		len(followers), len(orders), strings.Join(orders, " "), total(writers),
		last.lists+last.initial-first.lists-first.initial, last.lists-first.lists, last.initial-first.initial, last.resumed)
	if !c.isForebay() {
		return
	}
	if last.lists != first.lists || last.initial != first.initial {
		for path, count := range last.whole {
			t.Errorf("%d of %s", count-first.whole[path], path)
		}
	}
	c.complete(followers, writers)
}

// followers of every interest, in each process, synced.
func (c *clients) followers(proxy *proxy) []*follower {
	c.Helper()
	followers := []*follower{}
	for process := range processes {
		of := proxy.client(c.config)
		held := &config{namespace: c.namespace}
		var err error
		held.dynamic, err = dynamic.NewForConfig(of)
		must(c.T, err)
		held.metadata, err = metadata.NewForConfig(of)
		must(c.T, err)
		protobuf := rest.CopyConfig(of)
		protobuf.AcceptContentTypes = "application/vnd.kubernetes.protobuf,application/json"
		held.typed, err = kubernetes.NewForConfig(protobuf)
		must(c.T, err)
		for _, interest := range interests() {
			followers = append(followers, follow(c, held, interest, process))
		}
	}
	for _, f := range followers {
		if !cache.WaitForCacheSync(c.ctx.Done(), f.informer.HasSynced) {
			c.Fatalf("%s: not synced", f.name)
		}
	}
	return followers
}

// churn waits until each writer has written so much more.
func (c *clients) churn(writers map[string]*writer, more int) {
	c.Helper()
	for name, w := range writers {
		want := w.written() + more
		c.until(name+" are written", func() (bool, string) {
			have := w.written()
			return have >= want, fmt.Sprintf("%d of %d", have, want)
		})
	}
}

func total(writers map[string]*writer) int {
	all := 0
	for _, w := range writers {
		all += w.written()
	}
	return all
}

// agree waits until each informer holds what a list tells, and has told it.
func (c *clients) agree(followers []*follower) {
	c.Helper()
	for _, f := range followers {
		options := metav1.ListOptions{}
		f.options(&options)
		c.until(fmt.Sprintf("%s of process %d are as in a list", f.name, f.process), func() (bool, string) {
			list, err := c.dynamic.Resource(f.resource).Namespace(c.namespace).List(c.ctx, options)
			must(c.T, err)
			want := map[string]string{}
			for _, item := range list.Items {
				want[item.GetName()] = item.GetResourceVersion()
			}
			held, last := f.holds(), f.last()
			return maps.Equal(held, want) && maps.Equal(last, want), fmt.Sprintf("%d held, %d told, %d listed", len(held), len(last), len(want))
		})
	}
}

// complete fails unless each informer told every acknowledged write once and in order, and those of one interest told the same.
func (c *clients) complete(followers []*follower, writers map[string]*writer) {
	c.Helper()
	of := map[string]map[string][]told{}
	events := 0
	for _, f := range followers {
		history := f.events()
		first, known := of[f.name]
		if !known {
			of[f.name] = history
			first = history
		}
		for name, told := range history {
			events += len(told)
			inOrder(c, f, name, told)
			if !slices.Equal(told, first[name]) {
				c.Errorf("%s: %s: process %d was told %v, process 0 %v", f.name, name, f.process, told, first[name])
			}
		}
		if len(history) != len(first) {
			c.Errorf("%s: process %d was told of %d objects, process 0 of %d", f.name, f.process, len(history), len(first))
		}
	}
	for name, w := range writers {
		for object, revisions := range w.acknowledged {
			of := of[name][object]
			for _, revision := range revisions {
				if !slices.ContainsFunc(of, func(t told) bool { return t.revision == revision || revision == 0 && t.verb == '-' }) {
					c.Errorf("%s: %s: acknowledged at %d and not told: %v", name, object, revision, of)
				}
			}
		}
	}
	for name, all := range of["pods"] {
		if want, got := selected(all), of["kept pods"][name]; !slices.Equal(want, got) {
			c.Errorf("kept pods: %s: told %v, not %v", name, got, want)
		}
	}
	fmt.Printf("figure: %d events told by informers, each once and in order\n", events)
}

// inOrder fails unless an object is added, changed and deleted in this order, at rising revisions.
func inOrder(c *clients, f *follower, name string, events []told) {
	c.Helper()
	there, reached := false, uint64(0)
	for _, event := range events {
		if event.revision <= reached || (event.verb == '+') == there {
			c.Errorf("%s of process %d: %s: %v", f.name, f.process, name, events)
			return
		}
		there, reached = event.verb != '-', event.revision
	}
}

// selected is what someone who selects `keep=yes` is told where everybody is told `events`.
func selected(events []told) []told {
	var out []told
	in := false
	for _, event := range events {
		is := event.verb != '-' && event.keep
		switch {
		case is && in:
			out = append(out, told{'~', event.revision, true})
		case is:
			out = append(out, told{'+', event.revision, true})
		case in:
			out = append(out, told{'-', event.revision, true})
		}
		in = is
	}
	return out
}
