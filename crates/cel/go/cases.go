package main

import (
	"encoding/json"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	conformance "cel.dev/expr/conformance/test"
	"google.golang.org/protobuf/encoding/prototext"

	// Its rules of schemas are cases.
	_ "k8s.io/apiextensions-apiserver/pkg/apiserver/schema/cel/model"
	// The messages that conformance cases have in them.
	_ "cel.dev/expr/conformance/proto2"
	_ "cel.dev/expr/conformance/proto3"
)

type found struct {
	File string `json:"file"`
	Expr string `json:"expr"`
}

// Every expression in the files of a directory: fields of that name in tests that are Go code, rules, conformance cases without variables.
func cases(dir string) {
	out := json.NewEncoder(os.Stdout)
	out.SetEscapeHTML(false)
	tell := func(path, expr string) {
		if err := out.Encode(found{filepath.Base(path), expr}); err != nil {
			panic(err)
		}
	}
	for _, pattern := range []string{"*_test.go", "*.textproto"} {
		paths, err := filepath.Glob(filepath.Join(dir, pattern))
		if err != nil {
			panic(err)
		}
		for _, path := range paths {
			if strings.HasSuffix(path, ".go") {
				fromGo(path, tell)
			} else {
				fromText(path, tell)
			}
		}
	}
}

func fromText(path string, tell func(path, expr string)) {
	text, err := os.ReadFile(path)
	if err != nil {
		panic(err)
	}
	var file conformance.SimpleTestFile
	if err := prototext.Unmarshal(text, &file); err != nil {
		panic(err)
	}
	for _, section := range file.GetSection() {
		for _, test := range section.GetTest() {
			if len(test.GetBindings()) == 0 && len(test.GetTypeEnv()) == 0 && test.GetContainer() == "" {
				tell(path, test.GetExpr())
			}
		}
	}
}

func fromGo(path string, tell func(path, expr string)) {
	file, err := parser.ParseFile(token.NewFileSet(), path, nil, 0)
	if err != nil {
		panic(err)
	}
	ast.Inspect(file, func(node ast.Node) bool {
		pair, ok := node.(*ast.KeyValueExpr)
		if !ok {
			return true
		}
		key, ok := pair.Key.(*ast.Ident)
		if !ok {
			return true
		}
		switch values, _ := pair.Value.(*ast.CompositeLit); {
		case strings.EqualFold(key.Name, "expr"):
			if text, ok := text(pair.Value); ok {
				tell(path, text)
			}
		case values != nil && (key.Name == "valid" || key.Name == "errors"):
			// Rules of schemas: those that hold, and those that do not with what is said then.
			for _, value := range values.Elts {
				if entry, ok := value.(*ast.KeyValueExpr); ok {
					value = entry.Key
				}
				if text, ok := text(value); ok {
					tell(path, text)
				}
			}
		}
		return true
	})
}

func text(e ast.Expr) (string, bool) {
	switch e := e.(type) {
	case *ast.BasicLit:
		if e.Kind == token.STRING {
			text, err := strconv.Unquote(e.Value)
			return text, err == nil
		}
	case *ast.BinaryExpr:
		left, one := text(e.X)
		right, two := text(e.Y)
		return left + right, one && two
	}
	return "", false
}
