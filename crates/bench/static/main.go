// A file server at its best: HTTPS that sends one byte slice, over HTTP/1.1 or HTTP/2 as the client asks.
// What a LIST costs is measured beside it.
package main

import (
	"crypto/tls"
	"flag"
	"log"
	"net/http"
	"strconv"
)

func main() {
	address := flag.String("address", "127.0.0.1:0", "where to listen")
	certificate := flag.String("certificate", "", "PEM file")
	key := flag.String("key", "", "PEM file")
	size := flag.Int("bytes", 1<<20, "size of the body")
	flag.Parse()

	body := make([]byte, *size)
	for at := range body {
		body[at] = ' ' + byte(at*31%95)
	}
	http.HandleFunc("/readyz", func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte("ok")) })
	http.HandleFunc("/body", func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		w.Header().Set("Content-Length", strconv.Itoa(len(body)))
		_, _ = w.Write(body)
	})
	server := &http.Server{Addr: *address, TLSConfig: &tls.Config{MinVersion: tls.VersionTLS13}}
	log.Fatal(server.ListenAndServeTLS(*certificate, *key))
}
