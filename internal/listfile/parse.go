package listfile

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"tranca"
)

// The bounds of a list.
const (
	MaxBytes = 1 << 20
	MaxRows  = 4096
)

// List is a list that was read. It does not change.
type List[R any] struct {
	// Source is the file's path, or [BuiltIn].
	Source string
	// Date is the day on which it was made: "2026-11-30". Dates compare as text.
	Date string
	// Note says why an operator's own list is there and not used; else empty.
	Note string
	Rows []R
}

// Parse reads a list with the schema named. check looks at each row. Errors wrap
// [tranca.ErrInvalid] and name file, line, and what is wrong.
func Parse[R any](name, schema string, data []byte, check func(*R) error) (*List[R], error) {
	l := &List[R]{Source: name}
	if len(data) > MaxBytes {
		return nil, fmt.Errorf("%w: %s has %d bytes: at most %d", tranca.ErrInvalid, name, len(data), MaxBytes)
	}
	p := &parser[R]{list: l, schema: schema, check: check, data: data, dec: json.NewDecoder(bytes.NewReader(data))}
	p.dec.DisallowUnknownFields()
	if err := p.read(); err != nil {
		return nil, fmt.Errorf("%w: %s:%d: %s", tranca.ErrInvalid, name, p.line(p.at), explain(err))
	}
	return l, nil
}

// parser goes through the object key by key, so that it knows where it is.
type parser[R any] struct {
	list   *List[R]
	schema string
	check  func(*R) error
	data   []byte
	dec    *json.Decoder
	at     int64 // where an error would be
	seen   map[string]bool
}

// line is the line of an offset, from 1.
func (p *parser[R]) line(offset int64) int {
	offset = min(max(offset, 0), int64(len(p.data)))
	return 1 + bytes.Count(p.data[:offset], []byte("\n"))
}

// mark notes that what comes next begins after blanks and commas.
func (p *parser[R]) mark() {
	at := p.dec.InputOffset()
	rest := p.data[at:]
	p.at = at + int64(len(rest)-len(bytes.TrimLeft(rest, " \t\r\n,:")))
}

func (p *parser[R]) read() error {
	p.seen = map[string]bool{}
	if err := p.delim('{'); err != nil {
		return err
	}
	for p.dec.More() {
		p.mark()
		token, err := p.dec.Token()
		if err != nil {
			return err
		}
		key, _ := token.(string) // the decoder lets nothing else stand here
		if p.seen[key] {
			return fmt.Errorf("%q stands there twice", cut(key))
		}
		p.seen[key] = true
		if err := p.field(key); err != nil {
			return err
		}
	}
	if err := p.delim('}'); err != nil {
		return err
	}
	for _, key := range []string{"schema", "date", "rows"} {
		if !p.seen[key] {
			return fmt.Errorf("%q is missing", key)
		}
	}
	p.mark()
	if _, err := p.dec.Token(); !errors.Is(err, io.EOF) {
		return errors.New("something follows the list")
	}
	return nil
}

func (p *parser[R]) delim(want json.Delim) error {
	p.mark()
	token, err := p.dec.Token()
	if err != nil {
		return err
	}
	if token != want {
		return fmt.Errorf("want %q", want.String())
	}
	return nil
}

func (p *parser[R]) field(key string) error {
	p.mark()
	switch key {
	case "schema":
		var schema string
		if err := p.dec.Decode(&schema); err != nil {
			return err
		}
		if schema != p.schema {
			return fmt.Errorf("schema %q: this program reads %q", cut(schema), p.schema)
		}
	case "date":
		if err := p.dec.Decode(&p.list.Date); err != nil {
			return err
		}
		if _, err := time.Parse(time.DateOnly, p.list.Date); err != nil {
			return fmt.Errorf("date %q: want YYYY-MM-DD", cut(p.list.Date))
		}
	case "rows":
		if !p.seen["schema"] {
			return errors.New(`"schema" has to come before "rows"`)
		}
		return p.rows()
	default:
		return fmt.Errorf("unknown field %q: want schema, date, rows", cut(key))
	}
	return nil
}

func (p *parser[R]) rows() error {
	if err := p.delim('['); err != nil {
		return err
	}
	for p.dec.More() {
		p.mark()
		if len(p.list.Rows) == MaxRows {
			return fmt.Errorf("more than %d rows", MaxRows)
		}
		var row R
		if err := p.dec.Decode(&row); err != nil {
			return err
		}
		if err := p.check(&row); err != nil {
			return err
		}
		p.list.Rows = append(p.list.Rows, row)
	}
	return p.delim(']')
}

// explain says what is wrong in words for the list's writer.
func explain(err error) string {
	var wrong *json.UnmarshalTypeError
	switch {
	case errors.As(err, &wrong):
		return fmt.Sprintf("field %q: got a JSON %s, want %s", wrong.Field, wrong.Value, wrong.Type)
	case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF):
		return "it ends before the list does"
	}
	return strings.TrimPrefix(err.Error(), "json: ")
}

func cut(s string) string {
	if len(s) > 60 {
		return s[:60] + "..."
	}
	return s
}
