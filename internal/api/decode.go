package api

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"reflect"
	"strconv"
	"strings"
	"unicode/utf8"

	"tranca"
	"tranca/internal/spelling"
)

// Decode reads a JSON request into a pointer to a struct of this package. It is
// strict, because a request that means something else than it says must not
// run: unknown, misspelled, repeated and missing fields, null, text that is not
// Unicode and anything after the value are refused. The error wraps
// [tranca.ErrInvalid] and names the field.
func Decode(data []byte, into any) error {
	if err := checkUnicode(data); err != nil {
		return err
	}
	d := json.NewDecoder(bytes.NewReader(data))
	d.UseNumber()
	w := walker{d}
	if err := w.value(reflect.TypeOf(into).Elem(), ""); err != nil {
		return err
	}
	if _, err := d.Token(); !errors.Is(err, io.EOF) {
		return fmt.Errorf("%w: the body goes on after the JSON value, at byte %d", tranca.ErrInvalid, d.InputOffset())
	}
	if err := json.Unmarshal(data, into); err != nil {
		return fmt.Errorf("%w: the body: %w", tranca.ErrInvalid, err)
	}
	return nil
}

// checkUnicode refuses what a decoder would replace in silence: bytes that are
// no UTF-8, and halves of surrogate pairs.
func checkUnicode(data []byte) error {
	if !utf8.Valid(data) {
		return fmt.Errorf("%w: the body is no valid UTF-8: bytes that are no text go as base64 or in frames", tranca.ErrInvalid)
	}
	for i := 0; i < len(data); {
		next := bytes.IndexByte(data[i:], '\\')
		if next < 0 {
			return nil
		}
		i += next
		r, ok := escaped(data[i:])
		switch {
		case !ok:
			i += 2
		case r >= 0xD800 && r < 0xDC00:
			if low, ok := escaped(data[min(i+6, len(data)):]); !ok || low < 0xDC00 || low > 0xDFFF {
				return fmt.Errorf("%w: half of a surrogate pair at byte %d of the body", tranca.ErrInvalid, i)
			}
			i += 12
		case r >= 0xDC00 && r <= 0xDFFF:
			return fmt.Errorf("%w: half of a surrogate pair at byte %d of the body", tranca.ErrInvalid, i)
		default:
			i += 6
		}
	}
	return nil
}

// escaped reads an escape of four hexadecimal digits.
func escaped(b []byte) (rune, bool) {
	if len(b) < 6 || b[0] != '\\' || b[1] != 'u' {
		return 0, false
	}
	n, err := strconv.ParseUint(string(b[2:6]), 16, 16)
	return rune(n), err == nil
}

// walker compares a JSON value with the type that it is for. It goes only as
// deep as the type does.
type walker struct{ d *json.Decoder }

func (w walker) token() (json.Token, error) {
	tok, err := w.d.Token()
	if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
		return nil, fmt.Errorf("%w: the body ends within the JSON value", tranca.ErrInvalid)
	}
	if err != nil {
		return nil, fmt.Errorf("%w: the body is no JSON: %w, at byte %d", tranca.ErrInvalid, err, w.d.InputOffset())
	}
	return tok, nil
}

func (w walker) value(t reflect.Type, path string) error {
	tok, err := w.token()
	if err != nil {
		return err
	}
	if t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	if tok == nil {
		return wrong(path, "null: leave it out")
	}
	switch {
	case t == reflect.TypeFor[[]byte]():
		return want[string](tok, path, "a string in base64")
	case t.Kind() == reflect.Struct:
		find, names := structFields(t)
		return w.object(tok, path, find, names)
	case t.Kind() == reflect.Map:
		return w.object(tok, path, func(string) (reflect.Type, bool) { return t.Elem(), true }, nil)
	case t.Kind() == reflect.Slice:
		return w.array(tok, t, path)
	case t.Kind() == reflect.String:
		return want[string](tok, path, "a string")
	case t.Kind() == reflect.Bool:
		return want[bool](tok, path, "true or false")
	}
	return number(tok, t, path)
}

func want[T any](tok json.Token, path, words string) error {
	if _, ok := tok.(T); !ok {
		return wrong(path, kindOf(tok)+": want "+words)
	}
	return nil
}

func kindOf(tok json.Token) string {
	switch v := tok.(type) {
	case json.Delim:
		return map[json.Delim]string{'{': "an object", '[': "an array"}[v]
	case string:
		return "a string"
	case bool:
		return strconv.FormatBool(v)
	}
	return fmt.Sprintf("the number %.20v", tok)
}

func wrong(path, what string) error {
	if path == "" {
		path = "the body"
	}
	return fmt.Errorf("%w: %s is %s", tranca.ErrInvalid, path, what)
}

// number checks that a number is whole and fits.
func number(tok json.Token, t reflect.Type, path string) error {
	n, ok := tok.(json.Number)
	if !ok {
		return wrong(path, kindOf(tok)+": want a whole number")
	}
	low, high := strconv.FormatInt(-1<<(t.Bits()-1), 10), strconv.FormatInt(1<<(t.Bits()-1)-1, 10)
	var err error
	if t.Kind() >= reflect.Uint && t.Kind() <= reflect.Uintptr {
		low, high = "0", strconv.FormatUint(1<<t.Bits()-1, 10)
		_, err = strconv.ParseUint(n.String(), 10, t.Bits())
	} else {
		_, err = strconv.ParseInt(n.String(), 10, t.Bits())
	}
	if err != nil {
		return wrong(path, fmt.Sprintf("%.40s: want a whole number from %s to %s", n, low, high))
	}
	return nil
}

func (w walker) array(tok json.Token, t reflect.Type, path string) error {
	if tok != json.Delim('[') {
		return wrong(path, kindOf(tok)+": want an array")
	}
	for i := 0; w.d.More(); i++ {
		if err := w.value(t.Elem(), fmt.Sprintf("%s[%d]", path, i)); err != nil {
			return err
		}
	}
	_, err := w.token()
	return err
}

// object reads the rest of an object. find returns the type of a field's
// value; those in names that have no '?' in front must be there.
func (w walker) object(tok json.Token, path string, find func(string) (reflect.Type, bool), names []string) error {
	if tok != json.Delim('{') {
		return wrong(path, kindOf(tok)+": want an object")
	}
	seen := map[string]bool{}
	for w.d.More() {
		tok, err := w.token()
		if err != nil {
			return err
		}
		name, ok := tok.(string)
		if !ok {
			return wrong(path, "an object with a key that is no string")
		}
		t, ok := find(name)
		if !ok {
			return unknown(join(path, name), name, names)
		}
		if seen[name] {
			return fmt.Errorf("%w: %s stands there twice", tranca.ErrInvalid, join(path, name))
		}
		seen[name] = true
		if err := w.value(t, join(path, name)); err != nil {
			return err
		}
	}
	if _, err := w.token(); err != nil {
		return err
	}
	for _, name := range names {
		if name[0] != '?' && !seen[name] {
			return fmt.Errorf("%w: %s is missing", tranca.ErrInvalid, join(path, name))
		}
	}
	return nil
}

func join(path, name string) string {
	if len(name) > 100 {
		name = strings.ToValidUTF8(name[:100], "") + "..."
	}
	if path == "" {
		return name
	}
	return path + "." + name
}

func unknown(path, name string, names []string) error {
	var all []string
	for _, n := range names {
		all = append(all, strings.TrimPrefix(n, "?"))
	}
	if near := Nearest(name, all); near != "" {
		return fmt.Errorf("%w: there is no field %q; did you mean %q?", tranca.ErrInvalid, path, near)
	}
	return fmt.Errorf("%w: there is no field %q; there are: %s", tranca.ErrInvalid, path, strings.Join(all, ", "))
}

// structFields returns how to find a field by its JSON name, and all names:
// with '?' in front where the field may be missing.
func structFields(t reflect.Type) (find func(string) (reflect.Type, bool), names []string) {
	byName := map[string]reflect.Type{}
	for f := range t.Fields() {
		name, options, _ := strings.Cut(f.Tag.Get("json"), ",")
		byName[name] = f.Type
		if strings.Contains(options, "omit") {
			name = "?" + name
		}
		names = append(names, name)
	}
	return func(name string) (reflect.Type, bool) { t, ok := byName[name]; return t, ok }, names
}

// Nearest returns the word that name is most likely a slip of, or begins, or ""
// where none is near.
func Nearest(name string, words []string) string {
	if near := spelling.Nearest(name, words, 1); near != "" {
		return near
	}
	if len(name) > 2 {
		for _, w := range words {
			if strings.HasPrefix(w, strings.ToLower(name)) {
				return w
			}
		}
	}
	return spelling.Nearest(name, words, len(name)/3+1)
}
