// Command faults holds informers of client-go, with its defaults, and tells what they hold.
//
// In: a line of JSON with where the server is and which namespaces, then a line for each question: "look", "resolve" or
// "fail to resolve". Out: a line for each. It ends with its standard input.
// Never: a brake of the client's own; how fast 50 informers may ask is not what is measured.
package main

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"hash/fnv"
	"net"
	"os"
	"strconv"
	"sync/atomic"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"
)

type setting struct {
	URL        string   `json:"url"`
	Port       int      `json:"port"`
	Authority  string   `json:"authority"`
	Namespaces []string `json:"namespaces"`
	TimeoutMs  int64    `json:"timeoutMs"`
}

// held is what an informer holds.
type held struct {
	Namespace   string `json:"namespace"`
	Synced      bool   `json:"synced"`
	Objects     int    `json:"objects"`
	Digest      uint64 `json:"digest"`
	Seen        uint64 `json:"seen"`
	LastEventMs int64  `json:"last_event_ms"`
}

// informer of one namespace, and the highest revision that its handler was told of.
type informer struct {
	namespace string
	cache     cache.SharedIndexInformer
	seen      atomic.Uint64
	lastMs    atomic.Int64
}

// unresolved is raised while the server's name does not resolve.
var unresolved atomic.Bool

func main() {
	if err := run(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func run() error {
	lines := bufio.NewScanner(os.Stdin)
	lines.Buffer(nil, 1<<20)
	if !lines.Scan() {
		return lines.Err()
	}
	var s setting
	if err := json.Unmarshal(lines.Bytes(), &s); err != nil {
		return err
	}
	all, err := start(&s)
	if err != nil {
		return err
	}
	fmt.Println("{}")
	for lines.Scan() {
		var order string
		if err := json.Unmarshal(lines.Bytes(), &order); err != nil {
			return err
		}
		var answer any = struct{}{}
		switch order {
		case "look":
			answer = look(all)
		case "resolve":
			unresolved.Store(false)
		case "fail to resolve":
			unresolved.Store(true)
		default:
			return fmt.Errorf("nobody knows %q", order)
		}
		line, err := json.Marshal(answer)
		if err != nil {
			return err
		}
		fmt.Println(string(line))
	}
	return lines.Err()
}

func start(s *setting) ([]*informer, error) {
	config := &rest.Config{
		Host:            s.URL,
		UserAgent:       "client-go",
		TLSClientConfig: rest.TLSClientConfig{CAData: []byte(s.Authority)},
		ContentConfig: rest.ContentConfig{
			ContentType:        runtime.ContentTypeProtobuf,
			AcceptContentTypes: runtime.ContentTypeProtobuf + "," + runtime.ContentTypeJSON,
		},
		QPS:     -1,
		Timeout: time.Duration(s.TimeoutMs) * time.Millisecond,
		Dial:    dialer(s.Port),
	}
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		return nil, err
	}
	var all []*informer
	for _, namespace := range s.Namespaces {
		factory := informers.NewSharedInformerFactoryWithOptions(client, 0, informers.WithNamespace(namespace))
		i := &informer{namespace: namespace, cache: factory.Core().V1().ConfigMaps().Informer()}
		if _, err := i.cache.AddEventHandler(i); err != nil {
			return nil, err
		}
		factory.Start(context.Background().Done())
		all = append(all, i)
	}
	return all, nil
}

// dialer resolves the server's name, which no resolver of this machine knows: to this machine, or as a resolver answers that does
// not know it either.
func dialer(port int) func(context.Context, string, string) (net.Conn, error) {
	plain := net.Dialer{Timeout: 30 * time.Second, KeepAlive: 30 * time.Second}
	return func(ctx context.Context, network, address string) (net.Conn, error) {
		if unresolved.Load() {
			host, _, _ := net.SplitHostPort(address)
			lookup := &net.DNSError{Err: "no such host", Name: host, IsNotFound: true}
			return nil, &net.OpError{Op: "dial", Net: network, Err: lookup}
		}
		return plain.DialContext(ctx, network, net.JoinHostPort("127.0.0.1", strconv.Itoa(port)))
	}
}

func look(all []*informer) []held {
	answer := make([]held, 0, len(all))
	for _, i := range all {
		// What was seen comes first: a store that is newer does no harm.
		h := held{Namespace: i.namespace, Seen: i.seen.Load(), LastEventMs: i.lastMs.Load(), Synced: i.cache.HasSynced()}
		for _, object := range i.cache.GetStore().List() {
			if accessor, err := meta.Accessor(object); err == nil {
				h.Objects++
				h.Digest += digest(accessor.GetName(), accessor.GetResourceVersion())
			}
		}
		answer = append(answer, h)
	}
	return answer
}

// digest of one object; those of a store are added up.
func digest(name, revision string) uint64 {
	hash := fnv.New64a()
	hash.Write([]byte(name))
	hash.Write([]byte{0})
	hash.Write([]byte(revision))
	return hash.Sum64()
}

func (i *informer) OnAdd(object any, _ bool) { i.told(object) }
func (i *informer) OnUpdate(_, object any)   { i.told(object) }
func (i *informer) OnDelete(object any) {
	if unknown, is := object.(cache.DeletedFinalStateUnknown); is {
		object = unknown.Obj
	}
	i.told(object)
}

// told notes how far the informer has come. Only its own handler writes.
func (i *informer) told(object any) {
	i.lastMs.Store(time.Now().UnixMilli())
	accessor, err := meta.Accessor(object)
	if err != nil {
		return
	}
	revision, err := strconv.ParseUint(accessor.GetResourceVersion(), 10, 64)
	if err == nil && revision > i.seen.Load() {
		i.seen.Store(revision)
	}
}
