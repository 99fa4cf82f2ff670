package main

import (
	"encoding/json"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"reflect"
	"slices"
	"strconv"
	"strings"
)

// sources is what the modules' source says and reflection does not.
type sources struct {
	versions []string                  // "module version", in the order asked for
	modules  map[string]string         // module path -> directory
	packages map[string]*packageSource // import path -> package; filled on demand
}

type packageSource struct {
	types  map[string]*typeSource
	consts map[string]constant // name -> value
}

type constant struct {
	typ   string // the declared type's name in its own package; "" when untyped
	value string
}

type typeSource struct {
	markers markers
	fields  map[string]markers // Go field name -> markers
}

// markers are the `+key=value` lines of a comment, in order.
type markers []string

func (m markers) has(key string) bool {
	_, ok := m.get(key)
	return ok
}

// get returns the first value of key.
func (m markers) get(key string) (string, bool) {
	values := m.all(key)
	if len(values) == 0 {
		return "", false
	}
	return values[0], true
}

func (m markers) all(key string) []string {
	var values []string
	for _, marker := range m {
		if name, value, _ := strings.Cut(marker, "="); name == key {
			values = append(values, value)
		}
	}
	return values
}

// first returns the first value of the first key that is present.
func (m markers) first(keys ...string) string {
	for _, key := range keys {
		if value, ok := m.get(key); ok {
			return value
		}
	}
	return ""
}

func loadSources(modules []string) (*sources, error) {
	s := &sources{modules: map[string]string{}, packages: map[string]*packageSource{}}
	cmd := exec.Command("go", append([]string{"list", "-m", "-json=Path,Version,Dir"}, modules...)...)
	cmd.Stderr = os.Stderr
	output, err := cmd.Output()
	if err != nil {
		return nil, fmt.Errorf("go list: %w", err)
	}
	decoder := json.NewDecoder(strings.NewReader(string(output)))
	for decoder.More() {
		var module struct{ Path, Version, Dir string }
		if err := decoder.Decode(&module); err != nil {
			return nil, err
		}
		s.modules[module.Path] = module.Dir
		s.versions = append(s.versions, module.Path+" "+module.Version)
	}
	return s, nil
}

func (s *sources) pkg(importPath string) (*packageSource, error) {
	if p, ok := s.packages[importPath]; ok {
		return p, nil
	}
	for module, dir := range s.modules {
		if rest, ok := strings.CutPrefix(importPath, module+"/"); ok {
			p, err := s.parsePackage(filepath.Join(dir, filepath.FromSlash(rest)))
			s.packages[importPath] = p
			return p, err
		}
	}
	return nil, fmt.Errorf("package %s is in none of the modules", importPath)
}

func (s *sources) parsePackage(dir string) (*packageSource, error) {
	files, err := filepath.Glob(filepath.Join(dir, "*.go"))
	if err != nil {
		return nil, err
	}
	p := &packageSource{types: map[string]*typeSource{}, consts: map[string]constant{}}
	for _, name := range files {
		if strings.HasSuffix(name, "_test.go") {
			continue
		}
		fset := token.NewFileSet()
		file, err := parser.ParseFile(fset, name, nil, parser.ParseComments)
		if err != nil {
			return nil, err
		}
		s.addFile(p, fset, file)
	}
	return p, nil
}

func (s *sources) addFile(p *packageSource, fset *token.FileSet, file *ast.File) {
	for _, decl := range file.Decls {
		gen, ok := decl.(*ast.GenDecl)
		if !ok {
			continue
		}
		for _, spec := range gen.Specs {
			switch spec := spec.(type) {
			case *ast.TypeSpec:
				comments := []*ast.CommentGroup{gen.Doc, spec.Doc}
				// gengo also reads the comment block that ends one blank line above the declaration.
				if before := blockAbove(fset, file, gen); before != nil {
					comments = append([]*ast.CommentGroup{before}, comments...)
				}
				p.types[spec.Name.Name] = typeFrom(spec, comments)
			case *ast.ValueSpec:
				if gen.Tok == token.CONST {
					s.addConst(p, file, spec)
				}
			}
		}
	}
}

// blockAbove returns the comment that is separated from the declaration (and its doc) by one blank line.
func blockAbove(fset *token.FileSet, file *ast.File, gen *ast.GenDecl) *ast.CommentGroup {
	start := fset.Position(gen.Pos()).Line
	if gen.Doc != nil {
		start = fset.Position(gen.Doc.Pos()).Line
	}
	for _, group := range file.Comments {
		if fset.Position(group.End()).Line == start-2 {
			return group
		}
	}
	return nil
}

func typeFrom(spec *ast.TypeSpec, comments []*ast.CommentGroup) *typeSource {
	t := &typeSource{markers: markersOf(comments...), fields: map[string]markers{}}
	structType, ok := spec.Type.(*ast.StructType)
	if !ok {
		return t
	}
	for _, field := range structType.Fields.List {
		found := markersOf(field.Doc)
		if len(field.Names) == 0 {
			t.fields[embeddedName(field.Type)] = found
		}
		for _, name := range field.Names {
			t.fields[name.Name] = found
		}
	}
	return t
}

func embeddedName(expr ast.Expr) string {
	switch expr := expr.(type) {
	case *ast.StarExpr:
		return embeddedName(expr.X)
	case *ast.SelectorExpr:
		return expr.Sel.Name
	case *ast.Ident:
		return expr.Name
	}
	return ""
}

func markersOf(groups ...*ast.CommentGroup) markers {
	var found markers
	for _, group := range groups {
		if group == nil {
			continue
		}
		for _, comment := range group.List {
			line := strings.TrimSpace(strings.TrimPrefix(comment.Text, "//"))
			if strings.HasPrefix(line, "+") {
				found = append(found, strings.TrimPrefix(line, "+"))
			}
		}
	}
	return found
}

// addConst records `Name T = "value"`, `Name = T("value")`, `Name T = Other` and `Name = T(other.Name)`.
func (s *sources) addConst(p *packageSource, file *ast.File, spec *ast.ValueSpec) {
	for i, name := range spec.Names {
		if i >= len(spec.Values) {
			continue
		}
		c := constant{}
		if ident, ok := spec.Type.(*ast.Ident); ok {
			c.typ = ident.Name
		}
		value := spec.Values[i]
		if call, ok := value.(*ast.CallExpr); ok && len(call.Args) == 1 {
			if ident, ok := call.Fun.(*ast.Ident); ok {
				c.typ, value = ident.Name, call.Args[0]
			}
		}
		switch value := value.(type) {
		case *ast.BasicLit:
			if value.Kind != token.STRING {
				continue
			}
			text, err := strconv.Unquote(value.Value)
			if err != nil {
				continue
			}
			c.value = text
		case *ast.Ident:
			other, ok := p.consts[value.Name]
			if !ok {
				continue
			}
			c.value = other.value
			if c.typ == "" {
				c.typ = other.typ
			}
		case *ast.SelectorExpr:
			other, ok := s.imported(file, value)
			if !ok {
				continue
			}
			c.value = other.value
		default:
			continue
		}
		p.consts[name.Name] = c
	}
}

// imported returns a constant of another package, unless that is outside the modules.
func (s *sources) imported(file *ast.File, expr *ast.SelectorExpr) (constant, bool) {
	alias, ok := expr.X.(*ast.Ident)
	if !ok {
		return constant{}, false
	}
	for _, spec := range file.Imports {
		importPath, err := strconv.Unquote(spec.Path.Value)
		if err != nil {
			continue
		}
		name := path.Base(importPath)
		if spec.Name != nil {
			name = spec.Name.Name
		}
		if name != alias.Name {
			continue
		}
		p, err := s.pkg(importPath)
		if err != nil {
			return constant{}, false
		}
		c, ok := p.consts[expr.Sel.Name]
		return c, ok
	}
	return constant{}, false
}

// enumValues returns the sorted values of the type's constants, if the type is marked as an enum.
func (s *sources) enumValues(t reflect.Type) ([]string, error) {
	p, err := s.pkg(t.PkgPath())
	if err != nil {
		return nil, err
	}
	source, ok := p.types[t.Name()]
	if !ok || !source.markers.has("enum") && !source.markers.has("k8s:enum") {
		return nil, nil
	}
	var values []string
	for _, c := range p.consts {
		if c.typ == t.Name() {
			values = append(values, c.value)
		}
	}
	slices.Sort(values)
	return slices.Compact(values), nil
}

// defaultValue resolves `+default=ref(Name)` to the constant's value as JSON; other defaults are JSON already.
func (s *sources) defaultValue(pkgPath, value string) (string, error) {
	inner, ok := strings.CutPrefix(value, "ref(")
	if !ok {
		if !json.Valid([]byte(value)) {
			return "", fmt.Errorf("default %q is not JSON", value)
		}
		return value, nil
	}
	name := path.Ext("." + strings.TrimSuffix(inner, ")"))[1:]
	p, err := s.pkg(pkgPath)
	if err != nil {
		return "", err
	}
	c, ok := p.consts[name]
	if !ok {
		return "", fmt.Errorf("default %q names no constant", value)
	}
	text, err := json.Marshal(c.value)
	return string(text), err
}
