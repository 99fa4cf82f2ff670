package main

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
)

// resets writes, out of the sources below some directories, which fields each strategy resets, by version.
func resets() {
	for _, dir := range os.Args[2:] {
		err := filepath.WalkDir(dir, func(path string, entry fs.DirEntry, err error) error {
			if err == nil && strings.HasSuffix(path, ".go") && !strings.HasSuffix(path, "_test.go") {
				resetsOf(path)
			}
			return err
		})
		if err != nil {
			panic(err)
		}
	}
}

func resetsOf(path string) {
	file, err := parser.ParseFile(token.NewFileSet(), path, nil, 0)
	if err != nil {
		panic(err)
	}
	for _, declared := range file.Decls {
		function, ok := declared.(*ast.FuncDecl)
		if !ok || function.Recv == nil || function.Name.Name != "GetResetFields" {
			continue
		}
		fields := map[string][]string{}
		ast.Inspect(function.Body, func(node ast.Node) bool {
			switch node := node.(type) {
			case *ast.KeyValueExpr:
				add(fields, node.Key, node.Value)
			case *ast.CallExpr:
				// fields[version].Insert(path)
				inserting, ok := node.Fun.(*ast.SelectorExpr)
				if !ok || inserting.Sel.Name != "Insert" {
					return true
				}
				if of, ok := inserting.X.(*ast.IndexExpr); ok {
					add(fields, of.Index, node)
				}
			}
			return true
		})
		if len(fields) > 0 {
			receiver := function.Recv.List[0].Type
			if pointer, ok := receiver.(*ast.StarExpr); ok {
				receiver = pointer.X
			}
			write(map[string]any{
				"package": filepath.Base(filepath.Dir(path)), "receiver": receiver.(*ast.Ident).Name, "fields": fields,
			})
		}
	}
}

// add adds the paths that are made somewhere in an expression.
func add(fields map[string][]string, version, within ast.Expr) {
	literal, ok := version.(*ast.BasicLit)
	if !ok {
		return
	}
	name := text(literal)
	fields[name] = append([]string{}, fields[name]...)
	ast.Inspect(within, func(node ast.Node) bool {
		call, ok := node.(*ast.CallExpr)
		if !ok {
			return true
		}
		if made, ok := call.Fun.(*ast.SelectorExpr); ok && made.Sel.Name == "MakePathOrDie" {
			steps := []string{}
			for _, step := range call.Args {
				steps = append(steps, text(step.(*ast.BasicLit)))
			}
			fields[name] = append(fields[name], strings.Join(steps, "."))
		}
		return true
	})
}

func text(literal *ast.BasicLit) string {
	text, err := strconv.Unquote(literal.Value)
	if err != nil {
		panic(err)
	}
	return text
}
