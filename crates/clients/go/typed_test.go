// A typed clientset as client-go makes it by default: it sends protobuf and prefers it in answers.

package clients

import (
	"bytes"
	"fmt"
	"strings"
	"sync"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	autoscalingv1 "k8s.io/api/autoscaling/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"
	applycorev1 "k8s.io/client-go/applyconfigurations/core/v1"
	"k8s.io/client-go/util/retry"
)

// deployment of one container.
func deployment(name string, replicas int32) *appsv1.Deployment {
	marks := map[string]string{"app": name}
	return &appsv1.Deployment{
		ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{"made": "here"}},
		Spec: appsv1.DeploymentSpec{
			Replicas: &replicas,
			Selector: &metav1.LabelSelector{MatchLabels: marks},
			Template: corev1.PodTemplateSpec{
				ObjectMeta: metav1.ObjectMeta{Labels: marks},
				Spec:       podSpec(),
			},
		},
	}
}

func podSpec() corev1.PodSpec {
	return corev1.PodSpec{TerminationGracePeriodSeconds: ptr(int64(1)), Containers: []corev1.Container{{
		Name:  "main",
		Image: "registry.test/main:1",
		Resources: corev1.ResourceRequirements{Requests: corev1.ResourceList{
			corev1.ResourceCPU: resource.MustParse("100m"),
		}},
		Ports: []corev1.ContainerPort{{Name: "http", ContainerPort: 80}},
	}}}
}

func TestTypedObjects(t *testing.T) {
	c := start(t, "typed-objects")
	deployments := c.typed.AppsV1().Deployments(c.namespace)
	made, err := deployments.Create(c.ctx, deployment("web", 2), metav1.CreateOptions{})
	must(t, err)
	// Defaults came back.
	container := made.Spec.Template.Spec.Containers[0]
	if made.Spec.Strategy.RollingUpdate.MaxSurge.String() != "25%" || *made.Spec.RevisionHistoryLimit != 10 ||
		container.TerminationMessagePath != "/dev/termination-log" || container.Ports[0].Protocol != corev1.ProtocolTCP ||
		!container.Resources.Requests.Cpu().Equal(resource.MustParse("100m")) {
		t.Fatalf("not defaulted: %+v", made.Spec)
	}
	got, err := deployments.Get(c.ctx, "web", metav1.GetOptions{})
	must(t, err)
	if !equality.Semantic.DeepEqual(made, got) {
		t.Fatalf("made %+v\ngot %+v", made, got)
	}
	status := got.DeepCopy()
	status.Status.ObservedGeneration = got.Generation
	status.Spec.Replicas = ptr(int32(7))
	status, err = deployments.UpdateStatus(c.ctx, status, metav1.UpdateOptions{})
	must(t, err)
	if *status.Spec.Replicas != 2 || status.Status.ObservedGeneration != 1 {
		t.Fatalf("the status is written with the spec: %+v", status)
	}

	secrets := c.typed.CoreV1().Secrets(c.namespace)
	data := []byte{0, 1, 2, 0xff, '\n'}
	_, err = secrets.Create(c.ctx, &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Name: "binary"}, Data: map[string][]byte{"k": data}, StringData: map[string]string{"s": "text"},
	}, metav1.CreateOptions{})
	must(t, err)
	secret, err := secrets.Get(c.ctx, "binary", metav1.GetOptions{})
	must(t, err)
	if !bytes.Equal(secret.Data["k"], data) || string(secret.Data["s"]) != "text" || secret.Type != corev1.SecretTypeOpaque {
		t.Fatalf("not what was stored: %+v", secret)
	}

	_, err = deployments.Create(c.ctx, deployment("web", 2), metav1.CreateOptions{})
	if !apierrors.IsAlreadyExists(err) {
		t.Fatalf("created twice: %v", err)
	}
	bad := deployment("Bad_Name", 2)
	bad.Spec.Selector.MatchLabels["app"] = "other"
	_, err = deployments.Create(c.ctx, bad, metav1.CreateOptions{})
	if !apierrors.IsInvalid(err) || !apierrors.HasStatusCause(err, metav1.CauseTypeFieldValueInvalid) {
		t.Fatalf("not invalid: %v", err)
	}
	_, err = deployments.Get(c.ctx, "nothing", metav1.GetOptions{})
	if !apierrors.IsNotFound(err) || err.Error() != `deployments.apps "nothing" not found` {
		t.Fatalf("not told as not found: %v", err)
	}
	must(t, deployments.DeleteCollection(c.ctx, metav1.DeleteOptions{}, metav1.ListOptions{LabelSelector: "made=here"}))
	left, err := deployments.List(c.ctx, metav1.ListOptions{})
	must(t, err)
	if len(left.Items) != 0 || left.ResourceVersion == "" {
		t.Fatalf("left: %+v", left)
	}
}

func TestWritersRetryOnConflict(t *testing.T) {
	c := start(t, "typed-conflict")
	maps := c.typed.CoreV1().ConfigMaps(c.namespace)
	first, err := maps.Create(c.ctx, &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "shared"}, Data: map[string]string{}}, metav1.CreateOptions{})
	must(t, err)
	const writers, rounds = 4, 5
	conflicts := 0
	var mutex sync.Mutex
	var all sync.WaitGroup
	failed := make(chan error, writers)
	for writer := range writers {
		all.Go(func() {
			for round := range rounds {
				// client-go gives up after five tries; several writers may need more.
				err := retry.OnError(retry.DefaultBackoff, apierrors.IsConflict, func() error {
					return retry.RetryOnConflict(retry.DefaultBackoff, func() error {
						current, err := maps.Get(c.ctx, "shared", metav1.GetOptions{})
						if err != nil {
							return err
						}
						if current.Data == nil {
							current.Data = map[string]string{}
						}
						current.Data[fmt.Sprintf("w%d-%d", writer, round)] = "x"
						_, err = maps.Update(c.ctx, current, metav1.UpdateOptions{})
						if apierrors.IsConflict(err) {
							mutex.Lock()
							conflicts++
							mutex.Unlock()
						}
						return err
					})
				})
				if err != nil {
					failed <- err
					return
				}
			}
		})
	}
	all.Wait()
	close(failed)
	for err := range failed {
		t.Fatal(err)
	}
	current, err := maps.Get(c.ctx, "shared", metav1.GetOptions{})
	must(t, err)
	if len(current.Data) != writers*rounds {
		t.Fatalf("%d of %d writes are there after %d conflicts", len(current.Data), writers*rounds, conflicts)
	}
	first.Data = map[string]string{"stale": "x"}
	_, err = maps.Update(c.ctx, first, metav1.UpdateOptions{})
	if !apierrors.IsConflict(err) || !strings.Contains(err.Error(), "please apply your changes to the latest version") {
		t.Fatalf("a stale write: %v", err)
	}
}

func TestTypedPatches(t *testing.T) {
	c := start(t, "typed-patches")
	deployments := c.typed.AppsV1().Deployments(c.namespace)
	_, err := deployments.Create(c.ctx, deployment("web", 2), metav1.CreateOptions{})
	must(t, err)
	for _, row := range []struct {
		kind types.PatchType
		body string
		want string
	}{
		{types.JSONPatchType, `[{"op":"test","path":"/spec/replicas","value":2},{"op":"replace","path":"/spec/replicas","value":3}]`, "3 main"},
		{types.MergePatchType, `{"spec":{"replicas":4}}`, "4 main"},
		{types.StrategicMergePatchType, `{"spec":{"template":{"spec":{"containers":[{"name":"side","image":"side:1"}]}}}}`, "4 side main"},
		{types.StrategicMergePatchType, `{"spec":{"template":{"spec":{"containers":[{"name":"main","$patch":"delete"}]}}}}`, "4 side"},
		{types.MergePatchType, `{"spec":{"template":{"spec":{"containers":[{"name":"new","image":"new:1"}]}}}}`, "4 new"},
	} {
		patched, err := deployments.Patch(c.ctx, "web", row.kind, []byte(row.body), metav1.PatchOptions{})
		must(t, err)
		got := fmt.Sprint(*patched.Spec.Replicas)
		for _, container := range patched.Spec.Template.Spec.Containers {
			got += " " + container.Name
		}
		if got != row.want {
			t.Fatalf("%s %s: %s", row.kind, row.body, got)
		}
	}
	_, err = deployments.Patch(c.ctx, "web", types.MergePatchType, []byte(`{"spec":{"selector":{"matchLabels":{"app":"other"}}}}`), metav1.PatchOptions{})
	if !apierrors.IsInvalid(err) || !strings.Contains(err.Error(), "field is immutable") {
		t.Fatalf("an immutable field: %v", err)
	}
	_, err = deployments.Patch(c.ctx, "web", types.MergePatchType, []byte(`{"status":{"replicas":9}}`), metav1.PatchOptions{}, "status")
	must(t, err)
	web, err := deployments.Get(c.ctx, "web", metav1.GetOptions{})
	must(t, err)
	if web.Status.Replicas != 9 || *web.Spec.Replicas != 4 {
		t.Fatalf("the status is %+v", web.Status)
	}
}

// Server-side apply creates, changes, says whose a field is, and takes it when it is forced to.
func TestTypedApply(t *testing.T) {
	c := start(t, "typed-apply")
	configMaps := c.typed.CoreV1().ConfigMaps(c.namespace)
	apply := func(manager, value string, force bool) (*corev1.ConfigMap, error) {
		wanted := applycorev1.ConfigMap("applied", c.namespace).WithData(map[string]string{"k": value})
		return configMaps.Apply(c.ctx, wanted, metav1.ApplyOptions{FieldManager: manager, Force: force})
	}
	for _, value := range []string{"v", "w"} {
		applied, err := apply("one", value, false)
		must(t, err)
		if applied.Data["k"] != value || len(applied.ManagedFields) != 1 {
			t.Fatalf("applied %+v", applied)
		}
	}
	_, err := apply("two", "x", false)
	if !apierrors.IsConflict(err) || !strings.Contains(err.Error(), `conflict with "one": .data.k`) {
		t.Fatalf("whose it is: %v", err)
	}
	applied, err := apply("two", "x", true)
	must(t, err)
	if applied.Data["k"] != "x" || len(applied.ManagedFields) != 1 || applied.ManagedFields[0].Manager != "two" {
		t.Fatalf("forced %+v", applied)
	}
}

func TestTypedScale(t *testing.T) {
	c := start(t, "typed-scale")
	deployments := c.typed.AppsV1().Deployments(c.namespace)
	_, err := deployments.Create(c.ctx, deployment("web", 2), metav1.CreateOptions{})
	must(t, err)
	scale, err := deployments.GetScale(c.ctx, "web", metav1.GetOptions{})
	must(t, err)
	if scale.Spec.Replicas != 2 || scale.Status.Selector != "app=web" || scale.Name != "web" {
		t.Fatalf("the scale is %+v", scale)
	}
	scale.Spec.Replicas = 5
	scaled, err := deployments.UpdateScale(c.ctx, "web", scale, metav1.UpdateOptions{})
	must(t, err)
	web, err := deployments.Get(c.ctx, "web", metav1.GetOptions{})
	must(t, err)
	if scaled.Spec.Replicas != 5 || *web.Spec.Replicas != 5 || web.Generation != 2 || scaled.ResourceVersion != web.ResourceVersion {
		t.Fatalf("scaled to %+v: %+v", scaled, web)
	}
	_, err = deployments.UpdateScale(c.ctx, "web", scale, metav1.UpdateOptions{})
	if !apierrors.IsConflict(err) {
		t.Fatalf("a stale scale: %v", err)
	}
	_, err = deployments.UpdateScale(c.ctx, "web", &autoscalingv1.Scale{
		ObjectMeta: metav1.ObjectMeta{Name: "web", Namespace: c.namespace}, Spec: autoscalingv1.ScaleSpec{Replicas: -1},
	}, metav1.UpdateOptions{})
	if !apierrors.IsInvalid(err) {
		t.Fatalf("less than none: %v", err)
	}
}

// pod that a scheduler has bound and whose kubelet reports it ready.
func (c *clients) readyPod(name string, marks map[string]string) {
	c.Helper()
	pods := c.typed.CoreV1().Pods(c.namespace)
	spec := podSpec()
	spec.TerminationGracePeriodSeconds = ptr(int64(0))
	_, err := pods.Create(c.ctx, &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: marks}, Spec: spec}, metav1.CreateOptions{})
	must(c.T, err)
	must(c.T, pods.Bind(c.ctx, &corev1.Binding{
		ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: c.namespace}, Target: corev1.ObjectReference{Kind: "Node", Name: "node-1"},
	}, metav1.CreateOptions{}))
	status := `{"status":{"phase":"Running","conditions":[{"type":"Ready","status":"True"}]}}`
	pod, err := pods.Patch(c.ctx, name, types.StrategicMergePatchType, []byte(status), metav1.PatchOptions{}, "status")
	must(c.T, err)
	if pod.Spec.NodeName != "node-1" || pod.Status.Phase != corev1.PodRunning {
		c.Fatalf("the pod is %+v", pod)
	}
}

func TestTypedEviction(t *testing.T) {
	c := start(t, "typed-eviction")
	marks := map[string]string{"app": "guarded"}
	c.readyPod("one", marks)
	budgets := c.typed.PolicyV1().PodDisruptionBudgets(c.namespace)
	budget, err := budgets.Create(c.ctx, &policyv1.PodDisruptionBudget{
		ObjectMeta: metav1.ObjectMeta{Name: "guard"},
		Spec: policyv1.PodDisruptionBudgetSpec{
			MinAvailable: ptr(intstr.FromInt32(1)), Selector: &metav1.LabelSelector{MatchLabels: marks},
		},
	}, metav1.CreateOptions{})
	must(t, err)
	eviction := &policyv1.Eviction{ObjectMeta: metav1.ObjectMeta{Name: "one", Namespace: c.namespace}}
	// As `Evict` sends it, without its ten tries when it is told to come later.
	evict := func() error {
		return c.typed.PolicyV1().RESTClient().Post().AbsPath("/api/v1").Namespace(c.namespace).
			Resource("pods").Name("one").SubResource("eviction").Body(eviction).MaxRetries(0).Do(c.ctx).Error()
	}
	// No controller has looked at the budget yet, then it allows nothing, then one.
	if err := evict(); !apierrors.IsTooManyRequests(err) || !apierrors.HasStatusCause(err, policyv1.DisruptionBudgetCause) {
		t.Fatalf("a budget that nobody counted: %v", err)
	}
	allow := func(pods int32) {
		budget.Status = policyv1.PodDisruptionBudgetStatus{
			ObservedGeneration: budget.Generation, DisruptionsAllowed: pods, CurrentHealthy: 1 + pods, DesiredHealthy: 1, ExpectedPods: 1 + pods,
		}
		budget, err = budgets.UpdateStatus(c.ctx, budget, metav1.UpdateOptions{})
		must(t, err)
	}
	allow(0)
	if err := evict(); !apierrors.IsTooManyRequests(err) || !strings.Contains(err.Error(), "would violate the pod's disruption budget") {
		t.Fatalf("a budget of none: %v", err)
	}
	allow(1)
	must(t, c.typed.PolicyV1().Evictions(c.namespace).Evict(c.ctx, eviction))
	_, err = c.typed.CoreV1().Pods(c.namespace).Get(c.ctx, "one", metav1.GetOptions{})
	if !apierrors.IsNotFound(err) {
		t.Fatalf("not evicted: %v", err)
	}
	budget, err = budgets.Get(c.ctx, "guard", metav1.GetOptions{})
	must(t, err)
	if budget.Status.DisruptionsAllowed != 0 || len(budget.Status.DisruptedPods) != 1 {
		t.Fatalf("the eviction is not counted: %+v", budget.Status)
	}
	if err := evict(); !apierrors.IsNotFound(err) {
		t.Fatalf("evicted twice: %v", err)
	}
}

func ptr[T any](value T) *T { return &value }
