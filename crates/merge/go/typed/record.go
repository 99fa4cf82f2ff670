package typed

import (
	"fmt"
	"os"
	"sync"

	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"
	"sigs.k8s.io/structured-merge-diff/v6/internal/record"
	"sigs.k8s.io/structured-merge-diff/v6/schema"
	"sigs.k8s.io/structured-merge-diff/v6/value"
)

var (
	schemaLock sync.Mutex
	schemas    = map[*schema.Schema]string{}
)

func init() {
	fieldpath.RecordSchema = recordType
}

// recordType is a type: its schema by a name, which is written down before, and the reference.
func recordType(s *schema.Schema, ref schema.TypeRef) map[string]any {
	schemaLock.Lock()
	defer schemaLock.Unlock()
	name, ok := schemas[s]
	if !ok {
		name = fmt.Sprintf("%d.%d", os.Getpid(), len(schemas))
		schemas[s] = name
		types := map[string]any{}
		for _, def := range s.Types {
			types[def.Name] = recordAtom(def.Atom)
		}
		record.Write("schema", record.Fields{"name": name, "types": types})
	}
	return map[string]any{"schema": name, "ref": recordRef(ref)}
}

func recordRef(ref schema.TypeRef) any {
	if (ref == schema.TypeRef{}) {
		return nil
	}
	fields := map[string]any{}
	if ref.NamedType != nil {
		fields["named"] = *ref.NamedType
	} else {
		fields["inlined"] = recordAtom(ref.Inlined)
	}
	if ref.ElementRelationship != nil {
		fields["relation"] = *ref.ElementRelationship
	}
	return fields
}

func recordAtom(atom schema.Atom) map[string]any {
	fields := map[string]any{}
	if atom.Scalar != nil {
		fields["scalar"] = *atom.Scalar
	}
	if atom.List != nil {
		fields["list"] = map[string]any{
			"element": recordRef(atom.List.ElementType), "relation": atom.List.ElementRelationship, "keys": atom.List.Keys,
		}
	}
	if atom.Map != nil {
		declared := map[string]any{}
		for _, field := range atom.Map.Fields {
			of := map[string]any{"type": recordRef(field.Type)}
			if field.Default != nil {
				of["default"] = record.Raw(value.RecordJSON(value.NewValueInterface(field.Default)))
			}
			declared[field.Name] = of
		}
		fields["map"] = map[string]any{
			"fields": declared, "element": recordRef(atom.Map.ElementType), "relation": atom.Map.ElementRelationship,
			"deduced": isUntypedDeducedMap(atom.Map),
		}
	}
	return fields
}

// RecordTyped is a value with its type.
func RecordTyped(tv *TypedValue) map[string]any {
	return map[string]any{
		"type": recordType(tv.schema, tv.typeRef), "value": record.Raw(value.RecordJSON(tv.value)),
	}
}

// RecordError is what is wrong, or null.
func RecordError(err error) any {
	if err == nil {
		return nil
	}
	return err.Error()
}

func (tv TypedValue) Validate(opts ...ValidationOptions) error {
	err := tv.upstreamValidate(opts...)
	if record.Wants("validate") {
		record.Write("validate", record.Fields{
			"a": RecordTyped(&tv), "duplicates": len(opts) > 0, "error": RecordError(err),
		})
	}
	return err
}

func (tv TypedValue) ToFieldSet() (*fieldpath.Set, error) {
	set, err := tv.upstreamToFieldSet()
	if record.Wants("fields") {
		record.Write("fields", record.Fields{
			"a": RecordTyped(&tv), "error": RecordError(err), "result": fieldpath.RecordSet(set),
		})
	}
	return set, err
}

func (tv TypedValue) Merge(pso *TypedValue) (*TypedValue, error) {
	merged, err := tv.upstreamMerge(pso)
	if record.Wants("merge") && tv.schema == pso.schema {
		fields := record.Fields{"a": RecordTyped(&tv), "b": RecordTyped(pso), "error": RecordError(err)}
		if err == nil {
			fields["result"] = RecordTyped(merged)
		}
		record.Write("merge", fields)
	}
	return merged, err
}

func (tv TypedValue) Compare(rhs *TypedValue) (*Comparison, error) {
	c, err := tv.upstreamCompare(rhs)
	if record.Wants("compare") && tv.schema == rhs.schema {
		fields := record.Fields{"a": RecordTyped(&tv), "b": RecordTyped(rhs), "error": RecordError(err)}
		if err == nil {
			fields["removed"] = fieldpath.RecordSet(c.Removed)
			fields["modified"] = fieldpath.RecordSet(c.Modified)
			fields["added"] = fieldpath.RecordSet(c.Added)
		}
		record.Write("compare", fields)
	}
	return c, err
}

func (tv TypedValue) RemoveItems(items *fieldpath.Set) *TypedValue {
	result := tv.upstreamRemoveItems(items)
	if record.Wants("remove") {
		record.Write("remove", record.Fields{
			"a": RecordTyped(&tv), "set": fieldpath.RecordSet(items), "result": RecordTyped(result),
		})
	}
	return result
}

func (tv TypedValue) ExtractItems(items *fieldpath.Set, opts ...ExtractItemsOption) *TypedValue {
	result := tv.upstreamExtractItems(items, opts...)
	if record.Wants("extract") {
		record.Write("extract", record.Fields{
			"a": RecordTyped(&tv), "set": fieldpath.RecordSet(items), "keys": len(opts) > 0, "result": RecordTyped(result),
		})
	}
	return result
}

// ReconcileFieldSetWithSchema records a set that changed, or did not: null.
func ReconcileFieldSetWithSchema(fieldset *fieldpath.Set, tv *TypedValue) (*fieldpath.Set, error) {
	set, err := upstreamReconcileFieldSetWithSchema(fieldset, tv)
	if record.Wants("reconcile") {
		record.Write("reconcile", record.Fields{
			"type": recordType(tv.schema, tv.typeRef), "a": fieldpath.RecordSet(fieldset), "error": RecordError(err),
			"result": fieldpath.RecordSet(set),
		})
	}
	return set, err
}
