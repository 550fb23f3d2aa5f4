package listfile

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"tranca"
)

type row struct {
	Name  string `json:"name"`
	Count int    `json:"count"`
}

func kind() *Kind[row] {
	return New("test/1", []byte(good), func() func(*row) error {
		return func(r *row) error {
			if r.Name == "" {
				return errors.New("a row without a name")
			}
			return nil
		}
	})
}

func parse(name string, data []byte) (*List[row], error) { return kind().Parse(name, data) }

const good = "{\"schema\": \"test/1\", \"date\": \"2026-01-02\", \"rows\": [\n{\"name\": \"a\"},\n\n{\"name\": \"b\", \"count\": 2}\n]}\n"

func TestParse(t *testing.T) {
	l, err := parse("f", []byte(good))
	if err != nil || l.Source != "f" || l.Date != "2026-01-02" || len(l.Rows) != 2 {
		t.Fatalf("%+v, %v", l, err)
	}
	if l.Rows[0] != (row{Name: "a"}) || l.Rows[1] != (row{"b", 2}) {
		t.Errorf("%+v", l.Rows)
	}
}

// TestErrors: each names file, line and what.
func TestErrors(t *testing.T) {
	for _, c := range []struct{ change, into, want string }{
		{"", "x" + good, "f:1: invalid character 'x'"},
		{good, "", "f:1: it ends before the list does"},
		{good, "[]", `f:1: want "{"`},
		{"test/1", "test/2", `f:1: schema "test/2": this program reads "test/1"`},
		{"2026-01-02", "02.01.2026", `f:1: date "02.01.2026": want YYYY-MM-DD`},
		{`"date": "2026-01-02", `, "", `"date" is missing`},
		{`"schema": "test/1", `, "", `"schema" has to come before "rows"`},
		{`"date"`, `"day"`, `f:1: unknown field "day"`},
		{`"date": "2026-01-02"`, `"date": "2026-01-02", "date": "2026-01-03"`, `f:1: "date" stands there twice`},
		{`"name": "b"`, `"nme": "b"`, `f:4: unknown field "nme"`},
		{`"count": 2`, `"count": "2"`, `f:4: field "count": got a JSON string, want int`},
		{`"name": "a"`, "", "f:2: a row without a name"},
		{`"name": "b", `, "", "f:4: a row without a name"},
		{"]}", "]} {}", "f:5: something follows the list"},
		{"]}", "]", "it ends before the list does"},
		{"\n]}", ",\n]}", "invalid character"},
	} {
		text := strings.Replace(good, c.change, c.into, 1)
		if c.change == "" || c.change == good {
			text = c.into
		}
		l, err := parse("f", []byte(text))
		if !errors.Is(err, tranca.ErrInvalid) || !strings.Contains(fmt.Sprint(err), c.want) || l != nil {
			t.Errorf("%s -> %s: %v, want %s", c.change, c.into, err, c.want)
		}
	}
	big := strings.Replace(good, "\n]}", strings.Repeat("\n", MaxBytes)+"]}", 1)
	if _, err := parse("f", []byte(big)); err == nil || !strings.Contains(err.Error(), "bytes: at most") {
		t.Error(err)
	}
	many := strings.Replace(good, "\n]}", strings.Repeat(",\n{\"name\":\"c\"}", MaxRows)+"]}", 1)
	if _, err := parse("f", []byte(many)); err == nil || !strings.Contains(err.Error(), "more than 4096 rows") {
		t.Error(err)
	}
}

func TestChoose(t *testing.T) {
	k := kind()
	for name, c := range map[string]struct {
		text, note string
		err        error
		used       string
	}{
		"none":   {"", "", tranca.ErrNotFound, BuiltIn},
		"newer":  {strings.Replace(good, "2026-01-02", "2026-01-03", 1), "", nil, "/f"},
		"same":   {good, "/f is no newer than the list that is built in, of 2026-01-02", nil, BuiltIn},
		"older":  {strings.Replace(good, "2026", "2025", 1), "/f is no newer", nil, BuiltIn},
		"broken": {good[:40], "/f:1: it ends", nil, BuiltIn},
		"others": {"", "may write", fmt.Errorf("%w: others may write it", tranca.ErrRefused), BuiltIn},
	} {
		read := func(string) ([]byte, error) { return []byte(c.text), c.err }
		l := k.Installed("/f", read)
		if l.Source != c.used || !strings.Contains(l.Note, c.note) || (l.Note == "") != (c.note == "") || len(l.Rows) != 2 {
			t.Errorf("%s: %s, %q", name, l.Source, l.Note)
		}
		bad := c.err != nil || name == "broken"
		if _, err := k.Named("/f", read); (err != nil) != bad {
			t.Errorf("%s, named: %v", name, err)
		}
		if l := k.BuiltIn(); l.Source != BuiltIn || l.Note != "" {
			t.Errorf("%s: the list that is built in became %+v", name, l)
		}
	}
}

// FuzzParse shows of any bytes: no panic, bounded, an error is one line with a
// line number that is there, and what is accepted was checked.
func FuzzParse(f *testing.F) {
	for _, text := range []string{good, "{}", `{"schema":"test/1","rows":[`, "[[[[", `{"schema":"test/1","date":"2026-01-02","rows":[{"name":"\u0000"}]}`} {
		f.Add([]byte(text))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		l, err := parse("f", data)
		if err != nil {
			if !errors.Is(err, tranca.ErrInvalid) || strings.Contains(err.Error(), "\n") || len(err.Error()) > 1000+len(data) {
				t.Fatal(err)
			}
			line := 0
			_, place, _ := strings.Cut(err.Error(), ": f:")
			if _, scan := fmt.Sscan(strings.SplitN(place, ":", 2)[0], &line); len(data) <= MaxBytes && (scan != nil || line < 1 || line > 1+strings.Count(string(data), "\n")) {
				t.Fatalf("line %d: %v", line, err)
			}
			return
		}
		for _, r := range l.Rows {
			if r.Name == "" {
				t.Fatalf("%+v", r)
			}
		}
	})
}
