// Package clients holds scenarios of client-go as controllers use it: informers with its defaults.
//
// In: KUBECONFIG; each test is run alone by `src/clientgo.rs` of the crate around it, which answers the lines `@kill` and
// `@start` on standard output. Out: the verdict of the test.
// Never: a sleep; a wait is on what a cache holds, and has a limit.
package clients

import (
	"bufio"
	"context"
	"fmt"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/tools/clientcmd"
)

// limit of every wait. A test that waits for kube-apiserver to come back sets a longer one.
var limit = 2 * time.Minute

var configMaps = schema.GroupVersionResource{Version: "v1", Resource: "configmaps"}

// clients of one test, and a namespace of its own.
type clients struct {
	*testing.T
	ctx       context.Context
	cancel    context.CancelFunc
	config    *rest.Config
	typed     kubernetes.Interface
	dynamic   dynamic.Interface
	metadata  metadata.Interface
	namespace string
	// Pods that its kubelet has given an address; only the kubelet counts.
	served uint8
}

func start(t *testing.T, namespace string) *clients {
	t.Helper()
	config, err := clientcmd.BuildConfigFromFlags("", os.Getenv("KUBECONFIG"))
	must(t, err)
	// The tests write in bursts; a client's own brake is not what they are about.
	config.QPS = -1
	ctx, cancel := context.WithCancel(context.Background())
	t.Cleanup(cancel)
	c := &clients{T: t, ctx: ctx, cancel: cancel, config: config, namespace: namespace}
	c.typed, err = kubernetes.NewForConfig(config)
	must(t, err)
	c.dynamic, err = dynamic.NewForConfig(config)
	must(t, err)
	c.metadata, err = metadata.NewForConfig(config)
	must(t, err)
	object := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "v1", "kind": "Namespace", "metadata": map[string]any{"name": namespace},
	}}
	_, err = c.dynamic.Resource(configMaps.GroupVersion().WithResource("namespaces")).Create(ctx, object, metav1.CreateOptions{})
	must(t, err)
	return c
}

// isForebay tells our server from kube-apiserver, for the few things that they do not share.
func (c *clients) isForebay() bool { return os.Getenv("FOREBAY_TEST_SERVER") == "Forebay" }

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// until waits for a condition; what it is told last is in the failure.
func (c *clients) until(what string, right func() (bool, string)) {
	c.Helper()
	last := ""
	err := wait.PollUntilContextTimeout(c.ctx, 5*time.Millisecond, limit, true, func(context.Context) (bool, error) {
		is, saw := right()
		last = saw
		return is, nil
	})
	if err != nil {
		c.Fatalf("%s: %v; last: %s", what, err, last)
	}
}

// ask has the program that runs us do something to the server, and waits for it.
func (c *clients) ask(order string) {
	c.Helper()
	fmt.Println(order)
	answer, err := bufio.NewReader(os.Stdin).ReadString('\n')
	if err != nil || strings.TrimSpace(answer) != "done" {
		c.Fatalf("%s: %q, %v", order, answer, err)
	}
}

func configMap(name string, data map[string]any) *unstructured.Unstructured {
	return &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "v1", "kind": "ConfigMap",
		"metadata": map[string]any{"name": name, "labels": map[string]any{"made": "here"}},
		"data":     data,
	}}
}

// here leaves out what a controller of the server's own puts into every namespace.
func here(options *metav1.ListOptions) { options.LabelSelector = "made=here" }

// record is what an informer told its handler, in order.
type record struct {
	mutex sync.Mutex
	lines []string
}

func (r *record) add(format string, args ...any) {
	r.mutex.Lock()
	defer r.mutex.Unlock()
	r.lines = append(r.lines, fmt.Sprintf(format, args...))
}

// text sorts the initial events, which an informer tells in the order of a Go map.
func (r *record) text() string {
	r.mutex.Lock()
	defer r.mutex.Unlock()
	lines := slices.Clone(r.lines)
	later := slices.IndexFunc(lines, func(line string) bool { return !strings.HasPrefix(line, "initial ") })
	if later < 0 {
		later = len(lines)
	}
	slices.Sort(lines[:later])
	return strings.Join(lines, "\n")
}

// handler records names, with what `say` adds.
func (r *record) handler(say func(any) string) cache.ResourceEventHandler {
	name := func(object any) string {
		if gone, is := object.(cache.DeletedFinalStateUnknown); is {
			return gone.Key
		}
		return object.(metav1.Object).GetName()
	}
	return cache.ResourceEventHandlerDetailedFuncs{
		AddFunc: func(object any, initial bool) {
			if initial {
				r.add("initial %s%s", name(object), say(object))
			} else {
				r.add("add %s%s", name(object), say(object))
			}
		},
		UpdateFunc: func(_, object any) { r.add("update %s%s", name(object), say(object)) },
		DeleteFunc: func(object any) { r.add("delete %s", name(object)) },
	}
}
