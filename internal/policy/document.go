package policy

import (
	"reflect"
	"slices"
	"strconv"
	"strings"
)

// Setter is a value that reads itself from a scalar's text, as flags do.
type Setter interface{ Set(text string) error }

// Decode reads another document of tranca's than a policy, in the same small
// part of YAML and with the same bounds, into a pointer to a struct. Fields are
// found by their json tags. It knows structs, slices, maps of text, text,
// numbers, booleans, pointers to these, and what is a [Setter]. A field that the
// struct does not have, one that stands twice, and a value of another kind are
// errors that name file, line and field; they are [Errors].
func Decode(name string, data []byte, into any) error {
	r := &reader{file: name}
	n, e := r.read(data)
	if e != nil {
		return Errors{e}
	}
	d := documentDecoder{reader: r}
	d.value("", n, reflect.ValueOf(into).Elem())
	if len(d.errs) > 0 {
		return d.errs
	}
	return nil
}

type documentDecoder struct {
	*reader
	errs Errors
}

// fail records an error at the place of a node.
func (d *documentDecoder) fail(n *node, e *Error) {
	if len(d.errs) < MaxErrors {
		e.File, e.Line, e.Column = d.file, n.line, n.column
		d.errs = append(d.errs, e)
	}
}

func (d *documentDecoder) value(path string, n *node, v reflect.Value) {
	if n.kind == nodeNull {
		return
	}
	if s, ok := v.Addr().Interface().(Setter); ok {
		if n.kind == nodeMap || n.kind == nodeList {
			d.fail(n, wrongKind(path, "text or a number", n))
		} else if err := s.Set(n.text); err != nil {
			d.fail(n, errorf(path, "%v", err))
		}
		return
	}
	switch v.Kind() { //nolint:exhaustive // the others are in no document
	case reflect.Pointer:
		v.Set(reflect.New(v.Type().Elem()))
		d.value(path, n, v.Elem())
	case reflect.Struct:
		d.structure(path, n, v)
	case reflect.Slice:
		d.list(path, n, v)
	case reflect.Map:
		d.mapping(path, n, v)
	default:
		d.scalar(path, n, v)
	}
}

func (d *documentDecoder) scalar(path string, n *node, v reflect.Value) {
	switch {
	case n.kind == nodeMap || n.kind == nodeList:
		d.fail(n, wrongKind(path, "one value", n))
	case v.Kind() == reflect.String:
		v.SetString(n.text)
	case v.Kind() == reflect.Bool && n.kind == nodeBool:
		v.SetBool(n.isTrue())
	case v.Kind() == reflect.Bool:
		d.fail(n, wrongKind(path, "true or false", n))
	case v.CanInt() && n.kind == nodeNumber:
		i, err := strconv.ParseInt(n.text, 0, v.Type().Bits())
		if err != nil {
			d.fail(n, errorf(path, "%s is no whole number of that size", quote(n.text)))
			return
		}
		v.SetInt(i)
	default:
		d.fail(n, wrongKind(path, "a whole number", n))
	}
}

func (d *documentDecoder) list(path string, n *node, v reflect.Value) {
	if n.kind != nodeList {
		d.fail(n, wrongKind(path, "a list", n))
		return
	}
	all := reflect.MakeSlice(v.Type(), len(n.values), len(n.values))
	for i, one := range n.values {
		d.value(index(path, i), one, all.Index(i))
	}
	v.Set(all)
}

func (d *documentDecoder) mapping(path string, n *node, v reflect.Value) {
	v.Set(reflect.MakeMap(v.Type()))
	d.fields(path, n, func(at string, key, value *node) {
		one := reflect.New(v.Type().Elem()).Elem()
		d.value(at, value, one)
		v.SetMapIndex(reflect.ValueOf(key.text).Convert(v.Type().Key()), one)
	})
}

func (d *documentDecoder) structure(path string, n *node, v reflect.Value) {
	names := make([]string, v.NumField())
	for i := range names {
		names[i], _, _ = strings.Cut(v.Type().Field(i).Tag.Get("json"), ",")
	}
	d.fields(path, n, func(at string, key, value *node) {
		field := slices.Index(names, key.text)
		if field < 0 || key.text == "-" || key.text == "" {
			e := errorf(at, "there is no such field")
			e.Suggestion = nearest(key.text, names)
			d.fail(key, e)
			return
		}
		d.value(at, value, v.Field(field))
	})
}

// fields goes through a group, and refuses what stands in it twice.
func (d *documentDecoder) fields(path string, n *node, one func(at string, key, value *node)) {
	if n.kind != nodeMap {
		d.fail(n, wrongKind(path, "a group of fields", n))
		return
	}
	seen := map[string]bool{}
	for i, key := range n.keys {
		at := joinPath(path, key.text)
		if seen[key.text] {
			d.fail(key, errorf(at, "stands twice"))
			continue
		}
		seen[key.text] = true
		one(at, key, n.values[i])
	}
}
