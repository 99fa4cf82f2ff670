// Command crowd holds informers of client-go as many processes would: each with a client and a connection of its own.
//
// In: where the server is, as flags; orders on standard input, a line each. Out: a line of JSON for each order: how far they have come,
// or what they asked for since the order before. It ends with its standard input.
// Never: an informer that is not at its defaults; a brake of the client's own.
package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"net"
	"net/http"
	"os"
	"strconv"
	"sync"
	"syscall"
	"time"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"
)

// asked is a request: when it was sent, its query, and the status of the answer; 0 is none, 1 that nobody listened.
type asked struct {
	AtMs  int64  `json:"at_ms"`
	Query string `json:"query"`
	Code  int    `json:"code"`
}

// standing of all informers together.
type standing struct {
	Synced   int    `json:"synced"`
	Revision uint64 `json:"revision"`
}

// log of the requests of all informers.
type log struct {
	sync.Mutex
	all []asked
}

// logged notes each request on its way.
type logged struct {
	next http.RoundTripper
	log  *log
}

func main() {
	if err := run(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func run() error {
	server := flag.String("server", "", "where it is, as a URL")
	authority := flag.String("ca", "", "the file with its authority")
	token := flag.String("token", "", "who asks; one that ends in - is followed by the number of the informer")
	count := flag.Int("count", 1, "informers")
	resource := flag.String("resource", "pods", "of the core group")
	flag.Parse()
	requests := &log{}
	var all []cache.SharedIndexInformer
	for number := range *count {
		plain := net.Dialer{Timeout: 30 * time.Second, KeepAlive: 30 * time.Second}
		config := &rest.Config{
			Host:            *server,
			UserAgent:       "client-go",
			BearerToken:     tokenOf(*token, number),
			TLSClientConfig: rest.TLSClientConfig{CAFile: *authority},
			ContentConfig: rest.ContentConfig{
				ContentType:        runtime.ContentTypeProtobuf,
				AcceptContentTypes: runtime.ContentTypeProtobuf + "," + runtime.ContentTypeJSON,
			},
			QPS: -1,
			// Connections are shared by those who dial alike; this is nobody else's.
			Dial: func(ctx context.Context, network, address string) (net.Conn, error) {
				return plain.DialContext(ctx, network, address)
			},
		}
		config.Wrap(func(next http.RoundTripper) http.RoundTripper { return &logged{next, requests} })
		client, err := kubernetes.NewForConfig(config)
		if err != nil {
			return err
		}
		factory := informers.NewSharedInformerFactory(client, 0)
		informer, err := factory.ForResource(schema.GroupVersionResource{Version: "v1", Resource: *resource})
		if err != nil {
			return err
		}
		all = append(all, informer.Informer())
	}
	for _, informer := range all {
		go informer.Run(context.Background().Done())
	}
	return obey(all, requests)
}

func tokenOf(token string, number int) string {
	if len(token) > 0 && token[len(token)-1] == '-' {
		return token + strconv.Itoa(number)
	}
	return token
}

func obey(all []cache.SharedIndexInformer, requests *log) error {
	orders := bufio.NewScanner(os.Stdin)
	for orders.Scan() {
		var answer any
		switch order := orders.Text(); order {
		case "look":
			answer = look(all)
		case "asked":
			answer = requests.take()
		default:
			return fmt.Errorf("nobody knows %q", order)
		}
		line, err := json.Marshal(answer)
		if err != nil {
			return err
		}
		fmt.Println(string(line))
	}
	return orders.Err()
}

func look(all []cache.SharedIndexInformer) standing {
	var least standing
	for at, informer := range all {
		// What was not listed yet is at none.
		revision, _ := strconv.ParseUint(informer.LastSyncResourceVersion(), 10, 64)
		if at == 0 || revision < least.Revision {
			least.Revision = revision
		}
		if informer.HasSynced() {
			least.Synced++
		}
	}
	return least
}

func (l *log) take() []asked {
	l.Lock()
	defer l.Unlock()
	taken := l.all
	l.all = []asked{}
	if taken == nil {
		return []asked{}
	}
	return taken
}

func (l *logged) RoundTrip(request *http.Request) (*http.Response, error) {
	a := asked{AtMs: time.Now().UnixMilli(), Query: request.URL.RawQuery}
	response, err := l.next.RoundTrip(request)
	switch {
	case err == nil:
		a.Code = response.StatusCode
	case errors.Is(err, syscall.ECONNREFUSED):
		a.Code = 1
	}
	l.log.Lock()
	defer l.log.Unlock()
	l.log.all = append(l.log.all, a)
	return response, err
}
