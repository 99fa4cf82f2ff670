package main

import (
	"fmt"
	"sort"
	"strings"

	"github.com/google/cel-go/common/types"
)

const oldest, newest = 26, 36

// One line a function, indented lines for its overloads: `since id f|m (arguments) result`.
func declarations() {
	since := map[string]uint{}
	for minor := uint(newest); minor >= oldest; minor-- {
		for _, function := range environmentAt(minor).Functions() {
			for _, overload := range function.OverloadDecls() {
				since[function.Name()+" "+overload.ID()] = minor
			}
		}
	}
	functions := environmentAt(newest).Functions()
	names := []string{}
	for name := range functions {
		names = append(names, name)
	}
	sort.Strings(names)
	fmt.Println("# Written by `go run . declarations` in crates/cel/go.")
	for _, name := range names {
		fmt.Println(name)
		for _, overload := range functions[name].OverloadDecls() {
			args := []string{}
			for _, arg := range overload.ArgTypes() {
				args = append(args, typeText(arg))
			}
			kind := "f"
			if overload.IsMemberFunction() {
				kind = "m"
			}
			from := since[name+" "+overload.ID()]
			fmt.Printf(" %d %s %s (%s) %s\n", from, overload.ID(), kind, strings.Join(args, ","), typeText(overload.ResultType()))
		}
	}
}

func typeText(t *types.Type) string {
	name := t.TypeName()
	switch t.Kind() {
	case types.TypeParamKind:
		return "$" + name
	case types.DynKind:
		return "dyn"
	case types.StructKind:
		return "@" + name
	}
	if len(t.Parameters()) == 0 {
		return name
	}
	params := []string{}
	for _, param := range t.Parameters() {
		params = append(params, typeText(param))
	}
	return name + "(" + strings.Join(params, ",") + ")"
}
