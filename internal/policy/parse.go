package policy

import (
	"slices"
	"strings"

	"tranca"
)

// Parse reads a policy from YAML or JSON. name is the file's, for errors and
// as the policy's Source; the file is not opened.
//
// It is strict: a field that is unknown, misspelt or there twice, a wrong
// type or unit, a value out of bounds, an anchor, alias, merge key, tag or
// directive, a second document, more than 1 MiB, nesting deeper than 16, a
// NUL, invalid UTF-8, and a version that is missing or not 1 are errors. A
// field that is left out has its default. The error is an [Errors] with as
// many errors as were found, in the order of the file.
func Parse(name string, data []byte) (tranca.Policy, error) {
	r := reader{file: name}
	root, e := r.read(data)
	if e != nil {
		return tranca.Policy{}, Errors{e}
	}
	d := decoder{file: name, policy: Default(), places: map[string]*node{"": root}}
	d.policy.Source = name
	d.root(root)
	d.validate()
	if len(d.found) > 0 {
		return tranca.Policy{}, d.sorted()
	}
	return d.policy, nil
}

// decoder turns nodes into a policy and keeps where each field stood.
type decoder struct {
	file   string
	policy tranca.Policy
	places map[string]*node
	found  Errors
}

// fail records an error at the place of a node. Once there are many, the rest
// is not worth the memory.
func (d *decoder) fail(n *node, e *Error) {
	if len(d.found) >= 4*MaxErrors {
		return
	}
	c := *e
	c.File, c.Line, c.Column = d.file, n.line, n.column
	d.found = append(d.found, &c)
}

// validate checks the values. What concerns several fields is left out where
// one of them was not even read.
func (d *decoder) validate() {
	failed := map[string]bool{}
	for _, e := range d.found {
		failed[e.Path] = true
	}
	known := func(path string) bool {
		mount, _, below := strings.Cut(path, ".")
		return failed[path] || (below && strings.HasPrefix(mount, "mounts[") && failed[mount])
	}
	found := checkFields(&d.policy)
	if len(d.found) == 0 && len(found) == 0 {
		found = checkTogether(&d.policy)
	}
	for _, e := range found {
		if !known(e.Path) {
			d.fail(d.place(e.Path), e)
		}
	}
}

// place returns the node of a path, or of the nearest group above it.
func (d *decoder) place(path string) *node {
	for {
		if n, ok := d.places[path]; ok {
			return n
		}
		path = path[:max(0, strings.LastIndexAny(path, ".["))]
	}
}

func (d *decoder) sorted() Errors {
	slices.SortStableFunc(d.found, func(a, b *Error) int {
		if a.Line != b.Line {
			return a.Line - b.Line
		}
		return a.Column - b.Column
	})
	return d.found[:min(len(d.found), MaxErrors)]
}

func (d *decoder) root(n *node) {
	if n.kind != nodeMap {
		d.fail(n, errorf("", "want fields such as \"version: 1\", got %s", nodeNames[n.kind]))
		return
	}
	fields := table()
	d.group("", n, fields)
	if _, ok := d.places["version"]; !ok {
		d.fail(n, &Error{Path: "version", Message: "it is missing", Suggestion: "version: 1"})
	}
}

// group reads the fields below a dotted path.
func (d *decoder) group(path string, n *node, fields []field) {
	if n.kind != nodeMap {
		d.fail(n, wrongKind(path, "a group of fields such as "+example(path, fields), n))
		return
	}
	for i, key := range n.keys {
		at := joinPath(path, key.text)
		f := slices.IndexFunc(fields, func(f field) bool { return f.path == at })
		inner := slices.ContainsFunc(fields, func(f field) bool { return strings.HasPrefix(f.path, at+".") })
		switch {
		case key.kind != nodeText:
			d.fail(key, errorf(path, "%s is no field", quote(key.text)))
		case (f < 0 && !inner) || strings.Contains(key.text, "."):
			d.fail(key, unknown(path, key.text, fields))
		case !d.once(at, key, n.values[i]):
		case inner:
			d.group(at, n.values[i], fields)
		default:
			d.value(at, &fields[f], n.values[i])
		}
	}
}

// once records where a field stands and refuses it the second time.
func (d *decoder) once(at string, key, value *node) bool {
	if _, twice := d.places[at]; twice {
		d.fail(key, errorf(at, "it is there twice"))
		return false
	}
	d.places[at] = value
	return true
}

func joinPath(path, name string) string {
	if path == "" {
		return name
	}
	return path + "." + name
}

// example shows one field of a group, in braces.
func example(path string, fields []field) string {
	for _, f := range fields {
		if rest, ok := strings.CutPrefix(f.path, path+"."); ok {
			return "{" + rest + ": " + f.standard() + "}"
		}
	}
	return "{name: value}"
}

// unknown says which field was meant, also where the right one is in another
// group.
func unknown(path, name string, fields []field) *Error {
	e := errorf(joinPath(path, clip(name)), "there is no such field")
	if at := joinPath(path, name); slices.ContainsFunc(fields, func(f field) bool { return f.path == at }) {
		e.Message = "write it as a group: " + strings.ReplaceAll(at, ".", ": {") + strings.Repeat("}", strings.Count(at, "."))
		return e
	}
	var here, all []string
	for _, f := range fields {
		last := f.path[strings.LastIndexByte(f.path, '.')+1:]
		all = append(all, last)
		if rest, ok := strings.CutPrefix(f.path, joinPath(path, "")); ok || path == "" {
			first, _, _ := strings.Cut(rest, ".")
			here = append(here, first)
		}
	}
	if e.Suggestion = nearest(name, here); e.Suggestion != "" {
		return e
	}
	if i := slices.Index(all, nearest(name, all)); i >= 0 {
		e.Suggestion = fields[i].path
	}
	return e
}

func wrongKind(at, want string, n *node) *Error {
	got := nodeNames[n.kind]
	switch n.kind {
	case nodeText:
		got += " " + quote(n.text)
	case nodeNumber:
		got = "the number " + clip(n.text)
	case nodeBool:
		got = n.text
	}
	return errorf(at, "want %s, got %s", want, got)
}
