package main

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"

	apiservercel "k8s.io/apiserver/pkg/cel"
	"k8s.io/apiserver/pkg/cel/openapi"
	"k8s.io/kube-openapi/pkg/validation/spec"
	"sigs.k8s.io/yaml"
)

type rule struct {
	File   string          `json:"file"`
	Expr   string          `json:"expr"`
	Schema json.RawMessage `json:"schema"`
	// What upstream makes of the schema: types, and how much there may be.
	Decl any `json:"decl"`
}

// Every rule of the CustomResourceDefinitions in a file, with the schema that it stands in.
func rules(path string) {
	text, err := os.ReadFile(path)
	if err != nil {
		panic(err)
	}
	out := json.NewEncoder(os.Stdout)
	out.SetEscapeHTML(false)
	for _, document := range strings.Split(string(text), "\n---") {
		var crd struct {
			Spec struct {
				Versions []struct {
					Schema struct {
						OpenAPIV3Schema map[string]any `json:"openAPIV3Schema"`
					} `json:"schema"`
				} `json:"versions"`
			} `json:"spec"`
		}
		if err := yaml.Unmarshal([]byte(document), &crd); err != nil {
			panic(err)
		}
		for _, version := range crd.Spec.Versions {
			walk(version.Schema.OpenAPIV3Schema, func(expr string, node map[string]any) {
				schema, err := json.Marshal(node)
				if err != nil {
					panic(err)
				}
				var parsed spec.Schema
				if err := json.Unmarshal(schema, &parsed); err != nil {
					panic(err)
				}
				root := openapi.SchemaDeclType(&parsed, false).MaybeAssignTypeName("selfType")
				if err := out.Encode(rule{filepath.Base(path), expr, schema, declared(root)}); err != nil {
					panic(err)
				}
			})
		}
	}
}

func walk(node map[string]any, tell func(expr string, node map[string]any)) {
	validations, _ := node["x-kubernetes-validations"].([]any)
	for _, validation := range validations {
		if expr, ok := validation.(map[string]any)["rule"].(string); ok {
			tell(expr, node)
		}
	}
	for _, name := range []string{"items", "additionalProperties"} {
		if inner, ok := node[name].(map[string]any); ok {
			walk(inner, tell)
		}
	}
	if properties, ok := node["properties"].(map[string]any); ok {
		for _, inner := range properties {
			walk(inner.(map[string]any), tell)
		}
	}
}

func declared(t *apiservercel.DeclType) any {
	out := map[string]any{"max": t.MaxElements}
	switch {
	case t.IsObject():
		fields := map[string]any{}
		for name, field := range t.Fields {
			fields[name] = declared(field.Type)
		}
		out["kind"], out["name"], out["fields"] = "object", t.TypeName(), fields
	case t.IsList():
		out["kind"], out["items"] = "list", declared(t.ElemType)
	case t.IsMap():
		out["kind"], out["items"] = "map", declared(t.ElemType)
	default:
		out["kind"] = t.CelType().TypeName()
	}
	return out
}
