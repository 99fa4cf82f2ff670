package main

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/managedfields"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"
)

type scaled struct {
	OfObject   []metav1.ManagedFieldsEntry
	APIVersion string
	Paths      map[string][]string
	// OfScale is null if the entries of the Scale are asked for.
	OfScale *[]metav1.ManagedFieldsEntry
}

// scales writes what becomes of the entries of an object and its Scale.
func scales() {
	forEach(func(asked scaled) any {
		paths := managedfields.ResourcePathMappings{}
		for version, names := range asked.Paths {
			paths[version] = nil
			for _, name := range names {
				paths[version] = append(paths[version], fieldpath.PathElement{FieldName: &name})
			}
		}
		version, err := schema.ParseGroupVersion(asked.APIVersion)
		if err != nil {
			panic(err)
		}
		handler := managedfields.NewScaleHandler(asked.OfObject, version, paths)
		var entries []metav1.ManagedFieldsEntry
		if asked.OfScale == nil {
			entries, err = handler.ToSubresource()
		} else {
			entries, err = handler.ToParent(*asked.OfScale)
		}
		if err != nil {
			return map[string]any{"error": err.Error()}
		}
		return map[string]any{"entries": entries}
	})
}
