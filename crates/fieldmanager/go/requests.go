package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"testing"
	"testing/synctest"
	"time"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	apitypes "k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/managedfields"
	"k8s.io/client-go/kubernetes/scheme"
	apiregistrationv1 "k8s.io/kube-aggregator/pkg/apis/apiregistration/v1"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"
)

func init() {
	for _, add := range []func(*runtime.Scheme) error{apiextensionsv1.AddToScheme, apiregistrationv1.AddToScheme} {
		if err := add(scheme.Scheme); err != nil {
			panic(err)
		}
	}
}

// sequence is what several clients do to one object, one after the other.
type sequence struct {
	// CRD is null for a built-in kind.
	CRD   *apiextensionsv1.CustomResourceDefinition
	Group string
	Kind  string
	Steps []step
}

type step struct {
	// SleepMS is how long after the step before.
	SleepMS     int
	Apply       bool
	Force       bool
	Version     string
	Subresource string
	Manager     string
	// Object has no managedFields, but what Managed says.
	Object map[string]any
	// Managed is "keep", "none", "reset", "blank" or entries.
	Managed json.RawMessage
	// Reset are the fields, by apiVersion, that do not count.
	Reset map[string][][]string
	// Only are the beginnings of those that do, where `*` is any step; all, if there are none.
	Only map[string][][]string
}

type done struct {
	Now    string          `json:"now"`
	Live   runtime.Object  `json:"live"`
	Object runtime.Object  `json:"object"`
	Sent   string          `json:"sent"`
	Apply  bool            `json:"apply"`
	Result json.RawMessage `json:"result"`
	Error  *metav1.Status  `json:"error"`
}

// requests writes what kube-apiserver's field manager makes of sequences.
func requests() {
	builtIn, err := managedfields.NewTypeConverter(published(os.Args[2]), false)
	if err != nil {
		panic(err)
	}
	ask := func(t *testing.T) {
		forEach(func(asked sequence) any {
			var all []done
			// The clock of a bubble stands still but for sleeps.
			synctest.Test(t, func(*testing.T) { all = run(asked, builtIn) })
			return all
		})
	}
	all := func(string, string) (bool, error) { return true, nil }
	// There is a bubble in a test only. What it says of itself is no answer.
	os.Stdout, os.Args = os.Stderr, os.Args[:1]
	testing.Main(all, []testing.InternalTest{{Name: "requests", F: ask}}, nil, nil)
}

func run(asked sequence, builtIn managedfields.TypeConverter) []done {
	var types managedfields.TypeConverter = builtIn
	if asked.CRD != nil {
		converter, err := managedfields.NewTypeConverter(models(asked.CRD), false)
		if err != nil {
			panic(err)
		}
		types = converter
	}
	var live runtime.Object
	all := []done{}
	for _, step := range asked.Steps {
		time.Sleep(time.Duration(step.SleepMS) * time.Millisecond)
		answered := answerStep(asked, step, types, live)
		all = append(all, answered)
		if answered.Error == nil {
			live = stored(asked, answered.Result)
		}
	}
	return all
}

func answerStep(asked sequence, step step, types managedfields.TypeConverter, live runtime.Object) done {
	kind := schema.GroupVersionKind{Group: asked.Group, Version: step.Version, Kind: asked.Kind}
	manager, objects := managerOf(asked, step, types, kind)
	answered := done{Now: time.Now().UTC().Format(time.RFC3339), Sent: "as they are", Apply: step.Apply}
	before, err := objects.New(kind)
	if err != nil {
		panic(err)
	}
	if asked.CRD == nil {
		before.GetObjectKind().SetGroupVersionKind(kind)
	}
	if live != nil {
		if before, err = objects.ConvertToVersion(live.DeepCopyObject(), kind.GroupVersion()); err != nil {
			panic(err)
		}
		answered.Live = before.DeepCopyObject()
	}
	var result runtime.Object
	if step.Apply {
		config := &unstructured.Unstructured{Object: step.Object}
		answered.Object = config.DeepCopyObject()
		result, err = manager.Apply(before, config, step.Manager, step.Force)
	} else {
		object := objects.typed(step.Object)
		answered.Sent = objects.claim(object, before, step.Managed)
		answered.Object = object.DeepCopyObject()
		result = manager.UpdateNoErrors(before, object, step.Manager)
	}
	if err != nil {
		answered.Error = statusOf(err)
		return answered
	}
	if answered.Result, err = json.Marshal(result); err != nil {
		panic(err)
	}
	return answered
}

func statusOf(err error) *metav1.Status {
	var known apierrors.APIStatus
	if errors.As(err, &known) {
		status := known.Status()
		return &status
	}
	return &metav1.Status{Message: err.Error()}
}

// stored reads what was written, as a store does; from then on it has a uid.
func stored(asked sequence, text json.RawMessage) runtime.Object {
	fields := map[string]any{}
	if err := json.Unmarshal(text, &fields); err != nil {
		panic(err)
	}
	object := objectsOf(asked).typed(fields)
	accessor, err := meta.Accessor(object)
	if err != nil {
		panic(err)
	}
	accessor.SetUID(apitypes.UID("u"))
	return object
}

func managerOf(asked sequence, step step, types managedfields.TypeConverter, kind schema.GroupVersionKind) (*managedfields.FieldManager, objects) {
	of := objectsOf(asked)
	reset := map[fieldpath.APIVersion]*fieldpath.Set{}
	for version, paths := range step.Reset {
		set := fieldpath.NewSet()
		for _, path := range paths {
			elements := fieldpath.Path{}
			for _, name := range path {
				elements = append(elements, fieldpath.PathElement{FieldName: &name})
			}
			set.Insert(elements)
		}
		reset[fieldpath.APIVersion(version)] = set
	}
	filters := fieldpath.NewExcludeFilterSetMap(reset)
	for version, paths := range step.Only {
		matchers := []*fieldpath.SetMatcher{}
		for _, path := range paths {
			matchers = append(matchers, fieldpath.MakePrefixMatcherOrDie(parts(path)...))
		}
		filters[fieldpath.APIVersion(version)] = fieldpath.NewIncludeMatcherFilter(matchers...)
	}
	create := managedfields.NewDefaultFieldManager
	if asked.CRD != nil {
		create = managedfields.NewDefaultCRDFieldManager
	}
	manager, err := create(types, of, of, of, kind, kind.GroupVersion(), step.Subresource, filters)
	if err != nil {
		panic(err)
	}
	return manager, of
}

func parts(path []string) []any {
	parts := []any{}
	for _, name := range path {
		if name == "*" {
			parts = append(parts, fieldpath.MatchAnyPathElement())
		} else {
			parts = append(parts, name)
		}
	}
	return parts
}

// objects creates, converts and does not default objects of a kind.
type objects struct {
	builtIn bool
	// crd is null for a built-in kind.
	crd *apiextensionsv1.CustomResourceDefinition
}

func objectsOf(asked sequence) objects { return objects{asked.CRD == nil, asked.CRD} }

func (o objects) Default(runtime.Object) {}

func (o objects) New(kind schema.GroupVersionKind) (runtime.Object, error) {
	if o.builtIn {
		return scheme.Scheme.New(kind)
	}
	object := &unstructured.Unstructured{}
	object.SetGroupVersionKind(kind)
	return object, nil
}

func (o objects) Convert(in, out, context any) error { return errors.New("not asked") }

func (o objects) ConvertFieldLabel(schema.GroupVersionKind, string, string) (string, string, error) {
	return "", "", errors.New("not asked")
}

// ConvertToVersion of a custom resource is the strategy None.
func (o objects) ConvertToVersion(in runtime.Object, target runtime.GroupVersioner) (runtime.Object, error) {
	if o.builtIn {
		return scheme.Scheme.ConvertToVersion(in, target)
	}
	to, ok := target.KindForGroupVersionKinds([]schema.GroupVersionKind{in.GetObjectKind().GroupVersionKind()})
	if !ok {
		return nil, errors.New("no target")
	}
	for _, version := range o.crd.Spec.Versions {
		if version.Name == to.Version {
			out := in.DeepCopyObject()
			out.GetObjectKind().SetGroupVersionKind(to)
			return out, nil
		}
	}
	return nil, fmt.Errorf("request to convert CR to an invalid group/version: %s", to.GroupVersion())
}

// typed is an object of its Go type.
func (o objects) typed(fields map[string]any) runtime.Object {
	object := &unstructured.Unstructured{Object: normalNumbers(fields)}
	if !o.builtIn {
		return object
	}
	typed, err := scheme.Scheme.New(object.GroupVersionKind())
	if err != nil {
		panic(err)
	}
	text, err := json.Marshal(object)
	if err != nil {
		panic(err)
	}
	if err := json.Unmarshal(text, typed); err != nil {
		panic(err)
	}
	return typed
}

// normalNumbers are whole numbers where JSON has them.
func normalNumbers(fields map[string]any) map[string]any {
	text, err := json.Marshal(fields)
	if err != nil {
		panic(err)
	}
	var object unstructured.Unstructured
	if err := json.Unmarshal(text, &object.Object); err != nil {
		panic(err)
	}
	return whole(object.Object).(map[string]any)
}

func whole(value any) any {
	switch value := value.(type) {
	case float64:
		if float64(int64(value)) == value {
			return int64(value)
		}
	case map[string]any:
		for name := range value {
			value[name] = whole(value[name])
		}
	case []any:
		for index := range value {
			value[index] = whole(value[index])
		}
	}
	return value
}

// claim gives an object the managedFields that a client sends.
func (o objects) claim(object, live runtime.Object, managed json.RawMessage) string {
	to, err := meta.Accessor(object)
	if err != nil {
		panic(err)
	}
	from, err := meta.Accessor(live)
	if err != nil {
		panic(err)
	}
	switch string(managed) {
	case `"keep"`, ``:
		to.SetManagedFields(from.GetManagedFields())
	case `"none"`:
	case `"reset"`:
		to.SetManagedFields([]metav1.ManagedFieldsEntry{})
		return "reset"
	case `"blank"`:
		to.SetManagedFields([]metav1.ManagedFieldsEntry{{}})
		return "reset"
	default:
		var entries []metav1.ManagedFieldsEntry
		if err := json.Unmarshal(managed, &entries); err != nil {
			panic(err)
		}
		to.SetManagedFields(entries)
	}
	return "as they are"
}
