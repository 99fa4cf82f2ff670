package main

import (
	"log"
	"reflect"
	"slices"
	"strings"

	admissionv1 "k8s.io/api/admission/v1"
	admissionv1beta1 "k8s.io/api/admission/v1beta1"
	discoveryv2 "k8s.io/api/apidiscovery/v2"
	discoveryv2beta1 "k8s.io/api/apidiscovery/v2beta1"
	imagepolicyv1alpha1 "k8s.io/api/imagepolicy/v1alpha1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apiextensionsv1beta1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1beta1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	clientscheme "k8s.io/client-go/kubernetes/scheme"
	apiregistrationv1 "k8s.io/kube-aggregator/pkg/apis/apiregistration/v1"
	apiregistrationv1beta1 "k8s.io/kube-aggregator/pkg/apis/apiregistration/v1beta1"
)

// modulePaths are the modules whose source is read for markers.
var modulePaths = []string{
	"k8s.io/api",
	"k8s.io/apiextensions-apiserver",
	"k8s.io/apimachinery",
	"k8s.io/kube-aggregator",
}

// A kind is one group, version and kind, with the Go types of the object and of its list.
type kind struct {
	gvk  schema.GroupVersionKind
	typ  reflect.Type
	list reflect.Type // nil when the kind has no list
}

// registeredKinds returns every kind of the schemes, ordered by group, version and kind. The kinds of meta/v1
// that each group registers anew (DeleteOptions, WatchEvent and so on) appear once, in the core group.
func registeredKinds() []kind {
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{
		clientscheme.AddToScheme,
		admissionv1.AddToScheme, admissionv1beta1.AddToScheme,
		discoveryv2.AddToScheme, discoveryv2beta1.AddToScheme,
		imagepolicyv1alpha1.AddToScheme,
		apiextensionsv1.AddToScheme, apiextensionsv1beta1.AddToScheme,
		apiregistrationv1.AddToScheme, apiregistrationv1beta1.AddToScheme,
		metav1.AddMetaToScheme,
	} {
		if err := add(scheme); err != nil {
			log.Fatalf("building the scheme: %v", err)
		}
	}
	metav1.AddToGroupVersion(scheme, schema.GroupVersion{Version: "v1"})
	known := scheme.AllKnownTypes()
	for name, typ := range map[string]reflect.Type{
		"APIGroup":        reflect.TypeFor[metav1.APIGroup](),
		"APIGroupList":    reflect.TypeFor[metav1.APIGroupList](),
		"APIResourceList": reflect.TypeFor[metav1.APIResourceList](),
		"APIVersions":     reflect.TypeFor[metav1.APIVersions](),
		"Status":          reflect.TypeFor[metav1.Status](),
	} {
		known[schema.GroupVersionKind{Version: "v1", Kind: name}] = typ
	}
	var kinds []kind
	for gvk, typ := range known {
		if gvk.Version == runtime.APIVersionInternal || skipped(gvk, typ) {
			continue
		}
		k := kind{gvk: gvk, typ: typ}
		listKind := gvk
		listKind.Kind += "List"
		if list, ok := known[listKind]; ok {
			if _, hasItems := list.FieldByName("Items"); hasItems {
				k.list = list
			}
		}
		kinds = append(kinds, k)
	}
	slices.SortFunc(kinds, func(a, b kind) int {
		return strings.Compare(a.gvk.Group+"\x00"+a.gvk.Version+"\x00"+a.gvk.Kind, b.gvk.Group+"\x00"+b.gvk.Version+"\x00"+b.gvk.Kind)
	})
	return kinds
}

// skipped says whether typ is one of meta/v1's that the group only registers again.
func skipped(gvk schema.GroupVersionKind, typ reflect.Type) bool {
	fromMeta := typ.PkgPath() == reflect.TypeFor[metav1.ObjectMeta]().PkgPath()
	core := gvk.Group == "" && gvk.Version == "v1"
	meta := gvk.Group == metav1.GroupName && gvk.Version == "v1"
	return fromMeta && !core && !meta
}
