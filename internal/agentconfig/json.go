package agentconfig

import (
	"bytes"
	"encoding/json"
	"fmt"
	"reflect"
	"slices"
	"strings"

	"tranca"
)

// field is one member of the entry that is written.
type field struct {
	name  string
	value any
}

// setJSON returns the text of a JSON file in which the object key has an entry
// for tranca with these fields. Everything else, and other fields of the entry,
// stay as they stand, byte for byte: comments too, which some clients allow.
// The error wraps [tranca.ErrInvalid].
func setJSON(text, key string, fields []field) (string, error) {
	before := text
	if strings.TrimSpace(text) == "" {
		before, text = "{}", "{}\n"
	}
	for _, f := range fields {
		var err error
		if text, err = setMember(text, []string{key, Name, f.name}, f.value); err != nil {
			return "", err
		}
	}
	return text, checkKept(before, text, key)
}

// setMember sets one value, and makes the objects above it.
func setMember(text string, path []string, value any) (string, error) {
	clean := blank(text)
	if !json.Valid([]byte(clean)) {
		return "", fmt.Errorf("%w: it is not JSON", tranca.ErrInvalid)
	}
	at := span{0, len(clean)}
	for i, name := range path {
		o, err := readObject(clean, at)
		if err != nil {
			return "", fmt.Errorf("%w: %s is no object", tranca.ErrInvalid, where(path[:i]))
		}
		found := o.find(name)
		switch len(found) {
		case 0:
			for _, above := range slices.Backward(path[i+1:]) {
				value = object{{above, value}}
			}
			return o.insert(text, clean, name, value)
		case 1:
			at = found[0].value
		default:
			return "", fmt.Errorf("%w: %q stands twice in %s", tranca.ErrInvalid, name, where(path[:i]))
		}
	}
	written, err := encode(value)
	if err != nil || same(clean[at.start:at.end], string(written)) {
		return text, err
	}
	return text[:at.start] + string(written) + text[at.end:], nil
}

func where(path []string) string {
	if len(path) == 0 {
		return "the file"
	}
	return strings.Join(path, ".")
}

// same reports whether two values mean the same.
func same(a, b string) bool {
	var x, y any
	return json.Unmarshal([]byte(a), &x) == nil && json.Unmarshal([]byte(b), &y) == nil && reflect.DeepEqual(x, y)
}

// object is a value whose members have an order.
type object []field

// MarshalJSON writes the members in their order.
func (o object) MarshalJSON() ([]byte, error) {
	var b bytes.Buffer
	for i, f := range o {
		name, err := encode(f.name)
		if err != nil {
			return nil, err
		}
		value, err := encode(f.value)
		if err != nil {
			return nil, err
		}
		b.WriteString([]string{"{", ","}[min(i, 1)])
		b.Write(name)
		b.WriteString(":")
		b.Write(value)
	}
	b.WriteString("}")
	return b.Bytes(), nil
}

// encode is [json.Marshal] that leaves the signs of HTML alone, which paths may
// hold.
func encode(v any) ([]byte, error) {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if err := e.Encode(v); err != nil {
		return nil, fmt.Errorf("%w: %w", tranca.ErrInvalid, err)
	}
	return bytes.TrimSpace(b.Bytes()), nil
}

// span is a stretch of the text.
type span struct{ start, end int }

type member struct {
	name  string
	key   int // where the name starts
	value span
}

// objectAt is an object in the text.
type objectAt struct {
	span
	members []member
}

// readObject reads where the members of an object stand. clean is valid.
func readObject(clean string, at span) (objectAt, error) {
	o := objectAt{span: at}
	d := json.NewDecoder(strings.NewReader(clean[at.start:at.end]))
	if t, err := d.Token(); err != nil || t != json.Delim('{') {
		return o, fmt.Errorf("%w: no object", tranca.ErrInvalid)
	}
	o.start = at.start + int(d.InputOffset()) - 1
	for d.More() {
		from := at.start + int(d.InputOffset())
		t, err := d.Token()
		if err != nil {
			return o, err
		}
		name, _ := t.(string)
		var raw json.RawMessage
		if err := d.Decode(&raw); err != nil {
			return o, err
		}
		end := at.start + int(d.InputOffset())
		o.members = append(o.members, member{
			name: name, key: from + strings.IndexByte(clean[from:], '"'), value: span{end - len(raw), end},
		})
	}
	if _, err := d.Token(); err != nil {
		return o, err
	}
	o.end = at.start + int(d.InputOffset())
	return o, nil
}

func (o objectAt) find(name string) []member {
	var found []member
	for _, m := range o.members {
		if m.name == name {
			found = append(found, m)
		}
	}
	return found
}

// insert adds a member at the object's end, laid out as its neighbours are.
func (o objectAt) insert(text, clean, name string, value any) (string, error) {
	newline := lineEnd(text)
	unit := indentUnit(clean)
	outer := indentOf(clean, o.start)
	indent := outer + unit
	last := len(o.members) - 1
	inline := false
	if last >= 0 {
		own, alone := leading(clean, o.members[last].key)
		inline = !alone
		if alone {
			indent = own
		}
	}
	compact, err := encode(object{{name, value}})
	if err != nil {
		return "", err
	}
	if inline {
		at := o.members[last].value.end
		return text[:at] + ", " + string(compact[1:len(compact)-1]) + text[at:], nil
	}
	var pretty bytes.Buffer
	if err := json.Indent(&pretty, compact, indent[:max(0, len(indent)-len(unit))], unit); err != nil {
		return "", err
	}
	// What json.Indent has made of {"name": value} is cut down to the member.
	lines := strings.Split(pretty.String(), "\n")
	lines[1] = indent + strings.TrimLeft(lines[1], " \t")
	body := newline + strings.Join(lines[1:len(lines)-1], newline)
	if last >= 0 {
		at := o.members[last].value.end
		return text[:at] + "," + body + text[at:], nil
	}
	at := o.start + 1
	if !strings.ContainsRune(text[at:o.end], '\n') {
		body += newline + outer
		if rest := strings.TrimRight(text[at:o.end-1], " \t"); rest == "" {
			return text[:at] + body + text[o.end-1:], nil
		}
	}
	return text[:at] + body + text[at:], nil
}

// lineEnd is what the lines of a text end with.
func lineEnd(text string) string {
	if strings.Contains(text, "\r\n") {
		return "\r\n"
	}
	return "\n"
}

// leading returns the blanks before a position, and whether nothing else is on
// its line before it.
func leading(clean string, at int) (blanks string, alone bool) {
	line := clean[strings.LastIndexByte(clean[:at], '\n')+1 : at]
	return line, strings.TrimLeft(line, " \t") == ""
}

// indentOf returns the blanks at the start of the line of a position.
func indentOf(clean string, at int) string {
	line := clean[strings.LastIndexByte(clean[:at], '\n')+1 : at]
	return line[:len(line)-len(strings.TrimLeft(line, " \t"))]
}

// indentUnit is what the file indents by: as its first member is.
func indentUnit(clean string) string {
	o, err := readObject(clean, span{0, len(clean)})
	if err == nil && len(o.members) > 0 {
		if own, alone := leading(clean, o.members[0].key); alone && own != "" {
			return own
		}
	}
	return "  "
}

// blank returns the text with blanks in place of comments and of commas before
// a closing bracket, so that every other byte stays where it is.
func blank(text string) string {
	b := []byte(text)
	if strings.HasPrefix(text, "\ufeff") {
		copy(b, "   ")
	}
	comma := -1
	for i := 0; i < len(b); i++ {
		switch c := b[i]; {
		case c == '"':
			i = skipString(b, i)
			comma = -1
		case c == '/' && i+1 < len(b) && (b[i+1] == '/' || b[i+1] == '*'):
			i = blankComment(b, i)
		case c == ',':
			comma = i
		case (c == '}' || c == ']') && comma >= 0:
			b[comma] = ' '
			comma = -1
		case c != ' ' && c != '\t' && c != '\r' && c != '\n':
			comma = -1
		}
	}
	return string(b)
}

// skipString returns the position of the quote that ends the string at i.
func skipString(b []byte, i int) int {
	for i++; i < len(b) && b[i] != '"'; i++ {
		if b[i] == '\\' {
			i++
		}
	}
	return i
}

// blankComment blanks the comment at i and returns the position of its end.
func blankComment(b []byte, i int) int {
	end := len(b)
	if b[i+1] == '/' {
		if nl := bytes.IndexByte(b[i:], '\n'); nl >= 0 {
			end = i + nl
		}
	} else if closed := bytes.Index(b[i+2:], []byte("*/")); closed >= 0 {
		end = i + 2 + closed + 2
	} else {
		return len(b) // it never ends, and the parser says so
	}
	for ; i < end; i++ {
		if b[i] != '\n' && b[i] != '\r' {
			b[i] = ' '
		}
	}
	return end - 1
}

// checkKept makes sure that an edit changed its entry and nothing else: a
// mistake here would cost the user his configuration.
func checkKept(before, after, key string) error {
	strip := func(text string) (any, bool) {
		var v map[string]any
		d := json.NewDecoder(strings.NewReader(blank(text)))
		d.UseNumber()
		if d.Decode(&v) != nil {
			return nil, false
		}
		if servers, ok := v[key].(map[string]any); ok {
			delete(servers, Name)
			if len(servers) == 0 {
				delete(v, key)
			}
		}
		return v, true
	}
	a, okA := strip(before)
	b, okB := strip(after)
	if !okA || !okB || !reflect.DeepEqual(a, b) {
		return fmt.Errorf("%w: it can't be edited with certainty", tranca.ErrInvalid)
	}
	return nil
}
