package widgets

import (
	"context"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"
)

const finalizer = "envtest.forebay.test/cleanup"

// reconciler keeps a ConfigMap for each Widget, as the book of kubebuilder has it: cached reads, an owner reference,
// the status subresource, a finalizer.
type reconciler struct {
	client.Client
	// Told the name of each Widget whose finalizer ran.
	cleaned chan<- string
}

func (r *reconciler) SetupWithManager(mgr ctrl.Manager) error {
	skip := true
	return ctrl.NewControllerManagedBy(mgr).
		For(&Widget{}).
		Owns(&corev1.ConfigMap{}).
		// Two managers in one process have a controller of the same name.
		WithOptions(controller.Options{SkipNameValidation: &skip}).
		Complete(r)
}

func (r *reconciler) Reconcile(ctx context.Context, request ctrl.Request) (ctrl.Result, error) {
	var widget Widget
	if err := r.Get(ctx, request.NamespacedName, &widget); err != nil {
		return ctrl.Result{}, client.IgnoreNotFound(err)
	}
	if !widget.DeletionTimestamp.IsZero() {
		return ctrl.Result{}, r.finalize(ctx, &widget)
	}
	if controllerutil.AddFinalizer(&widget, finalizer) {
		if err := r.Update(ctx, &widget); err != nil {
			return ctrl.Result{}, err
		}
	}
	configMap := corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: widget.Namespace, Name: widget.Name + "-config"}}
	_, err := controllerutil.CreateOrUpdate(ctx, r.Client, &configMap, func() error {
		configMap.Data = map[string]string{"text": widget.Spec.Text}
		return controllerutil.SetControllerReference(&widget, &configMap, r.Scheme())
	})
	if err != nil {
		return ctrl.Result{}, err
	}
	want := WidgetStatus{ObservedGeneration: widget.Generation, ConfigMap: configMap.Name}
	if widget.Status == want {
		return ctrl.Result{}, nil
	}
	before := widget.DeepCopyObject().(*Widget)
	widget.Status = want
	return ctrl.Result{}, r.Status().Patch(ctx, &widget, client.MergeFrom(before))
}

func (r *reconciler) finalize(ctx context.Context, widget *Widget) error {
	if !controllerutil.RemoveFinalizer(widget, finalizer) {
		return nil
	}
	if err := r.Update(ctx, widget); err != nil {
		return err
	}
	r.cleaned <- widget.Name
	return nil
}
