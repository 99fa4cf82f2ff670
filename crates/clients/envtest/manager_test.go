// Package widgets runs a controller-runtime manager on the control plane that envtest starts: ours or, with its
// binaries, the rival's. KUBEBUILDER_ASSETS says which; nothing here knows the difference.
package widgets

import (
	"context"
	"fmt"
	"os"
	"testing"
	"time"

	"github.com/go-logr/logr/funcr"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/envtest"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/metrics/server"
)

const (
	namespace = "default"
	leaseName = "widgets.envtest.forebay.test"
	// Longest wait for what takes milliseconds, on a machine that builds.
	waitMax = 2 * time.Minute
)

func TestMain(m *testing.M) {
	addToScheme(scheme.Scheme)
	log.SetLogger(funcr.New(func(prefix, line string) { fmt.Fprintln(os.Stderr, prefix, line) }, funcr.Options{}))
	os.Exit(m.Run())
}

// start starts a control plane with the CRD, for one test.
func start(t *testing.T) (*envtest.Environment, *rest.Config) {
	t.Helper()
	environment := &envtest.Environment{
		CRDDirectoryPaths:        []string{os.Getenv("CRD_DIR")},
		ErrorIfCRDPathMissing:    true,
		AttachControlPlaneOutput: true,
	}
	config, err := environment.Start()
	if err != nil {
		t.Fatalf("envtest: %v", err)
	}
	t.Cleanup(func() {
		if err := environment.Stop(); err != nil {
			t.Errorf("envtest does not stop: %v", err)
		}
	})
	return environment, config
}

// manager runs a manager with the reconciler until the function that it returns is called.
func manager(t *testing.T, config *rest.Config, cleaned chan<- string) (ctrl.Manager, func()) {
	t.Helper()
	mgr, err := ctrl.NewManager(config, ctrl.Options{
		Scheme:                        scheme.Scheme,
		Metrics:                       server.Options{BindAddress: "0"},
		LeaderElection:                true,
		LeaderElectionID:              leaseName,
		LeaderElectionNamespace:       namespace,
		LeaderElectionReleaseOnCancel: true,
	})
	if err != nil {
		t.Fatalf("manager: %v", err)
	}
	if err := (&reconciler{Client: mgr.GetClient(), cleaned: cleaned}).SetupWithManager(mgr); err != nil {
		t.Fatalf("controller: %v", err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- mgr.Start(ctx) }()
	stop := func() {
		cancel()
		if err, told := <-ended; told && err != nil {
			t.Errorf("manager: %v", err)
		}
		close(ended)
	}
	return mgr, stop
}

// eventually polls until done, and fails with its last word.
func eventually(t *testing.T, what string, done func() (bool, error)) {
	t.Helper()
	var last error
	err := wait.PollUntilContextTimeout(t.Context(), 10*time.Millisecond, waitMax, true, func(context.Context) (bool, error) {
		is, err := done()
		last = err
		return is, nil
	})
	if err != nil {
		t.Fatalf("%s: %v; last error: %v", what, err, last)
	}
}

func key(name string) client.ObjectKey {
	return client.ObjectKey{Namespace: namespace, Name: name}
}

func TestManagerReconciles(t *testing.T) {
	_, config := start(t)
	ctx := t.Context()
	cleaned := make(chan string, 8)
	mgr, stop := manager(t, config, cleaned)
	defer stop()
	<-mgr.Elected()
	direct, err := client.New(config, client.Options{})
	if err != nil {
		t.Fatal(err)
	}

	widget := &Widget{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "one"}, Spec: WidgetSpec{Text: "first"}}
	if err := direct.Create(ctx, widget); err != nil {
		t.Fatal(err)
	}
	if widget.Spec.Size != 1 {
		t.Errorf("the default of size is %d", widget.Spec.Size)
	}
	reconciled := func(text string) {
		t.Helper()
		eventually(t, text, func() (bool, error) {
			var configMap corev1.ConfigMap
			if err := direct.Get(ctx, key("one-config"), &configMap); err != nil {
				return false, err
			}
			if err := direct.Get(ctx, key("one"), widget); err != nil {
				return false, err
			}
			return configMap.Data["text"] == text && metav1.IsControlledBy(&configMap, widget) &&
				widget.Status == WidgetStatus{ObservedGeneration: widget.Generation, ConfigMap: "one-config"}, nil
		})
	}
	reconciled("first")

	// A status moves no generation, a spec does.
	if widget.Generation != 1 {
		t.Errorf("generation %d after a status", widget.Generation)
	}
	before := widget.DeepCopyObject().(*Widget)
	widget.Spec.Text = "second"
	if err := direct.Patch(ctx, widget, client.MergeFrom(before)); err != nil {
		t.Fatal(err)
	}
	reconciled("second")
	if widget.Generation != 2 {
		t.Errorf("generation %d after a spec", widget.Generation)
	}

	// What is owned comes back, and what does not fit its schema is refused.
	if err := direct.Delete(ctx, &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "one-config"}}); err != nil {
		t.Fatal(err)
	}
	reconciled("second")
	wrong := &Widget{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "two"}}
	if err := direct.Create(ctx, wrong); !apierrors.IsInvalid(err) {
		t.Errorf("a widget without text: %v", err)
	}

	// The cache of the manager follows.
	eventually(t, "the cache", func() (bool, error) {
		var list WidgetList
		err := mgr.GetClient().List(ctx, &list, client.InNamespace(namespace))
		return len(list.Items) == 1 && list.Items[0].Status.ObservedGeneration == 2, err
	})

	if err := direct.Delete(ctx, widget); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the end of the widget", func() (bool, error) {
		err := direct.Get(ctx, key("one"), widget)
		return apierrors.IsNotFound(err), err
	})
	if name := <-cleaned; name != "one" {
		t.Errorf("the finalizer ran for %q", name)
	}
}

func TestLeadershipPassesOn(t *testing.T) {
	_, config := start(t)
	cleaned := make(chan string, 8)
	first, stopFirst := manager(t, config, cleaned)
	<-first.Elected()
	direct, err := client.New(config, client.Options{})
	if err != nil {
		t.Fatal(err)
	}
	holder := func() string {
		var lease coordinationv1.Lease
		if err := direct.Get(t.Context(), key(leaseName), &lease); err != nil {
			t.Fatal(err)
		}
		return *lease.Spec.HolderIdentity
	}
	before := holder()
	second, stopSecond := manager(t, config, cleaned)
	defer stopSecond()
	select {
	case <-second.Elected():
		t.Fatal("two leaders")
	default:
	}
	if now := holder(); now != before {
		t.Fatalf("%s took the lease from %s", now, before)
	}
	stopFirst()
	select {
	case <-second.Elected():
	case <-time.After(waitMax):
		t.Fatal("nobody follows")
	}
	if now := holder(); now == before {
		t.Fatalf("%s holds a lease that it released", now)
	}
}

func TestUsersAreWhoEnvtestSaysTheyAre(t *testing.T) {
	environment, _ := start(t)
	user, err := environment.AddUser(envtest.User{Name: "somebody", Groups: []string{"some"}}, nil)
	if err != nil {
		t.Fatal(err)
	}
	stranger, err := client.New(user.Config(), client.Options{})
	if err != nil {
		t.Fatal(err)
	}
	err = stranger.List(t.Context(), &corev1.SecretList{})
	if !apierrors.IsForbidden(err) {
		t.Fatalf("a user without rights lists secrets: %v", err)
	}
}
