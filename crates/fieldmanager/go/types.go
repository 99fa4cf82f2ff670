package main

import (
	"encoding/json"
	"os"
	"path/filepath"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apiextensions-apiserver/pkg/controller/openapi/builder"
	"k8s.io/kube-openapi/pkg/schemaconv"
	"k8s.io/kube-openapi/pkg/spec3"
	"k8s.io/kube-openapi/pkg/validation/spec"
	"sigs.k8s.io/structured-merge-diff/v6/schema"
)

// types writes the types that kube-apiserver's published definitions become, by name.
func types() {
	write(converted(published(os.Args[2])))
}

// crds writes the types that the versions of each CRD become.
func crds() {
	forEach(func(crd apiextensionsv1.CustomResourceDefinition) any { return converted(models(&crd)) })
}

// models are the definitions that kube-apiserver makes of a CRD for apply.
func models(crd *apiextensionsv1.CustomResourceDefinition) map[string]*spec.Schema {
	models := map[string]*spec.Schema{}
	for _, version := range crd.Spec.Versions {
		built, err := builder.BuildOpenAPIV3(crd, version.Name, builder.Options{})
		if err != nil {
			panic(err)
		}
		for name, model := range built.Components.Schemas {
			models[name] = model
		}
	}
	return models
}

// published reads all definitions below a directory of documents.
func published(dir string) map[string]*spec.Schema {
	files, err := filepath.Glob(filepath.Join(dir, "*.json"))
	if err != nil || len(files) == 0 {
		panic("no documents")
	}
	models := map[string]*spec.Schema{}
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			panic(err)
		}
		var document spec3.OpenAPI
		if err := json.Unmarshal(text, &document); err != nil {
			panic(err)
		}
		if document.Components == nil {
			continue
		}
		for name, model := range document.Components.Schemas {
			models[name] = model
		}
	}
	return models
}

func converted(models map[string]*spec.Schema) map[string]any {
	types := map[string]any{}
	all, err := schemaconv.ToSchemaFromOpenAPI(models, false)
	if err != nil {
		panic(err)
	}
	for _, def := range all.Types {
		types[def.Name] = ofAtom(def.Atom)
	}
	return types
}

func ofRef(ref schema.TypeRef) any {
	if (ref == schema.TypeRef{}) {
		return nil
	}
	fields := map[string]any{}
	if ref.NamedType != nil {
		fields["named"] = *ref.NamedType
	} else {
		fields["inlined"] = ofAtom(ref.Inlined)
	}
	if ref.ElementRelationship != nil {
		fields["relation"] = *ref.ElementRelationship
	}
	return fields
}

func ofAtom(atom schema.Atom) map[string]any {
	fields := map[string]any{}
	if atom.Scalar != nil {
		fields["scalar"] = *atom.Scalar
	}
	if atom.List != nil {
		fields["list"] = map[string]any{
			"element": ofRef(atom.List.ElementType), "relation": atom.List.ElementRelationship, "keys": atom.List.Keys,
		}
	}
	if atom.Map != nil {
		declared := map[string]any{}
		for _, field := range atom.Map.Fields {
			of := map[string]any{"type": ofRef(field.Type)}
			if field.Default != nil {
				of["default"] = field.Default
			}
			declared[field.Name] = of
		}
		fields["map"] = map[string]any{
			"fields": declared, "element": ofRef(atom.Map.ElementType), "relation": atom.Map.ElementRelationship,
		}
	}
	return fields
}
