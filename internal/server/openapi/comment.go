package openapi

import (
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"regexp"
	"strings"
)

// Comments are what the sources say of types and fields: "package.Type" and
// "package.Type.Field".
type Comments map[string]string

// ReadComments reads the comments of all types in some folders, tests left
// out.
func ReadComments(dirs ...string) (Comments, error) {
	all := Comments{}
	for _, dir := range dirs {
		files, err := os.ReadDir(dir)
		if err != nil {
			return nil, err
		}
		for _, f := range files {
			if !strings.HasSuffix(f.Name(), ".go") || strings.HasSuffix(f.Name(), "_test.go") {
				continue
			}
			parsed, err := parser.ParseFile(token.NewFileSet(), filepath.Join(dir, f.Name()), nil, parser.ParseComments)
			if err != nil {
				return nil, err
			}
			all.add(parsed)
		}
	}
	return all, nil
}

func (c Comments) add(f *ast.File) {
	for _, d := range f.Decls {
		g, ok := d.(*ast.GenDecl)
		if !ok {
			continue
		}
		for _, s := range g.Specs {
			t, ok := s.(*ast.TypeSpec)
			if !ok {
				continue
			}
			name := f.Name.Name + "." + t.Name.Name
			c.set(name, g.Doc)
			if st, ok := t.Type.(*ast.StructType); ok {
				c.fields(name, st)
			}
		}
	}
}

func (c Comments) fields(name string, st *ast.StructType) {
	for _, f := range st.Fields.List {
		for _, n := range f.Names {
			c.set(name+"."+n.Name, f.Doc)
		}
	}
}

var (
	goLink = regexp.MustCompile(`\[\*?([A-Za-z0-9_.]+)\]`)
	spaces = regexp.MustCompile(`\s+`)
)

// set keeps a comment as one line, without the links of Go's documentation.
func (c Comments) set(name string, doc *ast.CommentGroup) {
	if doc == nil {
		return
	}
	text := spaces.ReplaceAllString(strings.TrimSpace(doc.Text()), " ")
	// Go's comments begin with the name of what they stand at, which is
	// written otherwise here.
	if rest, ok := strings.CutPrefix(text, name[strings.LastIndex(name, ".")+1:]+" "); ok {
		text = "It " + rest
		for _, verb := range []string{"is ", "are "} {
			if own, ok := strings.CutPrefix(rest, verb); ok {
				text = strings.ToUpper(own[:1]) + own[1:]
			}
		}
	}
	c[name] = goLink.ReplaceAllString(text, "$1")
}
