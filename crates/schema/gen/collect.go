package main

import (
	"encoding/json"
	"fmt"
	"reflect"
	"slices"
	"strconv"
	"strings"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apiextensionsv1beta1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1beta1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/intstr"
)

// special are the types that write their own JSON; the Rust codec knows each by the word beside it.
var special = map[reflect.Type]string{
	reflect.TypeFor[resource.Quantity]():                                 "!quantity",
	reflect.TypeFor[intstr.IntOrString]():                                "!intorstring",
	reflect.TypeFor[metav1.Time]():                                       "!time",
	reflect.TypeFor[metav1.MicroTime]():                                  "!microtime",
	reflect.TypeFor[metav1.Duration]():                                   "!duration",
	reflect.TypeFor[metav1.FieldsV1]():                                   "!fieldsv1",
	reflect.TypeFor[runtime.RawExtension]():                              "!rawextension",
	reflect.TypeFor[apiextensionsv1.JSON]():                              "!json",
	reflect.TypeFor[apiextensionsv1.JSONSchemaPropsOrBool]():             "!schemaorbool JSONSchemaProps",
	reflect.TypeFor[apiextensionsv1.JSONSchemaPropsOrArray]():            "!schemaorarray JSONSchemaProps",
	reflect.TypeFor[apiextensionsv1.JSONSchemaPropsOrStringArray]():      "!schemaorstrings JSONSchemaProps",
	reflect.TypeFor[apiextensionsv1beta1.JSON]():                         "!json",
	reflect.TypeFor[apiextensionsv1beta1.JSONSchemaPropsOrBool]():        "!schemaorbool JSONSchemaProps",
	reflect.TypeFor[apiextensionsv1beta1.JSONSchemaPropsOrArray]():       "!schemaorarray JSONSchemaProps",
	reflect.TypeFor[apiextensionsv1beta1.JSONSchemaPropsOrStringArray](): "!schemaorstrings JSONSchemaProps",
}

var primitives = map[reflect.Kind]string{
	reflect.Bool: "bool", reflect.String: "string",
	reflect.Int32: "int32", reflect.Int64: "int64",
	reflect.Float64: "double",
}

type protoMessage interface{ Marshal() ([]byte, error) }

// table is everything that is written, by package.
type table struct {
	sources *sources
	kinds   []kind
	types   map[reflect.Type]*typeFacts
}

type typeFacts struct {
	typ    reflect.Type
	is     string // struct, or the type expression that a named type stands for
	attrs  []string
	fields []fieldFacts
}

type fieldFacts struct {
	name  string // JSON name; "" when inline
	expr  string
	proto int
	flags string
	attrs []string
}

func (t *table) fieldCount() int {
	n := 0
	for _, facts := range t.types {
		n += len(facts.fields)
	}
	return n
}

func collect(kinds []kind, s *sources) (*table, error) {
	t := &table{sources: s, kinds: kinds, types: map[reflect.Type]*typeFacts{}}
	for _, k := range kinds {
		if err := t.add(k.typ); err != nil {
			return nil, err
		}
	}
	return t, nil
}

// add records a named type and all that its fields refer to.
func (t *table) add(typ reflect.Type) error {
	if _, done := t.types[typ]; done {
		return nil
	}
	facts := &typeFacts{typ: typ}
	t.types[typ] = facts
	p, err := t.sources.pkg(typ.PkgPath())
	if err != nil {
		return err
	}
	source, ok := p.types[typ.Name()]
	if !ok {
		return fmt.Errorf("%s has no source", typ)
	}
	facts.attrs = typeAttrs(source.markers)
	if word, ok := special[typ]; ok {
		facts.is = word
		return nil
	}
	if writesOwnJSON(typ) {
		return fmt.Errorf("%s writes its own JSON and is not known as special", typ)
	}
	if typ.Kind() != reflect.Struct {
		return t.addAlias(facts)
	}
	facts.is = "struct"
	for i := range typ.NumField() {
		field, keep, err := t.field(typ, typ.Field(i), source)
		if err != nil {
			return fmt.Errorf("%s.%s: %w", typ, typ.Field(i).Name, err)
		}
		if keep {
			facts.fields = append(facts.fields, field)
		}
	}
	return nil
}

func writesOwnJSON(typ reflect.Type) bool {
	ptr := reflect.PointerTo(typ)
	return ptr.Implements(reflect.TypeFor[json.Marshaler]()) || ptr.Implements(reflect.TypeFor[json.Unmarshaler]())
}

func (t *table) addAlias(facts *typeFacts) error {
	typ := facts.typ
	expr, err := t.composite(typ.PkgPath(), typ)
	if err != nil {
		return err
	}
	facts.is = expr
	if reflect.PointerTo(typ).Implements(reflect.TypeFor[protoMessage]()) {
		facts.attrs = append(facts.attrs, "message")
	}
	values, err := t.sources.enumValues(typ)
	if err != nil {
		return err
	}
	if len(values) > 0 {
		facts.attrs = append(facts.attrs, "enum="+strings.Join(values, "|"))
	}
	return nil
}

func typeAttrs(m markers) []string {
	var attrs []string
	for _, key := range []string{"structType", "mapType", "listType"} {
		if value := m.first(key, "k8s:"+key); value != "" {
			attrs = append(attrs, key+"="+value)
		}
	}
	if m.has("union") {
		attrs = append(attrs, "union")
	}
	return attrs
}

// composite is the expression of a type whatever its name.
func (t *table) composite(from string, typ reflect.Type) (string, error) {
	switch typ.Kind() {
	case reflect.Slice:
		if typ.Elem().Kind() == reflect.Uint8 {
			return "bytes", nil
		}
		elem, err := t.expr(from, typ.Elem())
		return "[]" + elem, err
	case reflect.Map:
		if typ.Key().Kind() != reflect.String {
			return "", fmt.Errorf("map key %s", typ.Key())
		}
		elem, err := t.expr(from, typ.Elem())
		if err != nil {
			return "", err
		}
		key, err := t.expr(from, typ.Key())
		if key == "string" {
			return "{}" + elem, err
		}
		return "{" + key + "}" + elem, err
	case reflect.Interface:
		return "any", nil
	}
	if word, ok := primitives[typ.Kind()]; ok {
		return word, nil
	}
	return "", fmt.Errorf("kind %s of %s", typ.Kind(), typ)
}

// expr is how a type is written in the table, seen from a package.
func (t *table) expr(from string, typ reflect.Type) (string, error) {
	if typ.Kind() == reflect.Pointer {
		elem, err := t.expr(from, typ.Elem())
		return "*" + elem, err
	}
	if typ.PkgPath() == "" {
		return t.composite(from, typ)
	}
	if err := t.add(typ); err != nil {
		return "", err
	}
	if typ.PkgPath() == from {
		return typ.Name(), nil
	}
	return alias(typ.PkgPath()) + "." + typ.Name(), nil
}

func (t *table) field(owner reflect.Type, f reflect.StructField, source *typeSource) (fieldFacts, bool, error) {
	tag, tagged := f.Tag.Lookup("json")
	name, options, _ := strings.Cut(tag, ",")
	if name == "-" || !f.IsExported() {
		return fieldFacts{}, false, nil
	}
	inline := f.Anonymous && name == ""
	if !tagged && !inline {
		return fieldFacts{}, false, fmt.Errorf("no json tag")
	}
	if name == "" && !inline {
		name = f.Name // as encoding/json names it
	}
	expr, err := t.expr(owner.PkgPath(), f.Type)
	if err != nil {
		return fieldFacts{}, false, err
	}
	facts := fieldFacts{name: name, expr: expr, proto: protoNumber(f.Tag.Get("protobuf"))}
	m := source.fields[f.Name]
	facts.flags, err = flagsOf(strings.Split(options, ","), m)
	if err != nil {
		return fieldFacts{}, false, err
	}
	facts.attrs, err = t.fieldAttrs(owner, f, m)
	return facts, true, err
}

func protoNumber(tag string) int {
	parts := strings.Split(tag, ",")
	if len(parts) < 2 {
		return 0
	}
	number, err := strconv.Atoi(parts[1])
	if err != nil {
		return 0
	}
	return number
}

func flagsOf(options []string, m markers) (string, error) {
	flags := ""
	for _, option := range options {
		switch option {
		case "omitempty":
			flags += "e"
		case "omitzero":
			flags += "z"
		case "", "inline":
		default:
			return "", fmt.Errorf("json option %q", option)
		}
	}
	for _, marker := range []struct {
		flag string
		keys []string
	}{
		{"o", []string{"optional", "k8s:optional"}},
		{"r", []string{"required", "k8s:required"}},
		{"n", []string{"nullable"}},
		{"d", []string{"unionDiscriminator", "k8s:unionDiscriminator"}},
	} {
		if slices.ContainsFunc(marker.keys, m.has) {
			flags += marker.flag
		}
	}
	return flags, nil
}

func (t *table) fieldAttrs(owner reflect.Type, f reflect.StructField, m markers) ([]string, error) {
	var attrs []string
	add := func(key, value string) {
		if value != "" {
			attrs = append(attrs, key+"="+value)
		}
	}
	add("patchStrategy", f.Tag.Get("patchStrategy"))
	add("patchMergeKey", f.Tag.Get("patchMergeKey"))
	add("listType", m.first("listType", "k8s:listType"))
	keys := m.all("listMapKey")
	if len(keys) == 0 {
		keys = m.all("k8s:listMapKey")
	}
	add("listMapKey", strings.Join(keys, ","))
	add("mapType", m.first("mapType", "k8s:mapType"))
	add("structType", m.first("structType", "k8s:structType"))
	add("featureGate", m.first("featureGate"))
	if value, ok := m.get("default"); ok {
		resolved, err := t.sources.defaultValue(owner.PkgPath(), value)
		if err != nil {
			return nil, err
		}
		add("default", resolved)
	}
	return attrs, nil
}
