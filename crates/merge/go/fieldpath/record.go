package fieldpath

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"

	"sigs.k8s.io/structured-merge-diff/v6/internal/record"
	"sigs.k8s.io/structured-merge-diff/v6/schema"
)

// RecordSet is a set as JSON; null if it has none.
func RecordSet(s *Set) json.RawMessage {
	if s == nil {
		return record.Raw([]byte("null"))
	}
	text, err := s.upstreamToJSON()
	if err != nil {
		return record.Raw([]byte("null"))
	}
	return record.Raw(text)
}

// RecordPath is a path, each element as it stands in a set.
func RecordPath(path Path) []string {
	elements := []string{}
	for _, element := range path {
		text, err := SerializePathElement(element)
		if err != nil {
			text = "?"
		}
		elements = append(elements, text)
	}
	return elements
}

// RecordManagers is who owns what.
func RecordManagers(managers ManagedFields) map[string]any {
	all := map[string]any{}
	for name, owned := range managers {
		all[name] = map[string]any{
			"set": string(RecordSet(owned.Set())), "version": owned.APIVersion(), "applied": owned.Applied(),
		}
	}
	return all
}

// RecordFilter is a filter.
func RecordFilter(filter Filter) any {
	switch filter := filter.(type) {
	case excludeFilter:
		return map[string]any{"exclude": RecordSet(filter.excludeSet)}
	case includeMatcherFilter:
		return map[string]any{"include": recordMatcher(filter.matcher)}
	default:
		return nil
	}
}

func recordMatcher(matcher *SetMatcher) any {
	if matcher.wildcard {
		return nil
	}
	members := []any{}
	for _, member := range matcher.members {
		var element any
		if !member.Path.Wildcard {
			element = RecordPath(Path{member.Path.PathElement})[0]
		}
		members = append(members, []any{element, recordMatcher(member.Child)})
	}
	return members
}

func recordOperation(name string, s, s2, result *Set) *Set {
	if record.Wants("set") {
		record.Write("set", record.Fields{
			"operation": name, "a": RecordSet(s), "b": RecordSet(s2), "result": RecordSet(result),
		})
	}
	return result
}

func (s *Set) Union(s2 *Set) *Set {
	return recordOperation("union", s, s2, s.upstreamUnion(s2))
}

func (s *Set) Intersection(s2 *Set) *Set {
	return recordOperation("intersection", s, s2, s.upstreamIntersection(s2))
}

func (s *Set) Difference(s2 *Set) *Set {
	return recordOperation("difference", s, s2, s.upstreamDifference(s2))
}

func (s *Set) RecursiveDifference(s2 *Set) *Set {
	return recordOperation("recursiveDifference", s, s2, s.upstreamRecursiveDifference(s2))
}

func (s *Set) Leaves() *Set {
	return recordOperation("leaves", s, nil, s.upstreamLeaves())
}

// RecordSchema is set by package typed, which knows how a schema is written down.
var RecordSchema func(*schema.Schema, schema.TypeRef) map[string]any

func (s *Set) EnsureNamedFieldsAreMembers(sc *schema.Schema, tr schema.TypeRef) *Set {
	result := s.upstreamEnsureNamedFieldsAreMembers(sc, tr)
	if record.Wants("declared") && RecordSchema != nil && (sc.Types != nil) && (tr != schema.TypeRef{}) {
		record.Write("declared", record.Fields{
			"type": RecordSchema(sc, tr), "a": RecordSet(s), "result": RecordSet(result),
		})
	}
	return result
}

func (s *Set) FilterIncludeMatches(pattern *SetMatcher) *Set {
	result := s.upstreamFilterIncludeMatches(pattern)
	if record.Wants("include") && record.Direct() {
		record.Write("include", record.Fields{
			"matcher": recordMatcher(pattern), "a": RecordSet(s), "result": RecordSet(result),
		})
	}
	return result
}

func (s *Set) Has(p Path) bool {
	result := s.upstreamHas(p)
	if record.Wants("has") && record.Direct() {
		record.Write("has", record.Fields{"a": RecordSet(s), "path": RecordPath(p), "result": result})
	}
	return result
}

func (s *Set) Equals(s2 *Set) bool {
	result := s.upstreamEquals(s2)
	if record.Wants("equals") && record.Direct() {
		record.Write("equals", record.Fields{"a": RecordSet(s), "b": RecordSet(s2), "result": result})
	}
	return result
}

// ToJSON records the set as its paths, so that writing them is held against it.
func (s *Set) ToJSON() ([]byte, error) {
	text, err := s.upstreamToJSON()
	if err == nil && record.Wants("write") {
		paths := [][]string{}
		s.Iterate(func(path Path) { paths = append(paths, RecordPath(path)) })
		record.Write("write", record.Fields{
			"paths": paths, "size": s.Size(), "text": s.String(), "result": string(text),
		})
	}
	return text, err
}

func (s *Set) FromJSON(r io.Reader) error {
	text, err := io.ReadAll(r)
	if err != nil {
		return err
	}
	err = s.upstreamFromJSON(bytes.NewReader(text))
	if record.Wants("read") {
		record.Write("read", record.Fields{
			"text": string(text), "failed": err != nil && err != io.EOF, "result": RecordSet(s),
		})
	}
	return err
}

func (e PathElement) Compare(rhs PathElement) int {
	result := e.upstreamCompare(rhs)
	if record.Wants("order") && record.Direct() {
		recordOrder(e, rhs, result)
	}
	return result
}

func (e PathElement) Less(rhs PathElement) bool {
	result := e.upstreamCompare(rhs)
	if record.Wants("order") && record.Direct() {
		recordOrder(e, rhs, result)
	}
	return result < 0
}

func recordOrder(a, b PathElement, result int) {
	pair := RecordPath(Path{a, b})
	record.Write("order", record.Fields{
		"a": pair[0], "b": pair[1], "texts": []string{fmt.Sprint(a), fmt.Sprint(b)}, "result": result,
	})
}
