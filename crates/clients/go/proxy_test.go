// A proxy in front of the server that counts what is asked through it, and changes nothing.
//
// In: TLS connections of clients, HTTP/2. Out: the same bytes to the server and back; requests counted as lists, watches that
// begin with the state, and watches that go on from a revision.
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
	"math/big"
	"net"
	"net/url"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"golang.org/x/net/http2"
	"golang.org/x/net/http2/hpack"
	"k8s.io/client-go/rest"
)

// counts of what was asked of a proxy.
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

// newProxy listens on a port of its own; it keeps that.
func newProxy(c *clients) *proxy {
	c.Helper()
	upstreamTLS, err := rest.TLSConfigFor(c.config)
	must(c.T, err)
	upstreamTLS.NextProtos = []string{"h2"}
	host, err := url.Parse(c.config.Host)
	must(c.T, err)
	upstreamTLS.ServerName = host.Hostname()
	p := &proxy{t: c.T, upstream: host.Host, upstreamTLS: upstreamTLS, address: "127.0.0.1:0"}
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
	p.listener, p.address = listener, listener.Addr().String()
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
	return p.counts
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
	copied, seen := io.Pipe()
	go p.read(copied)
	ends := make(chan struct{}, 2)
	go func() {
		io.Copy(up, io.TeeReader(down, seen))
		ends <- struct{}{}
	}()
	go func() {
		io.Copy(down, up)
		ends <- struct{}{}
	}()
	<-ends
	// The pipe's reader takes what is there; then it ends as well.
	seen.Close()
}

// read counts the requests of a connection.
func (p *proxy) read(bytes io.Reader) {
	// Whatever it is, it must be taken, or the connection would stand still.
	defer io.Copy(io.Discard, bytes)
	preface := make([]byte, len(http2.ClientPreface))
	if _, err := io.ReadFull(bytes, preface); err != nil {
		return
	}
	framer := http2.NewFramer(io.Discard, bytes)
	framer.SetMaxReadFrameSize(1 << 24)
	framer.ReadMetaHeaders = hpack.NewDecoder(4096, nil)
	for {
		frame, err := framer.ReadFrame()
		if err == io.EOF || err == io.ErrUnexpectedEOF {
			return
		}
		if err != nil {
			p.t.Errorf("the proxy cannot read a request: %v", err)
			return
		}
		if head, is := frame.(*http2.MetaHeadersFrame); is && head.PseudoValue("method") == "GET" {
			p.count(head.PseudoValue("path"))
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
