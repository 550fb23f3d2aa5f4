package archtest

import (
	"bytes"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"path"
	"slices"
	"strings"
)

// MaxLines bounds a Go file that a person reads.
const MaxLines = 500

// MaxMainLines bounds a main.go: it parses nothing and decides nothing.
const MaxMainLines = 40

// Source is one parsed Go file of this module.
type Source struct {
	// Path is relative to the module's root, with slashes.
	Path  string
	Text  []byte
	File  *ast.File
	Lines int
	fset  *token.FileSet
}

// Parse makes a Source of a file's text.
func Parse(name string, text []byte) (*Source, error) {
	fset := token.NewFileSet()
	file, err := parser.ParseFile(fset, name, text, parser.ParseComments)
	if err != nil {
		return nil, err
	}
	return &Source{
		Path: name, Text: text, File: file, fset: fset, Lines: bytes.Count(text, []byte("\n")),
	}, nil
}

func (s *Source) isTest() bool { return strings.HasSuffix(s.Path, "_test.go") }

func (s *Source) at(n ast.Node, format string, args ...any) string {
	return fmt.Sprintf("%s:%d: %s", s.Path, s.fset.Position(n.Pos()).Line, fmt.Sprintf(format, args...))
}

// CheckSource returns a line for each rule that one file breaks.
func CheckSource(s *Source) []string {
	if ast.IsGenerated(s.File) {
		return nil
	}
	return slices.Concat(checkLength(s), checkUnsafe(s), checkInit(s), checkLogger(s),
		checkSkip(s), checkUnfinished(s))
}

func checkLength(s *Source) []string {
	most := MaxLines
	if path.Base(s.Path) == "main.go" {
		most = MaxMainLines
	}
	if s.Lines > most {
		return []string{fmt.Sprintf("%s: %d lines, at most %d", s.Path, s.Lines, most)}
	}
	return nil
}

func checkUnsafe(s *Source) []string {
	name := strings.TrimSuffix(s.Path, ".go")
	if strings.HasSuffix(strings.TrimSuffix(name, "_test"), "_unsafe") {
		return nil
	}
	var bad []string
	for _, imp := range s.File.Imports {
		if imp.Path.Value == `"unsafe"` {
			bad = append(bad, s.at(imp, "unsafe stands only in *_unsafe.go"))
		}
	}
	for _, group := range s.File.Comments {
		for _, c := range group.List {
			if strings.HasPrefix(c.Text, "//go:linkname") {
				bad = append(bad, s.at(c, "go:linkname stands only in *_unsafe.go"))
			}
		}
	}
	return bad
}

// checkInit forbids init() but in files named reexec*.go, where it must run
// before main does.
func checkInit(s *Source) []string {
	if strings.HasPrefix(path.Base(s.Path), "reexec") {
		return nil
	}
	var bad []string
	for _, decl := range s.File.Decls {
		if f, ok := decl.(*ast.FuncDecl); ok && f.Recv == nil && f.Name.Name == "init" {
			bad = append(bad, s.at(f, "init() only for re-exec, in a file reexec*.go"))
		}
	}
	return bad
}

// checkLogger forbids the process-wide loggers of log and log/slog.
func checkLogger(s *Source) []string {
	var bad []string
	for _, imp := range s.File.Imports {
		if imp.Path.Value == `"log"` {
			bad = append(bad, s.at(imp, "package log is a global logger; take a *slog.Logger"))
		}
	}
	global := []string{
		"Default", "SetDefault", "Debug", "Info", "Warn", "Error", "Log",
		"DebugContext", "InfoContext", "WarnContext", "ErrorContext",
	}
	ast.Inspect(s.File, func(n ast.Node) bool {
		sel, ok := n.(*ast.SelectorExpr)
		if !ok {
			return true
		}
		if x, ok := sel.X.(*ast.Ident); ok && x.Name == "slog" && slices.Contains(global, sel.Sel.Name) {
			bad = append(bad, s.at(sel, "slog.%s is a global logger; take a *slog.Logger", sel.Sel.Name))
		}
		return true
	})
	return bad
}

// checkSkip forbids t.Skip outside of package require, where a skip becomes a
// failure in a run that declared to provide what is missing. A property's own
// Skip, which discards one generated case, is something else.
func checkSkip(s *Source) []string {
	if within(s.Path, "internal/require") {
		return nil
	}
	var bad []string
	var walk func(n ast.Node, testers map[string]bool)
	walk = func(n ast.Node, testers map[string]bool) {
		ast.Inspect(n, func(n ast.Node) bool {
			switch n := n.(type) {
			case *ast.FuncDecl:
				if n.Body != nil {
					walk(n.Body, withParams(testers, n.Type))
				}
				return false
			case *ast.FuncLit:
				walk(n.Body, withParams(testers, n.Type))
				return false
			case *ast.SelectorExpr:
				x, ok := n.X.(*ast.Ident)
				if ok && testers[x.Name] && slices.Contains([]string{"Skip", "Skipf", "SkipNow"}, n.Sel.Name) {
					bad = append(bad, s.at(n, "%s.%s: ask package require for the part instead", x.Name, n.Sel.Name))
				}
			}
			return true
		})
	}
	walk(s.File, map[string]bool{})
	return bad
}

// withParams returns the names that are a testing.T and its like once the
// function's parameters have shadowed what was outside.
func withParams(outer map[string]bool, f *ast.FuncType) map[string]bool {
	inner := make(map[string]bool, len(outer))
	for name := range outer {
		inner[name] = true
	}
	for _, field := range f.Params.List {
		typ := field.Type
		if star, ok := typ.(*ast.StarExpr); ok {
			typ = star.X
		}
		sel, ok := typ.(*ast.SelectorExpr)
		tester := false
		if ok {
			x, isIdent := sel.X.(*ast.Ident)
			tester = isIdent && x.Name == "testing"
		}
		for _, name := range field.Names {
			inner[name.Name] = tester
		}
	}
	return inner
}

func checkUnfinished(s *Source) []string {
	var bad []string
	for _, group := range s.File.Comments {
		for _, c := range group.List {
			for _, word := range []string{"TO" + "DO", "FIX" + "ME", "XX" + "X"} {
				if strings.Contains(c.Text, word) {
					bad = append(bad, s.at(c, "%s: finish it, or say it in an issue", word))
				}
			}
		}
	}
	return bad
}

// CheckDocs returns a line for each package that isn't documented in exactly
// one of its files, with the words that godoc looks for.
func CheckDocs(all []*Source) []string {
	docs := map[string][]*Source{}
	names := map[string]string{}
	for _, s := range all {
		if s.isTest() {
			continue
		}
		dir := path.Dir(s.Path)
		names[dir] = s.File.Name.Name
		if s.File.Doc != nil && strings.TrimSpace(s.File.Doc.Text()) != "" {
			docs[dir] = append(docs[dir], s)
		}
	}
	var bad []string
	for dir, name := range names {
		switch n := len(docs[dir]); {
		case n == 0:
			bad = append(bad, fmt.Sprintf("%s: package %s has no package comment", dir, name))
		case n > 1:
			bad = append(bad, fmt.Sprintf("%s: package %s has %d package comments: %s and %s",
				dir, name, n, docs[dir][0].Path, docs[dir][1].Path))
		case name != "main" && !strings.HasPrefix(docs[dir][0].File.Doc.Text(), "Package "+name+" "):
			bad = append(bad, fmt.Sprintf("%s: begin with \"Package %s \"", docs[dir][0].Path, name))
		}
	}
	slices.Sort(bad)
	return bad
}
