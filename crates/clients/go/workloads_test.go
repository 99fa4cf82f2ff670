// What else kube-controller-manager and kube-scheduler do for a cluster, on objects of many kinds.

package clients

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	policyv1 "k8s.io/api/policy/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
)

func template(c *clients, marks map[string]string) corev1.PodTemplateSpec {
	spec := podSpec()
	c.onNodes(&spec)
	return corev1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{Labels: marks}, Spec: spec}
}

// A stateful set makes its pods in order, each with a claim that is bound to a volume.
func TestClusterRunsAStatefulSet(t *testing.T) {
	c := start(t, "cluster-stateful")
	c.nodes(1)
	const class = "cluster-stateful"
	for at := range 2 {
		_, err := c.typed.CoreV1().PersistentVolumes().Create(c.ctx, &corev1.PersistentVolume{
			ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprintf("%s-%d", class, at)},
			Spec: corev1.PersistentVolumeSpec{
				StorageClassName:       class,
				AccessModes:            []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce},
				Capacity:               corev1.ResourceList{corev1.ResourceStorage: resource.MustParse("1Gi")},
				PersistentVolumeSource: corev1.PersistentVolumeSource{HostPath: &corev1.HostPathVolumeSource{Path: "/nowhere"}},
			},
		}, metav1.CreateOptions{})
		must(t, err)
	}
	marks := map[string]string{"app": "db"}
	pods := template(c, marks)
	pods.Spec.Containers[0].VolumeMounts = []corev1.VolumeMount{{Name: "data", MountPath: "/data"}}
	_, err := c.typed.AppsV1().StatefulSets(c.namespace).Create(c.ctx, &appsv1.StatefulSet{
		ObjectMeta: metav1.ObjectMeta{Name: "db"},
		Spec: appsv1.StatefulSetSpec{
			Replicas: ptr(int32(2)), ServiceName: "db", Selector: &metav1.LabelSelector{MatchLabels: marks}, Template: pods,
			VolumeClaimTemplates: []corev1.PersistentVolumeClaim{{
				ObjectMeta: metav1.ObjectMeta{Name: "data"},
				Spec: corev1.PersistentVolumeClaimSpec{
					StorageClassName: ptr(class),
					AccessModes:      []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce},
					Resources:        corev1.VolumeResourceRequirements{Requests: corev1.ResourceList{corev1.ResourceStorage: resource.MustParse("1Gi")}},
				},
			}},
		},
	}, metav1.CreateOptions{})
	must(t, err)
	c.until("both are ready", func() (bool, string) {
		set, err := c.typed.AppsV1().StatefulSets(c.namespace).Get(c.ctx, "db", metav1.GetOptions{})
		must(t, err)
		return set.Status.ReadyReplicas == 2 && set.Status.CurrentRevision == set.Status.UpdateRevision, fmt.Sprintf("%+v", set.Status)
	})
	first, err := c.typed.CoreV1().Pods(c.namespace).Get(c.ctx, "db-0", metav1.GetOptions{})
	must(t, err)
	second, err := c.typed.CoreV1().Pods(c.namespace).Get(c.ctx, "db-1", metav1.GetOptions{})
	must(t, err)
	if second.CreationTimestamp.Before(&first.CreationTimestamp) {
		t.Fatalf("db-1 was made %v, db-0 %v", second.CreationTimestamp, first.CreationTimestamp)
	}
	volumes := map[string]bool{}
	for _, name := range []string{"data-db-0", "data-db-1"} {
		// A pod may be placed as soon as its claim names its volume; that it is bound is said after that.
		c.until(name+" is bound", func() (bool, string) {
			claim, err := c.typed.CoreV1().PersistentVolumeClaims(c.namespace).Get(c.ctx, name, metav1.GetOptions{})
			must(t, err)
			volume, err := c.typed.CoreV1().PersistentVolumes().Get(c.ctx, claim.Spec.VolumeName, metav1.GetOptions{})
			must(t, err)
			volumes[volume.Name] = true
			is := claim.Status.Phase == corev1.ClaimBound && volume.Status.Phase == corev1.VolumeBound && volume.Spec.ClaimRef.UID == claim.UID
			return is, fmt.Sprintf("%+v, its volume %+v", claim.Status, volume.Spec.ClaimRef)
		})
	}
	if len(volumes) != 2 {
		t.Fatalf("one volume for both: %v", volumes)
	}
}

// A daemon set has a pod on each node; a service finds them; a budget counts them and holds an eviction back.
func TestClusterServesADaemonSet(t *testing.T) {
	c := start(t, "cluster-daemons")
	c.nodes(2)
	marks := map[string]string{"app": "agent"}
	_, err := c.typed.CoreV1().Services(c.namespace).Create(c.ctx, &corev1.Service{
		ObjectMeta: metav1.ObjectMeta{Name: "agent"},
		Spec:       corev1.ServiceSpec{Selector: marks, Ports: []corev1.ServicePort{{Name: "http", Port: 80, TargetPort: intstr.FromString("http")}}},
	}, metav1.CreateOptions{})
	must(t, err)
	_, err = c.typed.PolicyV1().PodDisruptionBudgets(c.namespace).Create(c.ctx, &policyv1.PodDisruptionBudget{
		ObjectMeta: metav1.ObjectMeta{Name: "agent"},
		Spec:       policyv1.PodDisruptionBudgetSpec{MinAvailable: ptr(intstr.FromInt32(2)), Selector: &metav1.LabelSelector{MatchLabels: marks}},
	}, metav1.CreateOptions{})
	must(t, err)
	_, err = c.typed.AppsV1().DaemonSets(c.namespace).Create(c.ctx, &appsv1.DaemonSet{
		ObjectMeta: metav1.ObjectMeta{Name: "agent"},
		Spec:       appsv1.DaemonSetSpec{Selector: &metav1.LabelSelector{MatchLabels: marks}, Template: template(c, marks)},
	}, metav1.CreateOptions{})
	must(t, err)
	c.until("one on each node is ready", func() (bool, string) {
		set, err := c.typed.AppsV1().DaemonSets(c.namespace).Get(c.ctx, "agent", metav1.GetOptions{})
		must(t, err)
		count, on := c.pods("app=agent")
		return set.Status.NumberReady == 2 && count == 2 && len(on) == 2, fmt.Sprintf("%+v on %v", set.Status, on)
	})
	c.until("the service finds both", func() (bool, string) {
		found, err := c.typed.DiscoveryV1().EndpointSlices(c.namespace).List(c.ctx, metav1.ListOptions{LabelSelector: discoveryv1.LabelServiceName + "=agent"})
		must(t, err)
		text := ""
		ready := 0
		for _, slice := range found.Items {
			for _, endpoint := range slice.Endpoints {
				if *endpoint.Conditions.Ready && *slice.Ports[0].Port == 80 && endpoint.TargetRef.Kind == "Pod" {
					ready++
				}
				text += fmt.Sprintln(endpoint.Addresses, endpoint.NodeName)
			}
		}
		return ready == 2, text
	})
	c.until("the budget has counted", func() (bool, string) {
		budget, err := c.typed.PolicyV1().PodDisruptionBudgets(c.namespace).Get(c.ctx, "agent", metav1.GetOptions{})
		must(t, err)
		status := budget.Status
		return status.ObservedGeneration == budget.Generation && status.CurrentHealthy == 2 && status.DesiredHealthy == 2 && status.DisruptionsAllowed == 0, fmt.Sprintf("%+v", status)
	})
}

// A quota is counted, and what is finished goes after its time.
func TestClusterKeepsCount(t *testing.T) {
	c := start(t, "cluster-counts")
	c.nodes(1)
	secrets := c.typed.CoreV1().Secrets(c.namespace)
	for _, name := range []string{"a", "b", "c"} {
		_, err := secrets.Create(c.ctx, &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: name}}, metav1.CreateOptions{})
		must(t, err)
	}
	_, err := c.typed.CoreV1().ResourceQuotas(c.namespace).Create(c.ctx, &corev1.ResourceQuota{
		ObjectMeta: metav1.ObjectMeta{Name: "quota"},
		Spec:       corev1.ResourceQuotaSpec{Hard: corev1.ResourceList{"secrets": resource.MustParse("10"), "count/jobs.batch": resource.MustParse("5")}},
	}, metav1.CreateOptions{})
	must(t, err)
	c.until("the quota is counted", func() (bool, string) {
		quota, err := c.typed.CoreV1().ResourceQuotas(c.namespace).Get(c.ctx, "quota", metav1.GetOptions{})
		must(t, err)
		hard := quota.Status.Hard["secrets"]
		used, counted := quota.Status.Used["secrets"]
		if counted && used.Value() != 3 {
			// Counted is what the controller's informer of secrets held, which may be behind that of quotas; and only what goes
			// has it count again. This goes after the three have come, in the order in which it is told.
			_, err := secrets.Create(c.ctx, &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: "passing"}}, metav1.CreateOptions{})
			must(t, err)
			must(t, secrets.Delete(c.ctx, "passing", metav1.DeleteOptions{}))
		}
		return counted && hard.Value() == 10 && used.Value() == 3, fmt.Sprintf("%+v", quota.Status)
	})
	work := template(c, nil)
	work.Spec.RestartPolicy = corev1.RestartPolicyNever
	jobs := c.typed.BatchV1().Jobs(c.namespace)
	made, err := jobs.Create(c.ctx, &batchv1.Job{
		ObjectMeta: metav1.ObjectMeta{Name: "short"},
		Spec:       batchv1.JobSpec{Template: work, TTLSecondsAfterFinished: ptr(int32(0))},
	}, metav1.CreateOptions{})
	must(t, err)
	if made.Spec.Selector.MatchLabels[batchv1.ControllerUidLabel] != string(made.UID) {
		t.Fatalf("the selector is %v", made.Spec.Selector)
	}
	c.until("the job is gone when it is done, and its pods", func() (bool, string) {
		_, err := jobs.Get(c.ctx, "short", metav1.GetOptions{})
		count, on := c.pods(batchv1.JobNameLabel + "=short")
		return apierrors.IsNotFound(err) && count == 0, fmt.Sprint(err, on)
	})
}

// What the scheduler cannot place stays pending and says why; a taint keeps pods away from a node.
func TestClusterSchedulerSaysWhy(t *testing.T) {
	c := start(t, "cluster-unplaced")
	c.nodes(1)
	node, err := c.typed.CoreV1().Nodes().Get(c.ctx, c.namespace+"-0", metav1.GetOptions{})
	must(t, err)
	// The label comes with the taint, and pods ask for it: who has not seen the one has not seen the other, and places nothing.
	taint := []byte(`{"metadata":{"labels":{"only":"gpu"}},"spec":{"taints":[{"key":"only","value":"gpu","effect":"NoSchedule"}]}}`)
	_, err = c.typed.CoreV1().Nodes().Patch(c.ctx, node.Name, "application/merge-patch+json", taint, metav1.PatchOptions{})
	must(t, err)
	pods := c.typed.CoreV1().Pods(c.namespace)
	place := func(name string, tolerates bool, cpu string) {
		t.Helper()
		spec := template(c, nil).Spec
		spec.NodeSelector["only"] = "gpu"
		spec.Containers[0].Resources.Requests[corev1.ResourceCPU] = resource.MustParse(cpu)
		if tolerates {
			spec.Tolerations = []corev1.Toleration{{Key: "only", Operator: corev1.TolerationOpEqual, Value: "gpu", Effect: corev1.TaintEffectNoSchedule}}
		}
		_, err := pods.Create(c.ctx, &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: spec}, metav1.CreateOptions{})
		must(t, err)
	}
	place("kept-away", false, "100m")
	place("too-big", true, "64")
	place("fits", true, "100m")
	for name, why := range map[string]string{"kept-away": "untolerated taint", "too-big": "Insufficient cpu"} {
		c.until(name+" is told why", func() (bool, string) {
			pod, err := pods.Get(c.ctx, name, metav1.GetOptions{})
			must(t, err)
			list, err := c.typed.CoreV1().Events(c.namespace).List(c.ctx, metav1.ListOptions{FieldSelector: "reason=FailedScheduling,involvedObject.name=" + name})
			must(t, err)
			said := slices.ContainsFunc(list.Items, func(event corev1.Event) bool { return strings.Contains(event.Message, why) })
			for _, condition := range pod.Status.Conditions {
				if condition.Type == corev1.PodScheduled && condition.Reason == corev1.PodReasonUnschedulable && strings.Contains(condition.Message, why) {
					return said && pod.Spec.NodeName == "", ""
				}
			}
			return false, fmt.Sprintf("%+v %v", pod.Status, list.Items)
		})
	}
	c.until("the one that fits runs", func() (bool, string) {
		pod, err := pods.Get(c.ctx, "fits", metav1.GetOptions{})
		must(t, err)
		return pod.Spec.NodeName == node.Name && pod.Status.Phase == corev1.PodRunning, fmt.Sprintf("%+v", pod.Status)
	})
	// Room is made: the taint goes, and what waited is placed.
	_, err = c.typed.CoreV1().Nodes().Patch(c.ctx, node.Name, "application/merge-patch+json", []byte(`{"spec":{"taints":null}}`), metav1.PatchOptions{})
	must(t, err)
	c.until("the one that was kept away runs", func() (bool, string) {
		pod, err := pods.Get(c.ctx, "kept-away", metav1.GetOptions{})
		must(t, err)
		return pod.Status.Phase == corev1.PodRunning, fmt.Sprintf("%+v", pod.Status)
	})
}
