package report_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"flag"
	"io"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"tranca"
	"tranca/hostile/report"
	"tranca/hostile/report/reporttest"
)

var update = flag.Bool("update", false, "write the golden files anew")

func golden(t *testing.T, name string, got []byte) {
	t.Helper()
	path := filepath.Join("testdata", name)
	if *update {
		if err := os.WriteFile(path, got, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(got, want) {
		t.Errorf("%s differs (-update writes it anew):\n%s", name, got)
	}
}

func written(t *testing.T, r *report.Report) []byte {
	t.Helper()
	var b bytes.Buffer
	if err := r.WriteJSON(&b); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

func reread(t *testing.T, text []byte) *report.Report {
	t.Helper()
	r, err := report.Read(bytes.NewReader(text))
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func TestReadWhatIsWritten(t *testing.T) {
	for name, r := range map[string]*report.Report{"good": reporttest.Good(), "partial": reporttest.Partial()} {
		if got := reread(t, written(t, r)); !reflect.DeepEqual(got, r) {
			t.Errorf("%s: read %+v\nwant %+v", name, got, r)
		}
	}
	// Bytes that are no UTF-8 become U+FFFD once; then nothing changes any more.
	bad := reporttest.Bad()
	bad.Version = "\x7f\u009b\u202e\U000e0041"
	once := written(t, bad)
	if again := written(t, reread(t, once)); !bytes.Equal(again, bytes.ReplaceAll(once, []byte(`\ufffd`), []byte("\ufffd"))) {
		t.Error("a report with hostile evidence is another when it is read and written again")
	}
	if i := bytes.IndexFunc(once, func(r rune) bool { return r == 0x7f || r == 0x9b || r == 0x202e || r == 0xe0041 }); i >= 0 {
		t.Errorf("the JSON holds a character that acts: %q", once[i-10:i+10])
	}
	empty := written(t, &report.Report{Schema: report.Schema})
	if bytes.Contains(empty, []byte("null")) {
		t.Errorf("a list is null:\n%s", empty)
	}
}

func TestWrittenForm(t *testing.T) { golden(t, "report.json", written(t, reporttest.Bad())) }

// Fields may be added within one version: a reader leaves out what it does not know.
func TestReadUnknownFields(t *testing.T) {
	var b bytes.Buffer
	c := report.Compare(reporttest.Good(), reporttest.Good())
	if err := reporttest.Good().WriteComparedJSON(&b, &c); err != nil {
		t.Fatal(err)
	}
	if got := reread(t, b.Bytes()); !reflect.DeepEqual(got, reporttest.Good()) {
		t.Error("a report with its changes is read as another")
	}
}

func TestReadRefuses(t *testing.T) {
	change := func(f func(*report.Report)) string {
		r := reporttest.Good()
		f(r)
		return string(written(t, r))
	}
	for name, c := range map[string]struct{ text, want string }{
		"nothing":       {"", "line 1: unexpected end of JSON input"},
		"not JSON":      {"{\n\n  \"schema\": tranca}", "line 3: invalid character"},
		"another thing": {`{"host": {}}`, "it names no schema"},
		"a list":        {`[]`, "no JSON of a report"},
		"two values":    {`{"schema":"tranca.hostile/1"} {}`, "invalid character '{' after top-level value"},
		"another version": {`{"schema":"tranca.hostile/2","cells":{"a":1}}`,
			`the report has the schema "tranca.hostile/2", and this tranca reads tranca.hostile/1: make it again with`},
		"a long schema": {`{"schema":"` + strings.Repeat("x", 100_000) + `"}`, `..."`},
		"wrong type":    {"{\"schema\":\"tranca.hostile/1\",\n\"cells\":[{\"probe\":7}]}", "line 2: json: cannot unmarshal number"},
		"no such level": {`{"schema":"tranca.hostile/1","columns":[{"name":"a","kind":"backend","level":"fort"}]}`, `isolation level "fort"`},
		"column twice":  {change(func(r *report.Report) { r.Columns = append(r.Columns, r.Columns[0]) }), `the column "none" is there twice`},
		"unnamed column": {change(func(r *report.Report) { r.Columns = append(r.Columns, report.Column{Kind: report.ColumnBackend}) }),
			`the column "" is there twice, or has no name`},
		"no such kind": {change(func(r *report.Report) { r.Columns[0].Kind = "wall" }), `of the kind "wall"`},
		"probe twice":  {change(func(r *report.Report) { r.Probes = append(r.Probes, r.Probes[0]) }), `the probe "cpu-01-spin" is there twice`},
		"cell twice":   {change(func(r *report.Report) { r.Cells = append(r.Cells, r.Cells[0]) }), `the cell of "cpu-01-spin" in "none" is there twice`},
		"stray cell":   {change(func(r *report.Report) { r.Cells[0].Probe = "ghost" }), `the cell of "ghost" in "none" belongs to`},
		"no such verdict": {change(func(r *report.Report) { r.Cells[0].Verdict = "fine\u202e" }),
			`has the verdict "fine\u202e"`},
		"no such expectation": {change(func(r *report.Report) { r.Cells[0].Expected = "good" }), `expects the verdict "good"`},
		"time before":         {change(func(r *report.Report) { r.Seconds = -1 }), "took -1 seconds"},
		"too many columns": {change(func(r *report.Report) {
			for range 101 {
				r.Columns = append(r.Columns, report.Column{})
			}
		}), "at most 100 and 10000"},
	} {
		r, err := report.Read(strings.NewReader(c.text))
		if err == nil || !errors.Is(err, tranca.ErrInvalid) || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v, want %q", name, err, c.want)
		}
		if r != nil {
			t.Errorf("%s: there is a report beside the error", name)
		}
		if err != nil && len(err.Error()) > 600 {
			t.Errorf("%s: the error has %d bytes", name, len(err.Error()))
		}
	}
}

// endless never ends, and counts what was taken.
type endless struct{ taken int }

func (e *endless) Read(b []byte) (int, error) {
	for i := range b {
		b[i] = ' '
	}
	e.taken += len(b)
	return len(b), nil
}

func TestReadIsBounded(t *testing.T) {
	e := &endless{}
	if _, err := report.Read(e); err == nil || !strings.Contains(err.Error(), "larger than 64 MiB") {
		t.Errorf("an endless file: %v", err)
	}
	if e.taken > 65<<20 {
		t.Errorf("%d bytes were taken", e.taken)
	}
	if _, err := report.Read(io.MultiReader(strings.NewReader("{"), broken{})); !errors.Is(err, io.ErrClosedPipe) {
		t.Errorf("a file that can't be read: %v", err)
	}
}

type broken struct{}

func (broken) Read([]byte) (int, error)  { return 0, io.ErrClosedPipe }
func (broken) Write([]byte) (int, error) { return 0, io.ErrClosedPipe }

func TestWriteErrors(t *testing.T) {
	r := reporttest.Good()
	c := report.Compare(r, r)
	for name, err := range map[string]error{
		"json": r.WriteJSON(broken{}), "page": report.WriteHTML(broken{}, r), "changes": c.WriteText(broken{}), "changes as JSON": c.WriteJSON(broken{}),
	} {
		if !errors.Is(err, io.ErrClosedPipe) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestStatus(t *testing.T) {
	set := func(column, probe string, f func(*report.Cell)) func(*report.Report) {
		return func(r *report.Report) {
			for i := range r.Cells {
				if c := &r.Cells[i]; c.Column == column && c.Probe == probe {
					f(c)
					return
				}
			}
			t.Fatal("no such cell")
		}
	}
	verdict := func(v report.Verdict) func(*report.Cell) { return func(c *report.Cell) { c.Verdict = v } }
	for name, c := range map[string]struct {
		change func(*report.Report)
		want   int
	}{
		"as it is":                            {func(*report.Report) {}, 0},
		"nothing ran":                         {func(r *report.Report) { r.Cells = nil }, 1},
		"partial":                             {func(r *report.Report) { r.Partial = true }, 1},
		"a promise escaped":                   {set("process", "fs-01-ssh-key", verdict(report.Escaped)), 1},
		"a promise failed":                    {set("process", "fs-01-ssh-key", verdict(report.Failed)), 1},
		"a promise is unknown":                {set("process", "fs-01-ssh-key", verdict(report.Unknown)), 1},
		"a promise has nothing to do":         {set("process", "fs-01-ssh-key", verdict(report.NotApplicable)), 0},
		"an expected escape":                  {set("subprocess", "fs-01-ssh-key", verdict(report.Escaped)), 0},
		"an escape that did not come":         {set("subprocess", "fs-01-ssh-key", verdict(report.Contained)), 1},
		"a control that does not bite":        {set("none", "fs-01-ssh-key", verdict(report.Contained)), 1},
		"somebody else's escape":              {set("bwrap", "fs-01-ssh-key", verdict(report.Escaped)), 0},
		"a cell is not there":                 {func(r *report.Report) { drop(r, "process", "fs-01-ssh-key") }, 1},
		"one of somebody else's is not there": {func(r *report.Report) { drop(r, "bwrap", "fs-01-ssh-key") }, 0},
	} {
		r := reporttest.Good()
		c.change(r)
		if got := r.Status(); got != c.want {
			t.Errorf("%s: %d, want %d", name, got, c.want)
		}
	}
}

func drop(r *report.Report, column, probe string) {
	r.Cells = slices.DeleteFunc(r.Cells, func(c report.Cell) bool { return c.Column == column && c.Probe == probe })
}

func TestTallies(t *testing.T) {
	r := reporttest.Bad()
	drop(r, "bwrap", "net-05-dns")
	all := r.Tallies()
	want := report.Tally{Verdicts: map[report.Verdict]int{report.Escaped: 1, report.Failed: 1, report.Unknown: 1, report.Contained: 1}, Bad: 3}
	if !reflect.DeepEqual(all["process"], want) {
		t.Errorf("process: %+v, want %+v", all["process"], want)
	}
	if all["bwrap"].NotRun != 1 || all["container (runc)"].NotRun != 4 {
		t.Errorf("not run: %+v", all)
	}
}

func TestPageForm(t *testing.T) {
	text := string(page(t, reporttest.Bad()))
	_, body, _ := strings.Cut(text, "<body>")
	golden(t, "page.html", []byte(body))
	safe(t, text)
}

func FuzzRead(f *testing.F) {
	for _, r := range []*report.Report{reporttest.Good(), reporttest.Bad(), reporttest.Partial(), {Schema: report.Schema}} {
		text, err := json.Marshal(r)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(text)
	}
	f.Add([]byte(`{"schema":"tranca.hostile/1","probes":[{"id":"a","rows":null}],"columns":[{"name":"b","kind":"backend"}],"cells":[{"probe":"a","column":"b","verdict":"n/a"}]}`))
	good := reporttest.Good()
	f.Fuzz(func(t *testing.T, text []byte) {
		r, err := report.Read(bytes.NewReader(text))
		if err != nil {
			return
		}
		once := written(t, r)
		if again := written(t, reread(t, once)); !bytes.Equal(once, again) {
			t.Errorf("it changes when it is read again:\n%s\n%s", once, again)
		}
		r.Status()
		safe(t, string(page(t, r)))
		for _, c := range []report.Changes{report.Compare(good, r), report.Compare(r, good)} {
			var b bytes.Buffer
			if err := c.WriteText(&b); err != nil {
				t.Fatal(err)
			}
			if strings.ContainsAny(b.String(), "\x1b\r\x00\x7f\u202e\u009b") {
				t.Errorf("the text of changes holds a control: %q", b.String())
			}
		}
		if c := report.Compare(r, r); c.Regressions > 0 && r.Partial {
			t.Errorf("a partial report is worse than itself: %+v", c)
		}
	})
}

// safe fails where a page has an element that none of ours is.
func safe(t *testing.T, page string) {
	t.Helper()
	for _, bad := range []string{"<script", "<img", "<iframe", "<svg", "\x00", "\x1b", "\u202e", "\u200f"} {
		if strings.Contains(page, bad) {
			t.Errorf("the page holds %q", bad)
		}
	}
	if n := strings.Count(page, "<style"); n != 1 {
		t.Errorf("the page has %d styles", n)
	}
}
