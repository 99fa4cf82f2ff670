package merge_test

import (
	"bytes"
	"fmt"
	"math/rand"
	"os"
	"strconv"
	"strings"
	"testing"

	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"
	"sigs.k8s.io/structured-merge-diff/v6/internal/fixture"
	"sigs.k8s.io/structured-merge-diff/v6/merge"
	"sigs.k8s.io/structured-merge-diff/v6/typed"
)

// Every kind of list and map, inside each other.
var sequenceSchema = `types:
- name: root
  map:
    fields:
    - name: name
      type: {scalar: string}
    - name: count
      type: {scalar: numeric}
    - name: enabled
      type: {scalar: boolean}
    - name: atomicList
      type:
        list: {elementType: {scalar: string}, elementRelationship: atomic}
    - name: set
      type:
        list: {elementType: {scalar: string}, elementRelationship: associative}
    - name: numbers
      type:
        list: {elementType: {scalar: numeric}, elementRelationship: associative}
    - name: items
      type:
        list: {elementType: {namedType: item}, elementRelationship: associative, keys: [name]}
    - name: ports
      type:
        list: {elementType: {namedType: port}, elementRelationship: associative, keys: [port, protocol]}
    - name: labels
      type:
        map: {elementType: {scalar: string}}
    - name: structs
      type:
        map: {elementType: {namedType: item}}
    - name: atomicMap
      type:
        map: {elementType: {scalar: string}, elementRelationship: atomic}
    - name: selector
      type: {namedType: item, elementRelationship: atomic}
    - name: struct
      type: {namedType: item}
    - name: any
      type: {namedType: __untyped_deduced_}
- name: item
  map:
    fields:
    - name: name
      type: {scalar: string}
    - name: value
      type: {scalar: untyped}
    - name: labels
      type:
        map: {elementType: {scalar: string}}
    - name: set
      type:
        list: {elementType: {scalar: string}, elementRelationship: associative}
    - name: items
      type:
        list: {elementType: {namedType: item}, elementRelationship: associative, keys: [name]}
- name: port
  map:
    fields:
    - name: port
      type: {scalar: numeric}
    - name: protocol
      type: {scalar: string}
      default: TCP
    - name: host
      type: {scalar: string}
- name: __untyped_atomic_
  scalar: untyped
  list:
    elementType: {namedType: __untyped_atomic_}
    elementRelationship: atomic
  map:
    elementType: {namedType: __untyped_atomic_}
    elementRelationship: atomic
- name: __untyped_deduced_
  scalar: untyped
  list:
    elementType: {namedType: __untyped_atomic_}
    elementRelationship: atomic
  map:
    elementType: {namedType: __untyped_deduced_}
    elementRelationship: separable
`

// Schemas that it may change to: what was granular is atomic, and the other way around.
var sequenceParsers = func() []typed.ParseableType {
	changes := []*strings.Replacer{
		strings.NewReplacer(),
		strings.NewReplacer("type: {namedType: item}", "type: {namedType: item, elementRelationship: atomic}"),
		strings.NewReplacer("map: {elementType: {scalar: string}}", "map: {elementType: {scalar: string}, elementRelationship: atomic}"),
		strings.NewReplacer("elementRelationship: associative}", "elementRelationship: atomic}", ", elementRelationship: associative, keys: [name]", ", elementRelationship: atomic"),
		strings.NewReplacer("type: {namedType: item, elementRelationship: atomic}", "type: {namedType: item}", "map: {elementType: {scalar: string}, elementRelationship: atomic}", "map: {elementType: {scalar: string}}"),
	}
	parsers := []typed.ParseableType{}
	for _, change := range changes {
		parser, err := typed.NewParser(typed.YAMLObject(change.Replace(sequenceSchema)))
		if err != nil {
			panic(err)
		}
		parsers = append(parsers, parser.Type("root"))
	}
	return parsers
}()

type generator struct{ *rand.Rand }

func (g generator) word() any { return []string{"a", "b", "c", "d\"", "<e>", "f\u2028"}[g.Intn(6)] }

func (g generator) list(duplicates bool, max int, make func() any, key func(any) string) any {
	if g.Intn(12) == 0 {
		return nil
	}
	items, seen := []any{}, map[string]bool{}
	for n := g.Intn(max); n > 0; n-- {
		item := make()
		if seen[key(item)] && (!duplicates || g.Intn(3) > 0) {
			continue
		}
		seen[key(item)] = true
		items = append(items, item)
	}
	return items
}

func text(item any) string { return fmt.Sprint(item) }

func (g generator) words(duplicates bool) any {
	return g.list(duplicates, 5, g.word, text)
}

func (g generator) labels() any {
	if g.Intn(12) == 0 {
		return nil
	}
	labels := map[string]any{}
	for n := g.Intn(4); n > 0; n-- {
		labels[g.word().(string)] = g.word()
	}
	return labels
}

func (g generator) item(duplicates bool, depth int) any {
	item := map[string]any{"name": g.word()}
	if g.Intn(2) == 0 {
		item["value"] = []any{int64(1), 1.5, "x", true, nil}[g.Intn(5)]
	}
	if g.Intn(3) == 0 {
		item["labels"] = g.labels()
	}
	if g.Intn(3) == 0 {
		item["set"] = g.words(duplicates)
	}
	if depth > 0 && g.Intn(2) == 0 {
		item["items"] = g.items(duplicates, depth-1)
	}
	return item
}

func (g generator) items(duplicates bool, depth int) any {
	return g.list(duplicates, 5, func() any { return g.item(duplicates, depth) }, func(item any) string {
		return item.(map[string]any)["name"].(string)
	})
}

func (g generator) port() any {
	port := map[string]any{"port": int64(80 + g.Intn(3))}
	if g.Intn(2) == 0 {
		port["protocol"] = []any{"TCP", "UDP"}[g.Intn(2)]
	}
	if g.Intn(2) == 0 {
		port["host"] = g.word()
	}
	return port
}

func portKey(item any) string {
	port := item.(map[string]any)
	protocol, ok := port["protocol"]
	if !ok {
		protocol = "TCP"
	}
	return fmt.Sprint(port["port"], protocol)
}

func (g generator) untyped(depth int) any {
	switch n := g.Intn(7); {
	case n == 0:
		return nil
	case n == 1:
		return int64(g.Intn(3))
	case n == 2:
		return g.words(true)
	case n < 5 && depth > 0:
		members := map[string]any{}
		for n := g.Intn(4); n > 0; n-- {
			members[g.word().(string)] = g.untyped(depth - 1)
		}
		return members
	default:
		return g.word()
	}
}

func (g generator) object(duplicates bool) any {
	object := map[string]any{}
	fields := map[string]func() any{
		"name":       g.word,
		"count":      func() any { return []any{int64(g.Intn(3)), 1.0, 2.5}[g.Intn(3)] },
		"enabled":    func() any { return g.Intn(2) == 0 },
		"atomicList": func() any { return g.words(true) },
		"set":        func() any { return g.words(duplicates) },
		"numbers": func() any {
			return g.list(duplicates, 4, func() any { return []any{int64(g.Intn(3)), 1.0, 2.5}[g.Intn(3)] }, text)
		},
		"items":     func() any { return g.items(duplicates, 1) },
		"ports":     func() any { return g.list(duplicates, 5, g.port, portKey) },
		"labels":    g.labels,
		"atomicMap": g.labels,
		"structs": func() any {
			return map[string]any{g.word().(string): g.item(duplicates, 1), g.word().(string): g.item(duplicates, 0)}
		},
		"selector": func() any { return g.item(duplicates, 0) },
		"struct":   func() any { return g.item(duplicates, 1) },
		"any":      func() any { return g.untyped(2) },
	}
	names := []string{
		"name", "count", "enabled", "atomicList", "set", "numbers", "items", "ports", "labels", "atomicMap", "structs",
		"selector", "struct", "any",
	}
	// Few, so that managers are in each other's way.
	for n := 1 + g.Intn(5); n > 0; n-- {
		name := names[g.Intn(len(names))]
		object[name] = fields[name]()
	}
	return object
}

type sameConverter struct{}

type missing struct{}

func (missing) Error() string { return "no such version" }

// Convert forgets v0 once it is asked to write it.
func (sameConverter) Convert(v *typed.TypedValue, version fieldpath.APIVersion) (*typed.TypedValue, error) {
	if version == "v0" {
		return nil, missing{}
	}
	return v, nil
}

func (sameConverter) IsMissingVersionError(err error) bool {
	_, ok := err.(missing)
	return ok
}

func number(name string, otherwise int) int {
	if n, err := strconv.Atoi(os.Getenv(name)); err == nil {
		return n
	}
	return otherwise
}

func throughJSON(managers fieldpath.ManagedFields) fieldpath.ManagedFields {
	read := fieldpath.ManagedFields{}
	for name, owned := range managers {
		set := owned.Set()
		if text, err := set.ToJSON(); err == nil {
			set = fieldpath.NewSet()
			if err := set.FromJSON(bytes.NewReader(text)); err != nil {
				panic(err)
			}
		}
		read[name] = fieldpath.NewVersionedSet(set, owned.APIVersion(), owned.Applied())
	}
	return read
}

// TestRecordSequences runs random sequences; what they do is recorded.
func TestRecordSequences(t *testing.T) {
	exclude := fieldpath.NewExcludeSetFilter(fieldpath.NewSet(
		fieldpath.MakePathOrDie("labels"), fieldpath.MakePathOrDie("struct", "name"),
	))
	include := fieldpath.NewIncludeMatcherFilter(
		fieldpath.MakePrefixMatcherOrDie("items", fieldpath.MatchAnyPathElement(), "value"),
		fieldpath.MakePrefixMatcherOrDie("name"), fieldpath.MakePrefixMatcherOrDie("ports"),
		fieldpath.MakePrefixMatcherOrDie("any"),
	)
	for sequence := 0; sequence < number("SEQUENCES", 0); sequence++ {
		g := generator{rand.New(rand.NewSource(int64(number("SEED", 1)*1_000_000 + sequence)))}
		builder := merge.UpdaterBuilder{Converter: sameConverter{}}
		switch g.Intn(6) {
		case 0:
			builder.IgnoreFilter = map[fieldpath.APIVersion]fieldpath.Filter{"v1": exclude}
		case 1:
			builder.IgnoreFilter = map[fieldpath.APIVersion]fieldpath.Filter{"v1": include}
		}
		parser := sequenceParsers[0]
		state := fixture.State{Updater: builder.BuildUpdater(), Parser: fixture.SameVersionParser{T: parser}}
		versions := [][]string{{"v1"}, {"v1", "v1", "v1", "v2", "v3"}}[g.Intn(2)]
		applied := map[string]map[string]any{}
		for step := 2 + g.Intn(6); step > 0; step-- {
			if state.Live != nil && g.Intn(10) == 0 {
				parser = sequenceParsers[g.Intn(len(sequenceParsers))]
				live, err := typed.AsTyped(state.Live.AsValue(), parser.Schema, parser.TypeRef, typed.AllowDuplicates)
				if err != nil {
					panic(err)
				}
				state.Live, state.Parser = live, fixture.SameVersionParser{T: parser}
			}
			version := fieldpath.APIVersion(versions[g.Intn(len(versions))])
			manager := []string{"one", "two", "three"}[g.Intn(3)]
			// Whoever writes is told apart from who applies, as the server does.
			if g.Intn(3) == 0 {
				object, err := parser.FromUnstructured(g.object(true), typed.AllowDuplicates)
				if err != nil {
					panic(err)
				}
				_ = state.UpdateObject(object, version, manager+"-update")
			} else {
				config := g.object(g.Intn(20) == 0).(map[string]any)
				if g.Intn(2) == 0 {
					// What it applied before, and more.
					for name, value := range applied[manager] {
						if _, ok := config[name]; !ok || g.Intn(2) == 0 {
							config[name] = value
						}
					}
				}
				if object, err := parser.FromUnstructured(config); err == nil {
					_ = state.ApplyObject(object, version, manager, g.Intn(2) == 0)
					applied[manager] = config
				}
			}
			if g.Intn(2) == 0 {
				state.Managers = throughJSON(state.Managers)
			}
			if len(state.Managers) > 0 && g.Intn(10) == 0 {
				for name, owned := range state.Managers {
					state.Managers[name] = fieldpath.NewVersionedSet(owned.Set(), "v0", owned.Applied())
					break
				}
			}
		}
	}
}
