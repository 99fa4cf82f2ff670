// Package helm4 holds releases of Helm 4 with its defaults, which are server-side apply.
//
// In: KUBECONFIG; each test is run alone by `src/clientgo.rs` of the crate around it. Out: the verdict of the test.
// Never: a chart, a repository or a plugin of the machine's own; a wait without a limit.
package helm4

import (
	"context"
	"embed"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"helm.sh/helm/v4/pkg/action"
	chart "helm.sh/helm/v4/pkg/chart/v2"
	"helm.sh/helm/v4/pkg/cli"
	"helm.sh/helm/v4/pkg/kube"
	"helm.sh/helm/v4/pkg/release"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/clientcmd"
	"sigs.k8s.io/yaml"
)

// limit of every wait.
const limit = 2 * time.Minute

// What kube-apiserver had after a step. To write them anew, run a test's binary with LEFT_DIR=left on a kube-apiserver.
//
//go:embed left/*.yaml
var left embed.FS

// Kinds of the chart, in the order in which they are shown.
var kinds = []schema.GroupVersionResource{
	{Version: "v1", Resource: "configmaps"},
	{Version: "v1", Resource: "secrets"},
	{Version: "v1", Resource: "serviceaccounts"},
	{Version: "v1", Resource: "services"},
	{Group: "apps", Version: "v1", Resource: "deployments"},
	{Group: "batch", Version: "v1", Resource: "cronjobs"},
	{Group: "batch", Version: "v1", Resource: "jobs"},
	{Group: "networking.k8s.io", Version: "v1", Resource: "ingresses"},
	{Group: "rbac.authorization.k8s.io", Version: "v1", Resource: "roles"},
	{Group: "rbac.authorization.k8s.io", Version: "v1", Resource: "rolebindings"},
	widgets,
}

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
	l := &lab{T: t, ctx: ctx, namespace: namespace, config: action.NewConfiguration()}
	l.typed, err = kubernetes.NewForConfig(config)
	must(t, err)
	l.dynamic, err = dynamic.NewForConfig(config)
	must(t, err)
	_, err = l.typed.CoreV1().Namespaces().Create(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: namespace}}, metav1.CreateOptions{})
	must(t, err)
	settings := cli.New()
	settings.KubeConfig = os.Getenv("KUBECONFIG")
	settings.QPS, settings.BurstLimit = 1000, 1000
	settings.SetNamespace(namespace)
	must(t, l.config.Init(settings.RESTClientGetter(), namespace, "secrets"))
	// Else it is the name of the program.
	kube.ManagedFieldsManager = "helm"
	done := make(chan struct{})
	go l.completeJobs(done)
	t.Cleanup(func() { cancel(); <-done })
	return l
}

// completeJobs does what the Job controller would.
func (l *lab) completeJobs(done chan<- struct{}) {
	defer close(done)
	jobs := l.typed.BatchV1().Jobs(l.namespace)
	watch, err := jobs.Watch(l.ctx, metav1.ListOptions{})
	if err != nil {
		l.Errorf("jobs: %v", err)
		return
	}
	defer watch.Stop()
	for event := range watch.ResultChan() {
		job, is := event.Object.(*batchv1.Job)
		if !is || job.DeletionTimestamp != nil || job.Status.CompletionTime != nil || event.Type == "DELETED" {
			continue
		}
		now := metav1.Now()
		condition := func(kind batchv1.JobConditionType) batchv1.JobCondition {
			return batchv1.JobCondition{Type: kind, Status: corev1.ConditionTrue, LastProbeTime: now, LastTransitionTime: now}
		}
		job.Status = batchv1.JobStatus{
			StartTime: &now, CompletionTime: &now, Succeeded: 1,
			Conditions: []batchv1.JobCondition{condition(batchv1.JobSuccessCriteriaMet), condition(batchv1.JobComplete)},
		}
		if _, err := jobs.UpdateStatus(l.ctx, job, metav1.UpdateOptions{}); err != nil {
			l.Errorf("job %s: %v", job.Name, err)
		}
	}
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func (l *lab) equal(what, got, want string) {
	l.Helper()
	if got != want {
		l.Fatalf("%s: %s, not %s", what, got, want)
	}
}

// edit is what `kubectl edit` sends.
func (l *lab) edit(resource schema.GroupVersionResource, name string, kind types.PatchType, patch string) {
	l.Helper()
	_, err := l.dynamic.Resource(resource).Namespace(l.namespace).Patch(l.ctx, name, kind, []byte(patch), metav1.PatchOptions{FieldManager: "kubectl-edit"})
	must(l.T, err)
}

func (l *lab) install(chart *chart.Chart, set func(*action.Install)) error {
	install := action.NewInstall(l.config)
	install.ReleaseName, install.Namespace, install.Timeout, install.WaitStrategy = "web", l.namespace, limit, kube.HookOnlyStrategy
	set(install)
	_, err := install.RunWithContext(l.ctx, chart, nil)
	return err
}

func (l *lab) upgrade(chart *chart.Chart, values map[string]any, set func(*action.Upgrade)) error {
	upgrade := action.NewUpgrade(l.config)
	upgrade.Namespace, upgrade.Timeout, upgrade.WaitStrategy = l.namespace, limit, kube.HookOnlyStrategy
	set(upgrade)
	_, err := upgrade.RunWithContext(l.ctx, "web", chart, values)
	return err
}

// history of the release, `revision status how`, oldest first.
func (l *lab) history() string {
	l.Helper()
	all, err := action.NewHistory(l.config).Run("web")
	must(l.T, err)
	text := ""
	for _, one := range all {
		accessor, err := release.NewAccessor(one)
		must(l.T, err)
		text += fmt.Sprintf("%d %s %s\n", accessor.Version(), accessor.Status(), accessor.ApplyMethod())
	}
	return text
}

// left compares everything in the namespace, and who owns which of its fields, with what kube-apiserver had.
func (l *lab) left(step string) {
	l.Helper()
	text := ""
	for _, kind := range kinds {
		list, err := l.dynamic.Resource(kind).Namespace(l.namespace).List(l.ctx, metav1.ListOptions{})
		must(l.T, err)
		for _, item := range list.Items {
			if item.Object["type"] == "helm.sh/release.v1" {
				continue
			}
			text += "---\n" + comparable(item)
		}
	}
	name := step + ".yaml"
	if dir := os.Getenv("LEFT_DIR"); dir != "" {
		must(l.T, os.WriteFile(filepath.Join(dir, name), []byte(text), 0o644))
		return
	}
	want, err := left.ReadFile("left/" + name)
	must(l.T, err)
	wants := strings.Split(string(want), "\n")
	for at, line := range strings.Split(text, "\n") {
		if at >= len(wants) || line != wants[at] {
			l.Fatalf("%s:%d: %q is not what kube-apiserver had; all of it:\n%s", name, at+1, line, text)
		}
	}
	l.equal("length of "+name, fmt.Sprint(len(text)), fmt.Sprint(len(want)))
}

// times of a Job that was completed here.
var times = regexp.MustCompile(`\d{4}-\d{2}-\d{2}T\d{2}:\d{2}:\d{2}Z`)

// comparable leaves out what differs from run to run, and shows each owner on a line.
func comparable(item unstructured.Unstructured) string {
	uid := item.GetUID()
	item.SetUID("")
	item.SetResourceVersion("")
	unstructured.RemoveNestedField(item.Object, "metadata", "creationTimestamp")
	if spec, is := item.Object["spec"].(map[string]any); is && spec["clusterIP"] != nil {
		spec["clusterIP"], spec["clusterIPs"] = "an address", "addresses"
	}
	owned := map[string]any{}
	for _, owner := range item.GetManagedFields() {
		key := strings.TrimSpace(fmt.Sprint(owner.Manager, " ", owner.Operation, " ", owner.Subresource))
		owned[key] = fmt.Sprint(owner.APIVersion, " ", string(owner.FieldsV1.Raw))
	}
	item.SetManagedFields(nil)
	item.Object["owned"] = owned
	shown, err := yaml.Marshal(item.Object)
	if err != nil {
		panic(err)
	}
	return times.ReplaceAllString(strings.ReplaceAll(string(shown), string(uid), "<uid>"), "<time>")
}
