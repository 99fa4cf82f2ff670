// Fifty informers on a server whose etcd is killed, moved, held, delayed, cut, compacted and filled, while others write.

package clients

import (
	"fmt"
	"maps"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
)

// churnAfterFault is written by each writer while a fault lasts, at least.
const churnAfterFault = 15

// storm of lists at once, while etcd stands still.
const storm = 300

// The orders are given by FOREBAY_TEST_FAULTS; after each of them others write, and every informer hears of it, unless the
// order ends with `!`: then the informers' server hears of nothing for now. Writes go to the server of FOREBAY_TEST_OTHER.
func TestInformersAcrossFaultsOfEtcd(t *testing.T) {
	c := start(t, "faults")
	c.define("widgets", "Widget")
	c.define("gadgets", "Gadget")
	other := *c
	var err error
	other.config, err = clientcmd.BuildConfigFromFlags("", os.Getenv("FOREBAY_TEST_OTHER"))
	must(t, err)
	other.config.QPS = -1
	other.dynamic, err = dynamic.NewForConfig(other.config)
	must(t, err)
	proxy := newProxy(c)
	followers := c.followers(proxy)
	first := proxy.counted()
	writers := other.writers()
	stop := c.writing(writers)
	c.churn(writers, churnAfterFault)
	orders := strings.Fields(os.Getenv("FOREBAY_TEST_FAULTS"))
	for _, order := range orders {
		begun := time.Now()
		c.ask("@" + strings.TrimSuffix(order, "!"))
		switch order {
		case "stall!", "leaderless!":
			c.stalled()
		case "full!":
			other.full()
		case "hold-all!":
			c.churn(writers, churnAfterFault)
			c.behind(writers)
		default:
			c.churn(writers, churnAfterFault)
		}
		if !strings.HasSuffix(order, "!") {
			c.heard(order, followers, writers)
		}
		fmt.Printf("figure: %s: %.1f s\n", order, time.Since(begun).Seconds())
		now := proxy.counted()
		if now.lists+now.initial != first.lists+first.initial {
			t.Fatalf("after %s: %d lists and %d watches with initial events more: %v", order, now.lists-first.lists, now.initial-first.initial, now.whole)
		}
	}
	stop()
	c.agree(followers)
	last := proxy.counted()
	fmt.Printf("figure: %d informers, %d faults of etcd (%s), %d writes acknowledged: %d relists, %d watches resumed\n",
		len(followers), len(orders), strings.Join(orders, " "), total(writers),
		last.lists+last.initial-first.lists-first.initial, last.resumed)
	c.complete(followers, writers)
	if os.Getenv("FOREBAY_TEST_HOLE") != "" {
		c.holed(proxy, followers, writers)
	}
}

// holed: history is gone that the informers' server has not had. Who watches what has changed lists again, once; nobody else does.
func (c *clients) holed(proxy *proxy, followers []*follower, writers map[string]*writer) {
	c.Helper()
	before := proxy.counted()
	stop := c.writing(writers)
	c.churn(writers, churnAfterFault)
	c.ask("@hold-all")
	c.churn(writers, churnAfterFault)
	c.ask("@compact")
	c.churn(writers, churnAfterFault)
	c.heard("compact", followers, writers)
	stop()
	c.agree(followers)
	affected := 0
	for _, f := range followers {
		if f.resource.Resource == "configmaps" || f.resource.Resource == "events" || f.resource.Resource == "widgets" || f.resource.Resource == "pods" && f.fields == "" {
			affected++
		}
	}
	now := proxy.counted()
	relists := now.lists + now.initial - before.lists - before.initial
	fmt.Printf("figure: history was gone: %d of %d informers listed again\n", relists, len(followers))
	if relists != affected {
		c.Fatalf("%d relists, but %d informers are of what has changed: %v", relists, affected, now.whole)
	}
}

// heard waits until each informer was told what was acknowledged last before. Somebody asks for what is current meanwhile, as somebody does.
func (c *clients) heard(after string, followers []*follower, writers map[string]*writer) {
	c.Helper()
	want := map[string]uint64{}
	for name, w := range writers {
		want[name] = w.last()
	}
	for _, f := range followers {
		revision, is := want[f.name]
		if !is {
			continue
		}
		c.until(fmt.Sprintf("after %s process %d is told of %s", after, f.process, f.name), func() (bool, string) {
			if f.reached.Load() >= revision {
				return true, ""
			}
			err := c.list(f.interest, "limit=1")
			return false, fmt.Sprintf("revision %d of %d; a list: %v", f.reached.Load(), revision, err)
		})
	}
}

// last is the highest revision that was acknowledged.
func (w *writer) last() uint64 {
	w.mutex.Lock()
	defer w.mutex.Unlock()
	last := uint64(0)
	for _, revisions := range w.acknowledged {
		for _, revision := range revisions {
			last = max(last, revision)
		}
	}
	return last
}

// list asks once.
func (c *clients) list(of interest, query string) error {
	path := "/api/v1"
	if of.resource.Group != "" {
		path = "/apis/" + of.resource.Group + "/v1"
	}
	client, is := c.typed.CoreV1().RESTClient().(*rest.RESTClient)
	if !is {
		return fmt.Errorf("no client")
	}
	request := client.Get().AbsPath(path, "namespaces", c.namespace, of.resource.Resource).MaxRetries(0)
	for _, each := range strings.Split(query, "&") {
		name, value, _ := strings.Cut(each, "=")
		request = request.Param(name, value)
	}
	return request.Do(c.ctx).Error()
}

// behind: a server that has not had what its client has seen elsewhere waits, and then says so; it never answers from before.
func (c *clients) behind(writers map[string]*writer) {
	c.Helper()
	revision := writers["maps"].last()
	for _, query := range []string{"resourceVersion=%d&resourceVersionMatch=NotOlderThan", "resourceVersion=%d"} {
		began := time.Now()
		err := c.list(interests()[0], fmt.Sprintf(query, revision))
		if !apierrors.IsTimeout(err) || !apierrors.HasStatusCause(err, metav1.CauseTypeResourceVersionTooLarge) {
			c.Fatalf("not older than %d: %v", revision, err)
		}
		if waited := time.Since(began); waited < 2*time.Second || waited > 10*time.Second {
			c.Fatalf("it waited for %v", waited)
		}
	}
}

// stalled: etcd answers nothing. What need not be current is answered, what must be is refused, and not all at etcd's expense.
func (c *clients) stalled() {
	c.Helper()
	inMaps := interests()[0]
	count := func(query string) (answered, refused int32, other error) {
		var all sync.WaitGroup
		var yes, no atomic.Int32
		var mutex sync.Mutex
		for range storm {
			all.Go(func() {
				err := c.list(inMaps, query)
				switch {
				case err == nil:
					yes.Add(1)
				case apierrors.IsTooManyRequests(err):
					no.Add(1)
				default:
					mutex.Lock()
					other = err
					mutex.Unlock()
				}
			})
		}
		all.Wait()
		return yes.Load(), no.Load(), other
	}
	answered, refused, err := count("limit=500")
	if refused != storm {
		c.Fatalf("of %d consistent lists %d were refused and %d answered: %v", storm, refused, answered, err)
	}
	answered, _, err = count("resourceVersion=0")
	if answered != storm {
		c.Fatalf("%d of %d lists that need not be current: %v", answered, storm, err)
	}
}

// full: etcd takes no more. A write says why, and what makes room goes through.
func (c *clients) full() {
	c.Helper()
	inMaps := c.dynamic.Resource(configMaps).Namespace(c.namespace)
	c.until("writes are refused", func() (bool, string) {
		_, err := inMaps.Create(c.ctx, configMap("too-much", nil), metav1.CreateOptions{})
		if err == nil {
			must(c.T, inMaps.Delete(c.ctx, "too-much", metav1.DeleteOptions{}))
			return false, "made"
		}
		return strings.Contains(err.Error(), "no space"), err.Error()
	})
	list, err := inMaps.List(c.ctx, metav1.ListOptions{Limit: 1, LabelSelector: "keep"})
	must(c.T, err)
	if len(list.Items) == 1 {
		must(c.T, inMaps.Delete(c.ctx, list.Items[0].GetName(), metav1.DeleteOptions{}))
	}
}

// A backup is restored while informers watch. They end with what is there now, none asks for ever for what never was; those ask for
// it anew whose history is gone: all of them, or if the revision was raised beyond what anybody saw, those that saw what is gone.
func TestInformersAcrossARestore(t *testing.T) {
	c := start(t, "restore")
	c.define("widgets", "Widget")
	c.define("gadgets", "Gadget")
	proxy := newProxy(c)
	followers := c.followers(proxy)
	c.write(followers)
	c.ask("@back-up")
	c.write(followers)
	before := proxy.counted()
	c.ask("@restore")
	c.until("the server tells what is there now", func() (bool, string) {
		err := c.list(interests()[0], "limit=1")
		return err == nil, fmt.Sprint(err)
	})
	// Who saw what never was asks for no less first, and is refused: reflectors do after any 410.
	least, most := len(followers), 2*len(followers)
	if os.Getenv("FOREBAY_TEST_BUMPED") != "" {
		least = 0
		for _, f := range followers {
			if f.name == "maps" || f.name == "events" || f.name == "widgets" || f.name == "pods" || f.name == "kept pods" {
				least++
			}
		}
		most = least
	}
	// Who holds what is there now need not have heard of the restore yet; who holds what is made from now on has.
	c.mark(followers)
	now := proxy.counted()
	relists := now.lists + now.initial - before.lists - before.initial
	fmt.Printf("figure: a backup was restored: %d relists of %d informers\n", relists, len(followers))
	if relists < least || relists > most {
		t.Fatalf("%d relists, not %d to %d: %v", relists, least, most, now.whole)
	}
	c.write(followers)
	last := proxy.counted()
	if last.lists+last.initial != now.lists+now.initial {
		t.Fatalf("%d relists after the restore was over: %v", last.lists+last.initial-now.lists-now.initial, last.whole)
	}
}

// mark makes an object that each informer is to hold, and waits until it does.
func (c *clients) mark(followers []*follower) {
	c.Helper()
	const name = "mark"
	labels := map[string]any{"keep": "yes"}
	pod := map[string]any{"nodeName": "quiet", "containers": []any{map[string]any{"name": "main", "image": "registry.test/main:1"}}}
	template := map[string]any{"metadata": map[string]any{"labels": labels}, "spec": pod}
	for _, mark := range []struct {
		of            schema.GroupVersionResource
		version, kind string
		more          map[string]any
	}{
		{of: core("configmaps"), version: "v1", kind: "ConfigMap"},
		{of: core("events"), version: "v1", kind: "Event", more: map[string]any{"involvedObject": map[string]any{"namespace": c.namespace}}},
		{of: core("pods"), version: "v1", kind: "Pod", more: map[string]any{"spec": pod}},
		{of: core("secrets"), version: "v1", kind: "Secret"},
		{of: deployments, version: "apps/v1", kind: "Deployment", more: map[string]any{
			"spec": map[string]any{"selector": map[string]any{"matchLabels": labels}, "template": template},
		}},
		{of: leases, version: "coordination.k8s.io/v1", kind: "Lease"},
		{of: custom("widgets"), version: "fifty.example.com/v1", kind: "Widget"},
		{of: custom("gadgets"), version: "fifty.example.com/v1", kind: "Gadget"},
	} {
		object := map[string]any{"apiVersion": mark.version, "kind": mark.kind, "metadata": map[string]any{"name": name, "labels": labels}}
		maps.Copy(object, mark.more)
		_, err := c.dynamic.Resource(mark.of).Namespace(c.namespace).Create(c.ctx, &unstructured.Unstructured{Object: object}, metav1.CreateOptions{})
		must(c.T, err)
	}
	for _, f := range followers {
		c.until(fmt.Sprintf("%s of process %d has the mark", f.name, f.process), func() (bool, string) {
			held := f.holds()
			return held[name] != "", fmt.Sprintf("%d held", len(held))
		})
	}
}

// write has others write for a while, and waits until each informer has it.
func (c *clients) write(followers []*follower) {
	c.Helper()
	writers := c.writers()
	stop := c.writing(writers)
	c.churn(writers, churnAfterFault)
	stop()
	c.agree(followers)
}
