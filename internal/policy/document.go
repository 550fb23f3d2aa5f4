package policy

import (
	"fmt"
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

func (d *documentDecoder) failed(path string, n *node, format string, args ...any) {
	if len(d.errs) < MaxErrors {
		d.errs = append(d.errs, d.failAt(n, format, args...).at(path))
	}
}

func (d *documentDecoder) value(path string, n *node, v reflect.Value) {
	if n.kind == nodeNull {
		return
	}
	if s, ok := v.Addr().Interface().(Setter); ok {
		if n.kind == nodeMap || n.kind == nodeList {
			d.failed(path, n, "want a text or a number, not %s", nodeNames[n.kind])
		} else if err := s.Set(n.text); err != nil {
			d.failed(path, n, "%v", err)
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
		d.failed(path, n, "want one value, not %s", nodeNames[n.kind])
	case v.Kind() == reflect.String:
		v.SetString(n.text)
	case v.Kind() == reflect.Bool && n.kind == nodeBool:
		v.SetBool(n.text == "true")
	case v.CanInt() && n.kind == nodeNumber:
		i, err := strconv.ParseInt(n.text, 0, v.Type().Bits())
		if err != nil {
			d.failed(path, n, "%s is no whole number of that size", quote(n.text))
		}
		v.SetInt(i)
	default:
		d.failed(path, n, "want a %s, not %s", v.Kind(), nodeNames[n.kind])
	}
}

func (d *documentDecoder) list(path string, n *node, v reflect.Value) {
	if n.kind != nodeList {
		d.failed(path, n, "want a list, not %s", nodeNames[n.kind])
		return
	}
	all := reflect.MakeSlice(v.Type(), len(n.values), len(n.values))
	for i, one := range n.values {
		d.value(fmt.Sprintf("%s[%d]", path, i), one, all.Index(i))
	}
	v.Set(all)
}

func (d *documentDecoder) mapping(path string, n *node, v reflect.Value) {
	if n.kind != nodeMap {
		d.failed(path, n, "want a group of fields, not %s", nodeNames[n.kind])
		return
	}
	v.Set(reflect.MakeMap(v.Type()))
	for i, key := range n.keys {
		at := joinPath(path, key.text)
		name := reflect.ValueOf(key.text).Convert(v.Type().Key())
		if v.MapIndex(name).IsValid() {
			d.failed(at, key, "stands twice")
			continue
		}
		one := reflect.New(v.Type().Elem()).Elem()
		d.value(at, n.values[i], one)
		v.SetMapIndex(name, one)
	}
}

func (d *documentDecoder) structure(path string, n *node, v reflect.Value) {
	if n.kind != nodeMap {
		d.failed(path, n, "want a group of fields, not %s", nodeNames[n.kind])
		return
	}
	names := make([]string, v.NumField())
	for i := range names {
		names[i], _, _ = strings.Cut(v.Type().Field(i).Tag.Get("json"), ",")
	}
	seen := make([]bool, len(names))
	for i, key := range n.keys {
		at := joinPath(path, key.text)
		field := slices.Index(names, key.text)
		switch {
		case field < 0 || key.text == "-" || key.text == "":
			e := d.failAt(key, "there is no such field").at(at)
			e.Suggestion = nearest(key.text, names)
			if len(d.errs) < MaxErrors {
				d.errs = append(d.errs, e)
			}
		case seen[field]:
			d.failed(at, key, "stands twice")
		default:
			seen[field] = true
			d.value(at, n.values[i], v.Field(field))
		}
	}
}
