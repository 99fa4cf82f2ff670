// A proxy in front of the server that counts what is asked through it, and changes nothing.
//
// In: TLS connections of clients, HTTP/2. Out: the same bytes to the server and back; requests that are answered counted as lists,
// watches that begin with the state, and watches that go on from a revision. What is refused has read nothing, and is asked again.
// Never: an answer of its own. Where the server is not there, neither is the proxy: connections end as the server's did, and
// new ones are refused.

package clients

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"fmt"
	"io"
	"maps"
	"math/big"
	"net"
	"net/url"
	"os"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"golang.org/x/net/http2"
	"golang.org/x/net/http2/hpack"
	"k8s.io/client-go/rest"
)

// counts of what was asked of a proxy, and answered.
type counts struct {
	// What asks for everything there is: an informer's relists, once it is synced.
	lists, initial int
	// Watches that go on from a revision.
	resumed int
	// The paths of lists and of watches that begin with the state.
	whole map[string]int
}

func (c counts) text() string {
	return fmt.Sprintf("%d lists, %d watches with initial events, %d resumed", c.lists, c.initial, c.resumed)
}

type proxy struct {
	t *testing.T
	// The server, as the administrator speaks to it.
	upstream    string
	upstreamTLS *tls.Config
	// Of the proxy's own.
	address     string
	authority   []byte
	certificate tls.Certificate

	mutex    sync.Mutex
	listener net.Listener
	counts   counts
}

// newProxy listens on a port that nobody else takes while it does not.
func newProxy(c *clients) *proxy {
	c.Helper()
	upstreamTLS, err := rest.TLSConfigFor(c.config)
	must(c.T, err)
	upstreamTLS.NextProtos = []string{"h2"}
	host, err := url.Parse(c.config.Host)
	must(c.T, err)
	upstreamTLS.ServerName = host.Hostname()
	p := &proxy{t: c.T, upstream: host.Host, upstreamTLS: upstreamTLS, address: "127.0.0.1:" + os.Getenv("FOREBAY_TEST_PORT")}
	p.certify()
	p.open()
	c.Cleanup(p.close)
	return p
}

// client is the configuration of a client of its own, with a connection of its own.
func (p *proxy) client(base *rest.Config) *rest.Config {
	config := rest.AnonymousClientConfig(base)
	config.Host = "https://" + p.address
	config.TLSClientConfig = rest.TLSClientConfig{CAData: p.authority}
	// Transports are shared where all is equal, and no two of these are.
	config.Dial = (&net.Dialer{}).DialContext
	return config
}

// open listens as soon as the server does.
func (p *proxy) open() {
	p.t.Helper()
	deadline := time.Now().Add(limit)
	for {
		connection, err := net.Dial("tcp", p.upstream)
		if err == nil {
			connection.Close()
			break
		}
		if time.Now().After(deadline) {
			p.t.Errorf("the server does not listen: %v", err)
			return
		}
		time.Sleep(time.Millisecond)
	}
	listener, err := net.Listen("tcp", p.address)
	if err != nil {
		p.t.Errorf("the proxy cannot listen: %v", err)
		return
	}
	p.mutex.Lock()
	p.listener = listener
	p.mutex.Unlock()
	go func() {
		for {
			client, err := listener.Accept()
			if err != nil {
				return
			}
			go p.pass(client)
		}
	}()
}

// close refuses new connections; those that there are end with the server's.
func (p *proxy) close() {
	p.mutex.Lock()
	defer p.mutex.Unlock()
	if p.listener != nil {
		p.listener.Close()
		p.listener = nil
	}
}

// counted is what was asked so far.
func (p *proxy) counted() counts {
	p.mutex.Lock()
	defer p.mutex.Unlock()
	counts := p.counts
	counts.whole = maps.Clone(counts.whole)
	return counts
}

// pass carries one connection, until either end of it ends.
func (p *proxy) pass(client net.Conn) {
	defer client.Close()
	server, err := net.Dial("tcp", p.upstream)
	if err != nil {
		return
	}
	defer server.Close()
	down := tls.Server(client, &tls.Config{Certificates: []tls.Certificate{p.certificate}, NextProtos: []string{"h2"}})
	up := tls.Client(server, p.upstreamTLS)
	// Neither end is told goodbye: a killed server tells nobody.
	if up.Handshake() != nil || down.Handshake() != nil {
		return
	}
	streams := &streams{open: map[uint32]exchange{}}
	asked, seen := io.Pipe()
	go func() {
		preface := make([]byte, len(http2.ClientPreface))
		io.ReadFull(asked, preface)
		p.read(asked, func(head *http2.MetaHeadersFrame) {
			path := write
			if head.PseudoValue("method") == "GET" {
				path = head.PseudoValue("path")
			}
			p.join(streams, head.StreamID, exchange{path: path})
		})
	}()
	answered, told := io.Pipe()
	go p.read(answered, func(head *http2.MetaHeadersFrame) {
		p.join(streams, head.StreamID, exchange{status: head.PseudoValue("status")})
	})
	ends := make(chan struct{}, 2)
	go func() {
		io.Copy(up, io.TeeReader(down, seen))
		ends <- struct{}{}
	}()
	go func() {
		io.Copy(down, io.TeeReader(up, told))
		ends <- struct{}{}
	}()
	<-ends
	// The pipes' readers take what is there; then they end as well.
	seen.Close()
	told.Close()
}

// exchange is the path of a request, which is `write` of one that changes something, and the status of its answer.
type exchange struct{ path, status string }

const write = "a write"

// streams of a connection of which one half is known.
type streams struct {
	mutex sync.Mutex
	open  map[uint32]exchange
}

// join counts what was asked on a stream and is answered, whichever of the two is seen first.
func (p *proxy) join(streams *streams, stream uint32, half exchange) {
	streams.mutex.Lock()
	defer streams.mutex.Unlock()
	other := streams.open[stream]
	whole := exchange{half.path + other.path, half.status + other.status}
	if whole.path == "" || whole.status == "" {
		streams.open[stream] = whole
		return
	}
	delete(streams.open, stream)
	if whole.path != write && whole.status == "200" {
		p.count(whole.path)
	}
}

// read shows the heads of one way of a connection.
func (p *proxy) read(bytes io.Reader, show func(*http2.MetaHeadersFrame)) {
	// Whatever it is, it must be taken, or the connection would stand still.
	defer io.Copy(io.Discard, bytes)
	framer := http2.NewFramer(io.Discard, bytes)
	framer.SetMaxReadFrameSize(1 << 24)
	framer.ReadMetaHeaders = hpack.NewDecoder(4096, nil)
	for {
		frame, err := framer.ReadFrame()
		if err == io.EOF || err == io.ErrUnexpectedEOF {
			return
		}
		if err != nil {
			p.t.Errorf("the proxy cannot read a head: %v", err)
			return
		}
		// Trailers have neither.
		if head, is := frame.(*http2.MetaHeadersFrame); is && head.PseudoValue("path")+head.PseudoValue("status") != "" {
			show(head)
		}
	}
}

func (p *proxy) count(path string) {
	target, err := url.Parse(path)
	if err != nil {
		p.t.Errorf("the proxy cannot read %q: %v", path, err)
		return
	}
	query := target.Query()
	watches, _ := strconv.ParseBool(query.Get("watch"))
	revision := query.Get("resourceVersion")
	p.mutex.Lock()
	defer p.mutex.Unlock()
	if p.counts.whole == nil {
		p.counts.whole = map[string]int{}
	}
	switch {
	case watches && query.Get("sendInitialEvents") != "true" && revision != "" && revision != "0":
		p.counts.resumed++
		return
	case watches:
		p.counts.initial++
	default:
		p.counts.lists++
	}
	p.counts.whole[strings.TrimSuffix(target.Path+"?"+query.Get("labelSelector")+query.Get("fieldSelector"), "?")]++
}

// certify makes a certificate for 127.0.0.1 that signs itself.
func (p *proxy) certify() {
	p.t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	must(p.t, err)
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
		IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}, IsCA: true, BasicConstraintsValid: true,
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key)
	must(p.t, err)
	p.authority = pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})
	p.certificate = tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key}
}
