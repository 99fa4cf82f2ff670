// A cluster without machines: the real kube-controller-manager and kube-scheduler run beside the server, and the test plays
// the kubelets of nodes that it makes.

package clients

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"os"
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	authenticationv1 "k8s.io/api/authentication/v1"
	batchv1 "k8s.io/api/batch/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"
)

// pulse of a kubelet: how often it renews its node's lease and looks again at pods that it could not serve.
const pulse = 2 * time.Second

// nodes of one test, with labels of their own so that tests do not share them.
func (c *clients) nodes(count int) {
	c.Helper()
	names := map[string]bool{}
	for at := range count {
		name := fmt.Sprintf("%s-%d", c.namespace, at)
		names[name] = true
		room := corev1.ResourceList{
			corev1.ResourceCPU:    resource.MustParse("4"),
			corev1.ResourceMemory: resource.MustParse("8Gi"),
			corev1.ResourcePods:   resource.MustParse("110"),
		}
		node, err := c.typed.CoreV1().Nodes().Create(c.ctx, &corev1.Node{
			ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{"test": c.namespace, corev1.LabelHostname: name}},
		}, metav1.CreateOptions{})
		must(c.T, err)
		node.Status = corev1.NodeStatus{
			Capacity: room, Allocatable: room,
			Conditions: []corev1.NodeCondition{{
				Type: corev1.NodeReady, Status: corev1.ConditionTrue, Reason: "KubeletReady",
				LastHeartbeatTime: metav1.Now(), LastTransitionTime: metav1.Now(),
			}},
		}
		// Controllers may write to it meanwhile, so that the version says nothing.
		node.ResourceVersion = ""
		_, err = c.typed.CoreV1().Nodes().UpdateStatus(c.ctx, node, metav1.UpdateOptions{})
		must(c.T, err)
		c.lease(name)
	}
	c.T.Cleanup(func() {
		for name := range names {
			// The next test has its own; what cannot be deleted only takes room.
			_ = c.typed.CoreV1().Nodes().Delete(context.Background(), name, metav1.DeleteOptions{})
		}
	})
	c.kubelet(names)
	// New nodes keep pods away until a controller has seen that they are ready.
	c.until("pods may go to each node", func() (bool, string) {
		for name := range names {
			node, err := c.typed.CoreV1().Nodes().Get(c.ctx, name, metav1.GetOptions{})
			must(c.T, err)
			if len(node.Spec.Taints) > 0 {
				return false, fmt.Sprintf("%s: %v", name, node.Spec.Taints)
			}
		}
		return true, ""
	})
}

// lease renews a node's lease, which says that its kubelet is alive.
func (c *clients) lease(node string) {
	leases := c.typed.CoordinationV1().Leases(corev1.NamespaceNodeLease)
	now := metav1.NowMicro()
	spec := coordinationv1.LeaseSpec{HolderIdentity: &node, LeaseDurationSeconds: ptr(int32(40)), RenewTime: &now}
	lease, err := leases.Get(c.ctx, node, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		_, err = leases.Create(c.ctx, &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Name: node}, Spec: spec}, metav1.CreateOptions{})
	} else if err == nil {
		lease.Spec = spec
		_, err = leases.Update(c.ctx, lease, metav1.UpdateOptions{})
	}
	if err != nil && c.ctx.Err() == nil {
		c.Logf("lease of %s: %v", node, err)
	}
}

// kubelet runs pods of `nodes`: what is bound becomes ready at once, what belongs to a Job succeeds, what is deleted goes.
func (c *clients) kubelet(nodes map[string]bool) {
	c.Helper()
	factory := informers.NewSharedInformerFactory(c.typed, 0)
	pods := factory.Core().V1().Pods()
	look := make(chan struct{}, 1)
	nudge := func(any) {
		select {
		case look <- struct{}{}:
		default:
		}
	}
	_, err := pods.Informer().AddEventHandler(cache.ResourceEventHandlerFuncs{
		AddFunc: nudge, UpdateFunc: func(_, object any) { nudge(object) }, DeleteFunc: nudge,
	})
	must(c.T, err)
	factory.StartWithContext(c.ctx)
	done := make(chan struct{})
	go func() {
		defer close(done)
		beat := time.NewTicker(pulse)
		defer beat.Stop()
		for {
			for _, object := range pods.Informer().GetStore().List() {
				if pod := object.(*corev1.Pod); nodes[pod.Spec.NodeName] {
					c.serve(pod)
				}
			}
			select {
			case <-c.ctx.Done():
				return
			case <-look:
			case <-beat.C:
				for name := range nodes {
					c.lease(name)
				}
			}
		}
	}()
	// The context ends first: cleanups run in the opposite order, and `start` registered its own before.
	c.T.Cleanup(func() { c.cancel(); <-done })
}

// serve does what a kubelet would do about a pod now. What it is refused comes up again.
func (c *clients) serve(pod *corev1.Pod) {
	pods := c.typed.CoreV1().Pods(pod.Namespace)
	var err error
	switch {
	case pod.DeletionTimestamp != nil:
		err = pods.Delete(c.ctx, pod.Name, metav1.DeleteOptions{GracePeriodSeconds: ptr(int64(0)), Preconditions: metav1.NewUIDPreconditions(string(pod.UID))})
	case pod.Status.Phase == corev1.PodPending:
		pod = pod.DeepCopy()
		now := metav1.Now()
		phase, ready, reason := corev1.PodRunning, corev1.ConditionTrue, ""
		state := corev1.ContainerState{Running: &corev1.ContainerStateRunning{StartedAt: now}}
		if pod.Labels[batchv1.JobNameLabel] != "" {
			phase, ready, reason = corev1.PodSucceeded, corev1.ConditionFalse, "PodCompleted"
			state = corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{StartedAt: now, FinishedAt: now, Reason: "Completed"}}
		}
		pod.Status.Phase, pod.Status.StartTime = phase, &now
		c.served++
		address := fmt.Sprintf("10.1.2.%d", c.served)
		pod.Status.PodIP, pod.Status.PodIPs = address, []corev1.PodIP{{IP: address}}
		for _, kind := range []corev1.PodConditionType{corev1.PodInitialized, corev1.ContainersReady, corev1.PodReady} {
			pod.Status.Conditions = append(pod.Status.Conditions, corev1.PodCondition{Type: kind, Status: ready, Reason: reason, LastTransitionTime: now})
		}
		pod.Status.ContainerStatuses = []corev1.ContainerStatus{{
			Name: "main", Image: "registry.test/main:1", State: state, Ready: ready == corev1.ConditionTrue, Started: ptr(true),
		}}
		_, err = pods.UpdateStatus(c.ctx, pod, metav1.UpdateOptions{})
	}
	if err != nil && !apierrors.IsConflict(err) && !apierrors.IsNotFound(err) && c.ctx.Err() == nil {
		c.Logf("kubelet: %s: %v", pod.Name, err)
	}
}

// onNodes puts pods of a template on the test's own nodes.
func (c *clients) onNodes(spec *corev1.PodSpec) {
	spec.NodeSelector = map[string]string{"test": c.namespace}
	// Nobody maps names to machines here; the token of an account is not what these tests are about.
	spec.AutomountServiceAccountToken = ptr(false)
}

// pods counts those that are there, and names the nodes they are on.
func (c *clients) pods(selector string) (int, map[string]int) {
	c.Helper()
	list, err := c.typed.CoreV1().Pods(c.namespace).List(c.ctx, metav1.ListOptions{LabelSelector: selector})
	must(c.T, err)
	on := map[string]int{}
	for _, pod := range list.Items {
		on[pod.Spec.NodeName]++
	}
	return len(list.Items), on
}

func TestClusterRunsADeployment(t *testing.T) {
	c := start(t, "cluster-deployment")
	c.nodes(2)
	deployments := c.typed.AppsV1().Deployments(c.namespace)
	wanted := deployment("web", 3)
	c.onNodes(&wanted.Spec.Template.Spec)
	_, err := deployments.Create(c.ctx, wanted, metav1.CreateOptions{})
	must(t, err)
	available := func(replicas int32) {
		t.Helper()
		c.until(fmt.Sprintf("%d replicas are available", replicas), func() (bool, string) {
			web, err := deployments.Get(c.ctx, "web", metav1.GetOptions{})
			must(t, err)
			count, on := c.pods("app=web")
			status := web.Status
			right := status.ObservedGeneration == web.Generation && status.AvailableReplicas == replicas && status.Replicas == replicas && count == int(replicas)
			return right && isTrue(status.Conditions, appsv1.DeploymentAvailable), fmt.Sprintf("%+v, pods on %v", status, on)
		})
	}
	scale := func(replicas int32) {
		t.Helper()
		scale, err := deployments.GetScale(c.ctx, "web", metav1.GetOptions{})
		must(t, err)
		scale.Spec.Replicas = replicas
		scale.ResourceVersion = ""
		_, err = deployments.UpdateScale(c.ctx, "web", scale, metav1.UpdateOptions{})
		must(t, err)
	}
	available(3)
	scale(10)
	available(10)
	if _, on := c.pods("app=web"); len(on) != 2 || on[""] != 0 {
		t.Fatalf("not spread over both nodes: %v", on)
	}
	// A roll-out replaces every pod.
	web, err := deployments.Get(c.ctx, "web", metav1.GetOptions{})
	must(t, err)
	_, err = deployments.Patch(c.ctx, "web", "application/strategic-merge-patch+json",
		[]byte(`{"spec":{"template":{"spec":{"containers":[{"name":"main","image":"registry.test/main:2"}]}}}}`), metav1.PatchOptions{})
	must(t, err)
	available(10)
	c.until("only the new replica set has pods", func() (bool, string) {
		sets, err := c.typed.AppsV1().ReplicaSets(c.namespace).List(c.ctx, metav1.ListOptions{})
		must(t, err)
		text := ""
		ready := int32(0)
		for _, set := range sets.Items {
			if set.Spec.Template.Spec.Containers[0].Image == "registry.test/main:2" && metav1.IsControlledBy(&set, web) {
				ready = set.Status.ReadyReplicas
			} else if set.Status.Replicas != 0 {
				ready = -1
			}
			text += fmt.Sprintln(set.Name, set.Status)
		}
		return len(sets.Items) == 2 && ready == 10, text
	})
	scale(0)
	available(0)
	must(t, deployments.Delete(c.ctx, "web", metav1.DeleteOptions{PropagationPolicy: ptr(metav1.DeletePropagationForeground)}))
	c.until("the deployment and its sets are gone", func() (bool, string) {
		_, err := deployments.Get(c.ctx, "web", metav1.GetOptions{})
		sets, listed := c.typed.AppsV1().ReplicaSets(c.namespace).List(c.ctx, metav1.ListOptions{})
		must(t, listed)
		return apierrors.IsNotFound(err) && len(sets.Items) == 0, fmt.Sprint(err, len(sets.Items))
	})
}

// The server is killed and comes back: both programs go on where they were, without having lost their leases.
func TestClusterOutlivesTheServer(t *testing.T) {
	c := start(t, "cluster-restart")
	c.nodes(1)
	deployments := c.typed.AppsV1().Deployments(c.namespace)
	wanted := deployment("web", 2)
	c.onNodes(&wanted.Spec.Template.Spec)
	_, err := deployments.Create(c.ctx, wanted, metav1.CreateOptions{})
	must(t, err)
	available := func(replicas int32) {
		t.Helper()
		c.until(fmt.Sprintf("%d replicas are available", replicas), func() (bool, string) {
			web, err := deployments.Get(c.ctx, "web", metav1.GetOptions{})
			if err != nil {
				return false, err.Error()
			}
			return web.Status.AvailableReplicas == replicas && web.Status.Replicas == replicas, fmt.Sprintf("%+v", web.Status)
		})
	}
	holders := func() string {
		t.Helper()
		all := ""
		for _, name := range []string{"kube-controller-manager", "kube-scheduler"} {
			lease, err := c.typed.CoordinationV1().Leases("kube-system").Get(c.ctx, name, metav1.GetOptions{})
			must(t, err)
			all += fmt.Sprintln(*lease.Spec.HolderIdentity, *lease.Spec.LeaseTransitions)
		}
		return all
	}
	available(2)
	before := holders()
	c.ask("@kill")
	c.ask("@start")
	_, err = deployments.Patch(c.ctx, "web", "application/merge-patch+json", []byte(`{"spec":{"replicas":5}}`), metav1.PatchOptions{})
	must(t, err)
	available(5)
	if after := holders(); after != before {
		t.Fatalf("held by %s, not %s", after, before)
	}
}

func isTrue(conditions []appsv1.DeploymentCondition, kind appsv1.DeploymentConditionType) bool {
	for _, condition := range conditions {
		if condition.Type == kind {
			return condition.Status == corev1.ConditionTrue
		}
	}
	return false
}

func TestClusterCompletesAJob(t *testing.T) {
	c := start(t, "cluster-job")
	c.nodes(1)
	spec := podSpec()
	spec.RestartPolicy = corev1.RestartPolicyNever
	c.onNodes(&spec)
	jobs := c.typed.BatchV1().Jobs(c.namespace)
	_, err := jobs.Create(c.ctx, &batchv1.Job{
		ObjectMeta: metav1.ObjectMeta{Name: "work"},
		Spec:       batchv1.JobSpec{Completions: ptr(int32(4)), Parallelism: ptr(int32(2)), Template: corev1.PodTemplateSpec{Spec: spec}},
	}, metav1.CreateOptions{})
	must(t, err)
	c.until("the job is complete", func() (bool, string) {
		job, err := jobs.Get(c.ctx, "work", metav1.GetOptions{})
		must(t, err)
		complete := false
		for _, condition := range job.Status.Conditions {
			complete = complete || condition.Type == batchv1.JobComplete && condition.Status == corev1.ConditionTrue
		}
		return complete && job.Status.Succeeded == 4 && job.Status.CompletionTime != nil, fmt.Sprintf("%+v", job.Status)
	})
	// The tracking finalizer came off.
	list, err := c.typed.CoreV1().Pods(c.namespace).List(c.ctx, metav1.ListOptions{LabelSelector: batchv1.JobNameLabel + "=work"})
	must(t, err)
	for _, pod := range list.Items {
		if len(pod.Finalizers) != 0 {
			t.Fatalf("%s is still held by %v", pod.Name, pod.Finalizers)
		}
	}
	must(t, jobs.Delete(c.ctx, "work", metav1.DeleteOptions{PropagationPolicy: ptr(metav1.DeletePropagationBackground)}))
	c.until("its pods are collected", func() (bool, string) {
		count, on := c.pods("")
		return count == 0, fmt.Sprint(on)
	})
}

func TestClusterCollectsWhatIsOwned(t *testing.T) {
	c := start(t, "cluster-owners")
	maps := c.typed.CoreV1().ConfigMaps(c.namespace)
	create := func(name string, owners ...metav1.OwnerReference) *corev1.ConfigMap {
		t.Helper()
		made, err := maps.Create(c.ctx, &corev1.ConfigMap{
			ObjectMeta: metav1.ObjectMeta{Name: name, OwnerReferences: owners, Labels: map[string]string{"made": "here"}},
		}, metav1.CreateOptions{})
		must(t, err)
		return made
	}
	by := func(owner *corev1.ConfigMap) metav1.OwnerReference {
		return metav1.OwnerReference{APIVersion: "v1", Kind: "ConfigMap", Name: owner.Name, UID: owner.UID, BlockOwnerDeletion: ptr(true)}
	}
	left := func(names ...string) {
		t.Helper()
		want := strings.Join(names, " ")
		c.until("what is left", func() (bool, string) {
			list, err := maps.List(c.ctx, listHere())
			must(t, err)
			all := []string{}
			for _, item := range list.Items {
				all = append(all, item.Name)
			}
			got := strings.Join(all, " ")
			return got == want, got
		})
	}
	other := create("kept")
	for _, policy := range []metav1.DeletionPropagation{metav1.DeletePropagationBackground, metav1.DeletePropagationForeground} {
		owner := create("owner")
		middle := create("middle", by(owner))
		create("leaf", by(middle))
		create("shared", by(owner), by(other))
		must(t, maps.Delete(c.ctx, "owner", metav1.DeleteOptions{PropagationPolicy: &policy}))
		left("kept", "shared")
		must(t, maps.Delete(c.ctx, "shared", metav1.DeleteOptions{}))
	}
	owner := create("owner")
	create("orphan", by(owner))
	must(t, maps.Delete(c.ctx, "owner", metav1.DeleteOptions{PropagationPolicy: ptr(metav1.DeletePropagationOrphan)}))
	left("kept", "orphan")
	orphan, err := maps.Get(c.ctx, "orphan", metav1.GetOptions{})
	must(t, err)
	if len(orphan.OwnerReferences) != 0 {
		t.Fatalf("still owned by %v", orphan.OwnerReferences)
	}
}

func TestClusterEndsANamespace(t *testing.T) {
	c := start(t, "cluster-namespace")
	c.nodes(1)
	wanted := deployment("web", 2)
	c.onNodes(&wanted.Spec.Template.Spec)
	_, err := c.typed.AppsV1().Deployments(c.namespace).Create(c.ctx, wanted, metav1.CreateOptions{})
	must(t, err)
	c.until("a default account, its authority and two pods", func() (bool, string) {
		_, account := c.typed.CoreV1().ServiceAccounts(c.namespace).Get(c.ctx, "default", metav1.GetOptions{})
		authority, why := c.typed.CoreV1().ConfigMaps(c.namespace).Get(c.ctx, "kube-root-ca.crt", metav1.GetOptions{})
		count, on := c.pods("app=web")
		is := account == nil && why == nil && strings.Contains(authority.Data["ca.crt"], "BEGIN CERTIFICATE") && count == 2
		return is, fmt.Sprint(account, why, on)
	})
	namespaces := c.typed.CoreV1().Namespaces()
	must(t, namespaces.Delete(c.ctx, c.namespace, metav1.DeleteOptions{}))
	c.until("the namespace is gone", func() (bool, string) {
		namespace, err := namespaces.Get(c.ctx, c.namespace, metav1.GetOptions{})
		return apierrors.IsNotFound(err), fmt.Sprintf("%v: %+v", err, namespace.Status)
	})
	// The name can be used again, and nothing comes back with it.
	_, err = namespaces.Create(c.ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: c.namespace}}, metav1.CreateOptions{})
	must(t, err)
	if count, on := c.pods(""); count != 0 {
		t.Fatalf("pods are back: %v", on)
	}
}

// Both programs have ports of their own, and leave it to the server to say who calls there and what they may do.
func TestClusterPortsAskTheServer(t *testing.T) {
	c := start(t, "cluster-ports")
	_, err := c.typed.CoreV1().ServiceAccounts(c.namespace).Create(c.ctx, &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Name: "reader"}}, metav1.CreateOptions{})
	must(t, err)
	token, err := c.typed.CoreV1().ServiceAccounts(c.namespace).CreateToken(c.ctx, "reader", &authenticationv1.TokenRequest{}, metav1.CreateOptions{})
	must(t, err)
	bearer := func(token string) *rest.Config { return &rest.Config{BearerToken: token} }
	for _, program := range []string{"KUBE_CONTROLLER_MANAGER_PORT", "KUBE_SCHEDULER_PORT"} {
		for _, row := range []struct {
			who    string
			config *rest.Config
			want   int
		}{
			// By the authorities that the server publishes, by a review of the token.
			{"the administrator", rest.CopyConfig(c.config), http.StatusOK},
			{"an account", bearer(token.Status.Token), http.StatusOK},
			{"a liar", bearer("x" + token.Status.Token), http.StatusUnauthorized},
		} {
			row.config.Host = "https://127.0.0.1:" + os.Getenv(program)
			// Its certificate is of its own making.
			row.config.TLSClientConfig.CAData, row.config.TLSClientConfig.Insecure = nil, true
			client, err := rest.HTTPClientFor(row.config)
			must(t, err)
			c.until(fmt.Sprintf("%s is answered at %s", row.who, program), func() (bool, string) {
				answer, err := client.Get(row.config.Host + "/metrics")
				if err != nil {
					return false, err.Error()
				}
				defer answer.Body.Close()
				body, err := io.ReadAll(answer.Body)
				is := err == nil && answer.StatusCode == row.want
				if row.want == http.StatusOK {
					is = is && strings.Contains(string(body), "\nleader_election_master_status{")
				}
				return is, fmt.Sprint(answer.Status, err)
			})
		}
	}
}

func TestClusterLeadersHoldLeases(t *testing.T) {
	c := start(t, "cluster-leaders")
	for _, name := range []string{"kube-controller-manager", "kube-scheduler"} {
		first := time.Time{}
		c.until(name+" renews its lease", func() (bool, string) {
			lease, err := c.typed.CoordinationV1().Leases("kube-system").Get(c.ctx, name, metav1.GetOptions{})
			if err != nil || lease.Spec.HolderIdentity == nil || *lease.Spec.HolderIdentity == "" || lease.Spec.RenewTime == nil {
				return false, fmt.Sprintf("%v: %+v", err, lease)
			}
			if first.IsZero() {
				first = lease.Spec.RenewTime.Time
			}
			return lease.Spec.RenewTime.After(first), fmt.Sprintf("%+v", lease.Spec)
		})
	}
	// Whom this server trusts, told to programs beside it.
	trust, err := c.typed.CoreV1().ConfigMaps("kube-system").Get(c.ctx, "extension-apiserver-authentication", metav1.GetOptions{})
	must(t, err)
	if !strings.HasPrefix(trust.Data["client-ca-file"], "-----BEGIN CERTIFICATE-----\n") {
		t.Fatalf("no authority of clients: %v", trust.Data)
	}
}
