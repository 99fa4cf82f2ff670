// A release from its installation to its end.

package helm

import (
	"fmt"
	"strings"
	"testing"

	"helm.sh/helm/v3/pkg/action"
	"helm.sh/helm/v3/pkg/release"
	appsv1 "k8s.io/api/apps/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
)

func (l *lab) settings() string {
	l.Helper()
	settings, err := l.typed.CoreV1().ConfigMaps(l.namespace).Get(l.ctx, "settings", metav1.GetOptions{})
	must(l.T, err)
	return strings.TrimPrefix(fmt.Sprint(settings.Data), "map")
}

func (l *lab) widgetSpec() string {
	l.Helper()
	widget, err := l.dynamic.Resource(widgets).Namespace(l.namespace).Get(l.ctx, "w", metav1.GetOptions{})
	must(l.T, err)
	spec, _, err := unstructured.NestedMap(widget.Object, "spec")
	must(l.T, err)
	return strings.TrimPrefix(fmt.Sprint(spec), "map")
}

func (l *lab) web() *appsv1.Deployment {
	l.Helper()
	web, err := l.typed.AppsV1().Deployments(l.namespace).Get(l.ctx, "web", metav1.GetOptions{})
	must(l.T, err)
	return web
}

func equal(t *testing.T, what, got, want string) {
	t.Helper()
	if got != want {
		t.Fatalf("%s: %s, not %s", what, got, want)
	}
}

func TestRelease(t *testing.T) {
	l := start(t, "release")
	installed, err := l.install(webChart("1.0.0"), false)
	must(t, err)
	equal(t, "installed", fmt.Sprintf("%d %s", installed.Version, installed.Info.Status), "1 deployed")
	equal(t, "settings", l.settings(), "[extra:yes found:release minor:36 mode:one served:true,true,false]")
	equal(t, "widget", l.widgetSpec(), "[extra:true mode:one]")
	secret, err := l.typed.CoreV1().Secrets(l.namespace).Get(l.ctx, "sh.helm.release.v1.web.v1", metav1.GetOptions{})
	must(t, err)
	equal(t, "the release's record", fmt.Sprintf("%s %s %s", secret.Type, secret.Labels["owner"], secret.Labels["status"]), "helm.sh/release.v1 helm deployed")
	_, err = l.typed.CoreV1().ConfigMaps(l.namespace).Get(l.ctx, "hook", metav1.GetOptions{})
	if !apierrors.IsNotFound(err) {
		t.Fatalf("the hook stays: %v", err)
	}
	if _, err := l.install(webChart("1.0.0"), false); err == nil || !strings.Contains(err.Error(), "cannot re-use a name that is still in use") {
		t.Fatalf("installed twice: %v", err)
	}

	// People change what Helm made: what the chart says comes back, what it does not speak of stays.
	_, err = l.typed.AppsV1().Deployments(l.namespace).Patch(l.ctx, "web", types.StrategicMergePatchType,
		[]byte(`{"metadata":{"annotations":{"by":"hand"}},"spec":{"replicas":5,"template":{"spec":{"containers":[{"name":"side","image":"side:1"}]}}}}`), metav1.PatchOptions{})
	must(t, err)
	_, err = l.typed.CoreV1().ConfigMaps(l.namespace).Patch(l.ctx, "settings", types.MergePatchType, []byte(`{"data":{"by":"hand"}}`), metav1.PatchOptions{})
	must(t, err)
	_, err = l.dynamic.Resource(widgets).Namespace(l.namespace).Patch(l.ctx, "w", types.MergePatchType, []byte(`{"spec":{"by":"hand"}}`), metav1.PatchOptions{})
	must(t, err)
	upgraded, err := l.upgrade(webChart("1.1.0"), map[string]any{"mode": "two", "extra": false, "image": "registry.test/main:2"})
	must(t, err)
	equal(t, "upgraded", fmt.Sprintf("%d %s", upgraded.Version, upgraded.Info.Status), "2 deployed")
	equal(t, "settings", l.settings(), "[by:hand found:release minor:36 mode:two served:true,true,false]")
	equal(t, "widget", l.widgetSpec(), "[by:hand mode:two]")
	web := l.web()
	images := ""
	for _, container := range web.Spec.Template.Spec.Containers {
		images += container.Name + "=" + container.Image + " "
	}
	// A container more is not in the chart, and stays.
	equal(t, "web", fmt.Sprintf("%d %s %s", *web.Spec.Replicas, web.Annotations["by"], images), "2 hand side=side:1 main=registry.test/main:2 ")

	// What the server refuses fails the release, and a rollback mends it.
	_, err = l.upgrade(webChart("1.2.0"), map[string]any{"app": "other"})
	if err == nil || !strings.Contains(err.Error(), "field is immutable") {
		t.Fatalf("an immutable field: %v", err)
	}
	equal(t, "history", l.history(), "1 superseded\n2 deployed\n3 failed\n")
	rollback := action.NewRollback(l.config)
	rollback.Version = 1
	must(t, rollback.Run("web"))
	equal(t, "history", l.history(), "1 superseded\n2 superseded\n3 failed\n4 deployed\n")
	equal(t, "settings", l.settings(), "[by:hand extra:yes found:release minor:36 mode:one served:true,true,false]")
	equal(t, "widget", l.widgetSpec(), "[by:hand extra:true mode:one]")
	equal(t, "web", l.web().Spec.Template.Spec.Containers[1].Image, "registry.test/main:1")
	list, err := action.NewList(l.config).Run()
	must(t, err)
	if len(list) != 1 || list[0].Name != "web" || list[0].Version != 4 {
		t.Fatalf("listed: %v", list)
	}
	// As Tables, which is what a person sees.
	asked := action.NewStatus(l.config)
	asked.ShowResources, asked.ShowResourcesTable = true, true
	status, err := asked.Run("web")
	must(t, err)
	resources := status.Info.Resources
	if status.Version != 4 || status.Info.Status != release.StatusDeployed || len(resources["v1/ConfigMap"]) != 2 || len(resources["v1/Widget"]) != 1 {
		t.Fatalf("the status is %+v", status.Info)
	}

	uninstall := action.NewUninstall(l.config)
	uninstall.DeletionPropagation = "background"
	gone, err := uninstall.Run("web")
	must(t, err)
	if !strings.Contains(gone.Info, "[ConfigMap] kept") {
		t.Fatalf("what is kept is not told: %s", gone.Info)
	}
	_, err = l.typed.AppsV1().Deployments(l.namespace).Get(l.ctx, "web", metav1.GetOptions{})
	if !apierrors.IsNotFound(err) {
		t.Fatalf("still there: %v", err)
	}
	records, err := l.typed.CoreV1().Secrets(l.namespace).List(l.ctx, metav1.ListOptions{LabelSelector: "owner=helm"})
	must(t, err)
	left, err := l.typed.CoreV1().ConfigMaps(l.namespace).List(l.ctx, metav1.ListOptions{LabelSelector: "app.kubernetes.io/managed-by=Helm"})
	must(t, err)
	if len(records.Items) != 0 || len(left.Items) != 1 || left.Items[0].Name != "kept" {
		t.Fatalf("left: %d records, %v", len(records.Items), left.Items)
	}
	// Custom kinds outlive the releases that brought them.
	_, err = l.dynamic.Resource(widgets).Namespace(l.namespace).List(l.ctx, metav1.ListOptions{})
	must(t, err)
}

// Helm waits until the Deployment is ready; the test does what its controller would do.
func TestReleaseWaits(t *testing.T) {
	l := start(t, "release-waits")
	done := make(chan error, 1)
	go func() {
		_, err := l.install(webChart("1.0.0"), true)
		done <- err
	}()
	l.until("the deployment is there", func() (bool, string) {
		_, err := l.typed.AppsV1().Deployments(l.namespace).Get(l.ctx, "web", metav1.GetOptions{})
		return err == nil, fmt.Sprint(err)
	})
	record, err := l.typed.CoreV1().Secrets(l.namespace).Get(l.ctx, "sh.helm.release.v1.web.v1", metav1.GetOptions{})
	must(t, err)
	equal(t, "the release", record.Labels["status"], "pending-install")
	web := l.web()
	sets := l.typed.AppsV1().ReplicaSets(l.namespace)
	set, err := sets.Create(l.ctx, &appsv1.ReplicaSet{
		ObjectMeta: metav1.ObjectMeta{
			Name: "web-1", Labels: web.Spec.Template.Labels,
			OwnerReferences: []metav1.OwnerReference{*metav1.NewControllerRef(web, appsv1.SchemeGroupVersion.WithKind("Deployment"))},
		},
		Spec: appsv1.ReplicaSetSpec{Replicas: web.Spec.Replicas, Selector: web.Spec.Selector, Template: web.Spec.Template},
	}, metav1.CreateOptions{})
	must(t, err)
	set.Status = appsv1.ReplicaSetStatus{Replicas: 2, FullyLabeledReplicas: 2, ReadyReplicas: 2, AvailableReplicas: 2, ObservedGeneration: set.Generation}
	_, err = sets.UpdateStatus(l.ctx, set, metav1.UpdateOptions{})
	must(t, err)
	web.Status = appsv1.DeploymentStatus{Replicas: 2, UpdatedReplicas: 2, ReadyReplicas: 2, AvailableReplicas: 2, ObservedGeneration: web.Generation}
	_, err = l.typed.AppsV1().Deployments(l.namespace).UpdateStatus(l.ctx, web, metav1.UpdateOptions{})
	must(t, err)
	must(t, <-done)
	equal(t, "history", l.history(), "1 deployed\n")
}
