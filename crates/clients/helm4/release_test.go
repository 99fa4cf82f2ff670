// Releases from their installation to their end.

package helm4

import (
	"strings"
	"testing"

	"helm.sh/helm/v4/pkg/action"
	"helm.sh/helm/v4/pkg/kube"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
)

var (
	configMaps  = schema.GroupVersionResource{Version: "v1", Resource: "configmaps"}
	deployments = schema.GroupVersionResource{Group: "apps", Version: "v1", Resource: "deployments"}
)

func TestReleaseByServerSideApply(t *testing.T) {
	l := start(t, "release-4")
	asIs, forced := func(*action.Upgrade) {}, func(upgrade *action.Upgrade) { upgrade.ForceConflicts = true }
	must(t, l.install(webChart("1.0.0"), func(*action.Install) {}))
	l.left("installed")

	// What others own beside the chart stays, and what the chart no longer says goes.
	l.edit(configMaps, "settings", types.MergePatchType, `{"data":{"by":"hand"}}`)
	l.edit(widgets, "w", types.JSONPatchType, `[{"op":"add","path":"/spec/parts/-","value":{"name":"hand"}}]`)
	l.edit(deployments, "web", types.StrategicMergePatchType, `{"spec":{"template":{"spec":{"containers":[{"name":"side","image":"side:1"}]}}}}`)
	must(t, l.upgrade(webChart("1.1.0"), map[string]any{"mode": "two", "extra": false}, asIs))
	l.left("upgraded")

	// What others changed of the chart's is told, and is the chart's again when that is forced.
	l.edit(deployments, "web", types.StrategicMergePatchType, `{"spec":{"replicas":5}}`)
	err := l.upgrade(webChart("1.2.0"), map[string]any{"replicas": 3}, asIs)
	if err == nil || !strings.Contains(err.Error(), `Apply failed with 1 conflict: conflict with "kubectl-edit" using apps/v1: .spec.replicas`) {
		t.Fatalf("no conflict: %v", err)
	}
	must(t, l.upgrade(webChart("1.2.0"), map[string]any{"replicas": 3}, forced))
	l.left("forced")

	rollback := action.NewRollback(l.config)
	rollback.Version, rollback.Timeout, rollback.WaitStrategy = 2, limit, kube.HookOnlyStrategy
	must(t, rollback.Run("web"))
	l.left("rolled_back")
	l.equal("history", l.history(), "1 superseded ssa\n2 superseded ssa\n3 failed ssa\n4 superseded ssa\n5 deployed ssa\n")

	uninstall := action.NewUninstall(l.config)
	uninstall.Timeout, uninstall.WaitStrategy = limit, kube.HookOnlyStrategy
	_, err = uninstall.Run("web")
	must(t, err)
	l.left("uninstalled")
	records, err := l.typed.CoreV1().Secrets(l.namespace).List(l.ctx, metav1.ListOptions{LabelSelector: "owner=helm"})
	must(t, err)
	if len(records.Items) != 0 {
		t.Fatalf("left: %d records", len(records.Items))
	}
}

// A release of before server-side apply, as Helm 3 made it, goes on with it.
func TestReleaseMovesToServerSideApply(t *testing.T) {
	l := start(t, "release-moves")
	must(t, l.install(webChart("1.0.0"), func(install *action.Install) { install.ServerSideApply = false }))
	l.left("by_client")
	must(t, l.upgrade(webChart("1.1.0"), map[string]any{"mode": "two", "extra": false}, func(upgrade *action.Upgrade) {
		upgrade.ServerSideApply = "true"
	}))
	l.left("moved")
	must(t, l.upgrade(webChart("1.2.0"), nil, func(*action.Upgrade) {}))
	l.equal("history", l.history(), "1 superseded csa\n2 superseded ssa\n3 deployed ssa\n")
}
