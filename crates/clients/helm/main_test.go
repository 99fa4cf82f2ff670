// Package helm holds scenarios of Helm's library as the `helm` command uses it: releases of a chart that is made in memory.
//
// In: KUBECONFIG; each test is run alone by `src/clientgo.rs` of the crate around it. Out: the verdict of the test.
// Never: a chart, a repository or a plugin of the machine's own; a wait without a limit.
package helm

import (
	"context"
	"fmt"
	"os"
	"testing"
	"time"

	"helm.sh/helm/v3/pkg/action"
	"helm.sh/helm/v3/pkg/chart"
	"helm.sh/helm/v3/pkg/cli"
	"helm.sh/helm/v3/pkg/release"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/clientcmd"
)

// limit of every wait.
const limit = 2 * time.Minute

var widgets = schema.GroupVersionResource{Group: "helm.forebay.test", Version: "v1", Resource: "widgets"}

// lab is one test: a namespace, clients, and Helm's configuration for it.
type lab struct {
	*testing.T
	ctx       context.Context
	typed     kubernetes.Interface
	dynamic   dynamic.Interface
	config    *action.Configuration
	namespace string
}

func start(t *testing.T, namespace string) *lab {
	t.Helper()
	config, err := clientcmd.BuildConfigFromFlags("", os.Getenv("KUBECONFIG"))
	must(t, err)
	config.QPS = -1
	ctx, cancel := context.WithCancel(context.Background())
	t.Cleanup(cancel)
	l := &lab{T: t, ctx: ctx, namespace: namespace, config: &action.Configuration{}}
	l.typed, err = kubernetes.NewForConfig(config)
	must(t, err)
	l.dynamic, err = dynamic.NewForConfig(config)
	must(t, err)
	_, err = l.typed.CoreV1().Namespaces().Create(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: namespace}}, metav1.CreateOptions{})
	must(t, err)
	settings := cli.New()
	settings.KubeConfig = os.Getenv("KUBECONFIG")
	settings.SetNamespace(namespace)
	must(t, l.config.Init(settings.RESTClientGetter(), namespace, "secrets", t.Logf))
	return l
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// until waits for a condition; what it is told last is in the failure.
func (l *lab) until(what string, right func() (bool, string)) {
	l.Helper()
	last := ""
	err := wait.PollUntilContextTimeout(l.ctx, 5*time.Millisecond, limit, true, func(context.Context) (bool, error) {
		is, saw := right()
		last = saw
		return is, nil
	})
	if err != nil {
		l.Fatalf("%s: %v; last: %s", what, err, last)
	}
}

func (l *lab) install(chart *chart.Chart, wait bool) (*release.Release, error) {
	install := action.NewInstall(l.config)
	install.ReleaseName, install.Namespace, install.Wait, install.Timeout = "web", l.namespace, wait, limit
	return install.RunWithContext(l.ctx, chart, nil)
}

func (l *lab) upgrade(chart *chart.Chart, values map[string]any) (*release.Release, error) {
	upgrade := action.NewUpgrade(l.config)
	upgrade.Namespace, upgrade.Timeout = l.namespace, limit
	return upgrade.RunWithContext(l.ctx, "web", chart, values)
}

// history of the release, `revision status`, oldest first.
func (l *lab) history() string {
	l.Helper()
	all, err := action.NewHistory(l.config).Run("web")
	must(l.T, err)
	text := ""
	for _, one := range all {
		text += fmt.Sprintf("%d %s\n", one.Version, one.Info.Status)
	}
	return text
}
