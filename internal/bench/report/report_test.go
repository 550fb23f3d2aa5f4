package report

import (
	"bytes"
	"encoding/xml"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"tranca"
	"tranca/internal/bench"
)

var update = flag.Bool("update", false, "write the golden files anew")

// fixed is a result of made-up figures.
func fixed() *bench.Result {
	at := time.Date(2026, 11, 30, 9, 0, 0, 0, time.UTC)
	r := &bench.Result{
		Schema: bench.Schema, Tranca: "1.2.3", Started: at, Ended: at.Add(time.Minute), Only: []string{}, Rounds: 100, Seed: 1,
		Host: bench.Host{
			System: "Debian GNU/Linux 12", Kernel: "6.1.0", Arch: "amd64", CPU: "a processor", CPUs: 2,
			Memory: 8 << 30, LoadBefore: 0.25, Cgroup: 2, Python: "/usr/bin/python3",
		},
		Trust:   bench.NewTrust(20e6, 20.4e6),
		Harness: bench.Harness{EmptyNS: 8000, Added: 0.0004, Ratio: &bench.Interval{Value: 1.002, Low: 0.995, High: 1.01}, Bound: bench.HarnessBound},
	}
	add := func(s bench.Subject, slow float64) {
		s.LeftChecked = s.Kind != bench.KindBare
		for i, m := range bench.Measures() {
			v := 1e6 * float64(i+1) * slow
			ratio := slow
			if m.More {
				v, ratio = 64/slow*float64(i), 1/slow
			}
			if m.Unit == bench.BytesPerSecond {
				v *= 1 << 20
			}
			figures := bench.Measure{
				Name: m.Name, N: 50, Min: v * 0.9, P50: v, P90: v * 1.3, P99: v * 1.6, Max: v * 2,
				Interval: &bench.Interval{Value: v, Low: v * 0.97, High: v * 1.03},
			}
			if m.Base != "" {
				figures.Ratio = &bench.Interval{Value: ratio, Low: ratio * 0.95, High: ratio * 1.05}
			}
			if s.Kind != bench.KindBackend && (m.Base == "" || m.Name == bench.Second) {
				figures = bench.Measure{Name: m.Name, Missing: "it has no sandbox that stays"}
			}
			s.Measures = append(s.Measures, figures)
		}
		r.Subjects = append(r.Subjects, s)
	}
	add(bench.Subject{Name: "bare", Kind: bench.KindBare, Version: "Python 3.11.2", Command: []string{"/usr/bin/python3", "-I", "-c", "CODE"}}, 1)
	add(bench.Subject{Name: "process", Kind: bench.KindBackend, Isolation: "process", Waived: []tranca.Item{tranca.ItemCPUs}}, 1.4)
	add(bench.Subject{Name: "gvisor", Kind: bench.KindBackend, Isolation: "gvisor"}, 8)
	add(bench.Subject{Name: "bubblewrap", Kind: bench.KindBaseline, Isolation: "process", Version: "0.8.0", Command: []string{"bwrap", "CODE"}}, 1.3)
	r.Subjects = append(r.Subjects, bench.Subject{Name: "container", Kind: bench.KindBackend, Unavailable: "no engine answers", Measures: []bench.Measure{}})
	return r
}

// spoiled has all that can be wrong with a result, and texts that a hostile
// file could hold.
func spoiled() *bench.Result {
	r := fixed()
	r.Partial = true
	r.Trust = bench.NewTrust(20e6, 40e6)
	r.Subjects[1].Failed = "starts: <script>alert(1)</script> \x1b[31m & \x00"
	r.Subjects[2].Left = []string{"process 7 (sleep) \"'"}
	r.Subjects[3].Name = "</svg><img src=\"//evil.example/x\">"
	r.Subjects[3].Isolation = ""
	r.Host.System = "\u202eevil"
	return r
}

func golden(t *testing.T, name, got string) {
	t.Helper()
	path := filepath.Join("testdata", name)
	if *update {
		if err := os.WriteFile(path, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), got); diff != "" {
		t.Errorf("%s: go test ./internal/bench/report -update writes it anew\n%s", name, diff)
	}
}

func TestGolden(t *testing.T) {
	for name, r := range map[string]*bench.Result{"sound": fixed(), "spoiled": spoiled()} {
		var b bytes.Buffer
		if err := Table(&b, r); err != nil {
			t.Fatal(err)
		}
		golden(t, name+".txt", b.String())
		golden(t, name+".html", HTML(r))
	}
	for _, p := range Plots(fixed()) {
		golden(t, p.Name+".svg", p.SVG)
	}
	old, now := fixed(), fixed()
	now.Host.Kernel = "6.6.0"
	for i := range now.Subjects[1].Measures {
		if m := &now.Subjects[1].Measures[i]; m.Ratio != nil {
			m.Ratio = &bench.Interval{Value: m.Ratio.Value * 1.5, Low: m.Ratio.Low * 1.5, High: m.Ratio.High * 1.5}
		}
	}
	var b bytes.Buffer
	if err := Changes(&b, old, now, bench.Compare(old, now)); err != nil {
		t.Fatal(err)
	}
	golden(t, "changes.txt", b.String())
}

// TestPageIsWholeAndAlone reads page and plots as XML, and looks for whatever
// could load something from outside.
func TestPageIsWholeAndAlone(t *testing.T) {
	outside := regexp.MustCompile(`(?i)https?:|//[a-z]|\b(src|href|srcset|action|data)\s*=|@import|url\(|<(script|link|img|iframe|object|embed|base|form)\b`)
	for name, r := range map[string]*bench.Result{"sound": fixed(), "spoiled": spoiled(), "empty": {}} {
		texts := map[string]string{"page": HTML(r)}
		for _, p := range Plots(r) {
			texts[p.Name] = strings.Replace(p.SVG, `xmlns="http://www.w3.org/2000/svg"`, "", 1)
		}
		for what, text := range texts {
			if err := wellFormed(text); err != nil {
				t.Errorf("%s, %s: %v", name, what, err)
			}
			// What a file says may stand there as text: then it is escaped.
			for _, tag := range regexp.MustCompile(`<[^>]*>`).FindAllString(text, -1) {
				if found := outside.FindString(tag); found != "" {
					t.Errorf("%s, %s: %q in %s", name, what, found, tag)
				}
			}
		}
	}
}

func wellFormed(text string) error {
	d := xml.NewDecoder(strings.NewReader(text))
	depth, roots := 0, 0
	for {
		token, err := d.Token()
		if errors.Is(err, io.EOF) {
			if roots != 1 {
				return fmt.Errorf("%d roots", roots)
			}
			return nil
		}
		if err != nil {
			return err
		}
		switch token.(type) {
		case xml.StartElement:
			if depth == 0 {
				roots++
			}
			depth++
		case xml.EndElement:
			depth--
		}
	}
}

// TestWhatIsWrongIsSaid looks in table and page for what keeps a result from
// standing.
func TestWhatIsWrongIsSaid(t *testing.T) {
	var b bytes.Buffer
	if err := Table(&b, spoiled()); err != nil {
		t.Fatal(err)
	}
	for what, text := range map[string]string{"table": b.String(), "page": HTML(spoiled())} {
		for _, want := range []string{"can't be trusted", "process failed", "gvisor left something", "partial"} {
			if !strings.Contains(strings.ReplaceAll(text, "&#39;", "'"), want) {
				t.Errorf("the %s doesn't say %q", what, want)
			}
		}
		if strings.ContainsAny(text, "\x1b\x00\u202e") {
			t.Errorf("the %s holds control characters of a file", what)
		}
	}
}

func TestAFullDiskIsAnError(t *testing.T) {
	full := writerFunc(func([]byte) (int, error) { return 0, tranca.ErrNoSpace })
	if err := Table(full, fixed()); !errors.Is(err, tranca.ErrNoSpace) {
		t.Errorf("table: %v", err)
	}
	if err := Changes(full, fixed(), fixed(), nil); !errors.Is(err, tranca.ErrNoSpace) {
		t.Errorf("changes: %v", err)
	}
}

type writerFunc func([]byte) (int, error)

func (f writerFunc) Write(p []byte) (int, error) { return f(p) }

func TestLabelsDontLieOnEachOther(t *testing.T) {
	c := newCanvas("t", 100, 100)
	c.labels([]label{{x: 10, y: 50, text: "a"}, {x: 12, y: 50, text: "b"}, {x: 10, y: 51, text: "c"}, {x: 90, y: 50, text: "d"}})
	seen := map[string]bool{}
	for _, m := range regexp.MustCompile(`x="(1\d)\.\d" y="([\d.]+)" class="" `).FindAllStringSubmatch(c.b.String(), -1) {
		if seen[m[2]] {
			t.Errorf("two labels at the height %s", m[2])
		}
		seen[m[2]] = true
	}
	if len(seen) != 3 {
		t.Errorf("%d labels of 3 are found", len(seen))
	}
}
