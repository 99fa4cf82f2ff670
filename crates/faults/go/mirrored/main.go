// Command mirrored holds informers of client-go, as a program of its own whose memory, time and connections can be read from outside.
//
// In: "client-go" (typed, protobuf) or "client-go-dynamic", flags, then orders on standard input, a line each. Out: a line with the
// number of objects once there is a whole state, then a line of JSON for each order, until the input ends: what forebay-mirrored does.
// Never: a brake of the client's own.
package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"math"
	"os"
	"strconv"
	"sync/atomic"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/dynamic/dynamicinformer"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api/v1"
	"sigs.k8s.io/yaml"
)

// handler counts what it is told.
type handler struct {
	notices  atomic.Uint64
	revision atomic.Uint64
}

func main() {
	if err := run(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func run() error {
	if len(os.Args) < 2 {
		return errors.New("client-go or client-go-dynamic")
	}
	flags := flag.NewFlagSet(os.Args[1], flag.ExitOnError)
	kubeconfig := flags.String("kubeconfig", "", "of an administrator")
	handlers := flags.Int("handlers", 0, "that are told what happens to the pods")
	many := flags.Int("informers", 0, "instead of the pods: so many informers of ConfigMaps, each with a selector of its own")
	if err := flags.Parse(os.Args[2:]); err != nil {
		return err
	}
	config, err := configuration(*kubeconfig)
	if err != nil {
		return err
	}
	var one func(resource string, tweak func(*metav1.ListOptions)) (cache.SharedIndexInformer, error)
	switch os.Args[1] {
	case "client-go":
		one, err = typed(config)
	case "client-go-dynamic":
		one, err = untyped(config)
	default:
		err = fmt.Errorf("%q is no client", os.Args[1])
	}
	if err != nil {
		return err
	}
	var informers []cache.SharedIndexInformer
	var told []*handler
	if *many > 0 {
		for number := range *many {
			informer, err := one("configmaps", func(options *metav1.ListOptions) {
				options.LabelSelector = fmt.Sprintf("forebay-mirrored=%d", number)
			})
			if err != nil {
				return err
			}
			informers = append(informers, informer)
		}
	} else {
		informer, err := one("pods", func(*metav1.ListOptions) {})
		if err != nil {
			return err
		}
		for range *handlers {
			told = append(told, &handler{})
			if _, err := informer.AddEventHandler(told[len(told)-1]); err != nil {
				return err
			}
		}
		informers = append(informers, informer)
	}
	forever := context.Background().Done()
	for _, informer := range informers {
		go informer.Run(forever)
	}
	for _, informer := range informers {
		if !cache.WaitForCacheSync(forever, informer.HasSynced) {
			return errors.New("it did not sync")
		}
	}
	if *many > 0 {
		fmt.Println(len(informers))
	} else {
		fmt.Println(len(informers[0].GetStore().ListKeys()))
	}
	return obey(told)
}

func obey(told []*handler) error {
	orders := bufio.NewScanner(os.Stdin)
	for orders.Scan() {
		if orders.Text() != "told" {
			fmt.Println("null")
			continue
		}
		revision, notices := uint64(math.MaxUint64), uint64(0)
		for _, h := range told {
			revision = min(revision, h.revision.Load())
			notices += h.notices.Load()
		}
		fmt.Printf("{\"revision\":%d,\"notices\":%d}\n", revision, notices)
	}
	return orders.Err()
}

func typed(config *rest.Config) (func(string, func(*metav1.ListOptions)) (cache.SharedIndexInformer, error), error) {
	config.AcceptContentTypes = runtime.ContentTypeProtobuf + "," + runtime.ContentTypeJSON
	config.ContentType = runtime.ContentTypeProtobuf
	client, err := kubernetes.NewForConfig(config)
	return func(resource string, tweak func(*metav1.ListOptions)) (cache.SharedIndexInformer, error) {
		factory := informers.NewSharedInformerFactoryWithOptions(client, 0, informers.WithTweakListOptions(tweak))
		informer, err := factory.ForResource(schema.GroupVersionResource{Version: "v1", Resource: resource})
		if err != nil {
			return nil, err
		}
		return informer.Informer(), nil
	}, err
}

func untyped(config *rest.Config) (func(string, func(*metav1.ListOptions)) (cache.SharedIndexInformer, error), error) {
	client, err := dynamic.NewForConfig(config)
	return func(resource string, tweak func(*metav1.ListOptions)) (cache.SharedIndexInformer, error) {
		factory := dynamicinformer.NewFilteredDynamicSharedInformerFactory(client, 0, metav1.NamespaceAll, tweak)
		return factory.ForResource(schema.GroupVersionResource{Version: "v1", Resource: resource}).Informer(), nil
	}, err
}

// configuration of the first user and cluster: of a kubeconfig that has one of each, in YAML or JSON.
func configuration(path string) (*rest.Config, error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	asJSON, err := yaml.YAMLToJSON(text)
	if err != nil {
		return nil, err
	}
	var read clientcmdapi.Config
	if err := json.Unmarshal(asJSON, &read); err != nil {
		return nil, err
	}
	if len(read.Clusters) == 0 || len(read.AuthInfos) == 0 {
		return nil, fmt.Errorf("%s names no cluster or no user", path)
	}
	cluster, user := read.Clusters[0].Cluster, read.AuthInfos[0].AuthInfo
	return &rest.Config{
		Host:      cluster.Server,
		UserAgent: "client-go",
		QPS:       -1,
		TLSClientConfig: rest.TLSClientConfig{
			CAFile: cluster.CertificateAuthority, CAData: cluster.CertificateAuthorityData,
			CertFile: user.ClientCertificate, CertData: user.ClientCertificateData,
			KeyFile: user.ClientKey, KeyData: user.ClientKeyData,
		},
	}, nil
}

func (h *handler) OnAdd(object any, _ bool) { h.take(object) }
func (h *handler) OnUpdate(_, object any)   { h.take(object) }
func (h *handler) OnDelete(object any) {
	if unknown, is := object.(cache.DeletedFinalStateUnknown); is {
		object = unknown.Obj
	}
	h.take(object)
}

func (h *handler) take(object any) {
	accessor, err := meta.Accessor(object)
	if err != nil {
		return
	}
	revision, err := strconv.ParseUint(accessor.GetResourceVersion(), 10, 64)
	if err == nil && revision > h.revision.Load() {
		h.revision.Store(revision)
	}
	h.notices.Add(1)
}
