// Program cert-manager is what cert-manager's three programs do that matter here, its controllers, its webhook and its
// injector of authorities, put together from its packages: their own commands are modules that are not published.
package main

import (
	"context"
	"flag"
	"log"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/cert-manager/cert-manager/internal/apis/config/shared"
	config "github.com/cert-manager/cert-manager/internal/apis/config/webhook"
	"github.com/cert-manager/cert-manager/internal/webhook"
	"github.com/cert-manager/cert-manager/pkg/api"
	"github.com/cert-manager/cert-manager/pkg/controller"
	"github.com/cert-manager/cert-manager/pkg/controller/cainjector"
	_ "github.com/cert-manager/cert-manager/pkg/controller/certificaterequests/approver"
	_ "github.com/cert-manager/cert-manager/pkg/controller/certificaterequests/ca"
	_ "github.com/cert-manager/cert-manager/pkg/controller/certificaterequests/selfsigned"
	_ "github.com/cert-manager/cert-manager/pkg/controller/certificates/issuing"
	_ "github.com/cert-manager/cert-manager/pkg/controller/certificates/keymanager"
	_ "github.com/cert-manager/cert-manager/pkg/controller/certificates/readiness"
	_ "github.com/cert-manager/cert-manager/pkg/controller/certificates/requestmanager"
	_ "github.com/cert-manager/cert-manager/pkg/controller/certificates/revisionmanager"
	_ "github.com/cert-manager/cert-manager/pkg/controller/certificates/trigger"
	_ "github.com/cert-manager/cert-manager/pkg/controller/issuers"
	_ "github.com/cert-manager/cert-manager/pkg/issuer/ca"
	_ "github.com/cert-manager/cert-manager/pkg/issuer/selfsigned"
	logf "github.com/cert-manager/cert-manager/pkg/logs"
	apiextensions "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/tools/clientcmd"
	apiregistration "k8s.io/kube-aggregator/pkg/apis/apiregistration/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	metrics "sigs.k8s.io/controller-runtime/pkg/metrics/server"
)

func main() {
	port := flag.Int("secure-port", 0, "of the webhook")
	namespace := flag.String("namespace", "cert-manager", "of the webhook's authority")
	flag.Parse()
	kubeconfig := os.Getenv("KUBECONFIG")
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	logf.InitLogs()
	ctx = logf.NewContext(ctx, logf.Log)

	options := config.WebhookConfiguration{
		SecurePort:           int32(*port),
		KubeConfig:           kubeconfig,
		MetricsListenAddress: "0",
	}
	options.TLSConfig.Dynamic = shared.DynamicServingConfig{
		SecretNamespace: *namespace,
		SecretName:      "cert-manager-webhook-ca",
		DNSNames:        []string{"localhost"},
		LeafDuration:    24 * time.Hour,
	}
	server, err := webhook.NewCertManagerWebhookServer(logf.Log, options)
	must(err)
	go func() { must(server.Run(ctx)) }()

	factory, err := controller.NewContextFactory(ctx, controller.ContextOptions{
		Kubeconfig:    kubeconfig,
		IssuerOptions: controller.IssuerOptions{ClusterResourceNamespace: *namespace},
		CertificateOptions: controller.CertificateOptions{
			CertificateRequestMinimumBackoffDuration: time.Hour,
			CertificateRequestMaximumBackoffDuration: 32 * time.Hour,
		},
	})
	must(err)
	base, err := factory.Build()
	must(err)
	var all []controller.Interface
	for _, known := range controller.Known() {
		one, err := known(factory)
		must(err)
		all = append(all, one)
	}
	base.SharedInformerFactory.Start(ctx.Done())
	base.KubeSharedInformerFactory.Start(ctx.Done())
	base.HTTP01ResourceMetadataInformersFactory.Start(ctx.Done())
	for _, one := range all {
		go func() { must(one.Run(2, ctx)) }()
	}

	known := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{
		scheme.AddToScheme, api.AddToScheme, apiextensions.AddToScheme, apiregistration.AddToScheme,
	} {
		must(add(known))
	}
	access, err := clientcmd.BuildConfigFromFlags("", kubeconfig)
	must(err)
	access.UserAgent = "cainjector"
	manager, err := ctrl.NewManager(access, ctrl.Options{Scheme: known, Metrics: metrics.Options{BindAddress: "0"}})
	must(err)
	must(cainjector.RegisterAllInjectors(ctx, manager, cainjector.SetupOptions{
		Namespace:                    *namespace,
		EnableCertificatesDataSource: true,
		EnabledReconcilersFor: map[string]bool{
			cainjector.MutatingWebhookConfigurationName:   true,
			cainjector.ValidatingWebhookConfigurationName: true,
			cainjector.APIServiceName:                     true,
			cainjector.CustomResourceDefinitionName:       true,
		},
	}))
	must(manager.Start(ctx))
}

func must(err error) {
	if err != nil {
		log.Fatal(err)
	}
}
