package bench

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"

	"tranca"
)

// fixed is a whole result, with every field set.
func fixed() *Result {
	figures := func(name MeasureName, p50, low, high float64, ratio *Interval) Measure {
		return Measure{
			Name: name, N: 9, Min: p50 * 0.9, P50: p50, P90: p50 * 1.2, P99: p50 * 1.5, Max: p50 * 2,
			Interval: &Interval{p50, low, high}, Ratio: ratio, Histogram: [][2]int64{{int64(p50), 9}},
		}
	}
	at := time.Date(2026, 11, 30, 9, 0, 0, 0, time.UTC)
	return &Result{
		Schema: Schema, Tranca: "dev", Started: at, Ended: at.Add(time.Minute), Only: []string{}, Rounds: 9, Seed: 1, Quick: true,
		Host: Host{
			System: "Debian", Kernel: "6.1", Arch: "amd64", CPU: "a processor", CPUs: 2, Memory: 1 << 30, UserID: 1000,
			Cgroup: 2, LoadBefore: 0.5, Python: "/usr/bin/python3",
		},
		Trust:   NewTrust(20e6, 21e6),
		Harness: Harness{EmptyNS: 9000, Added: 0.0005, Ratio: &Interval{1.001, 0.99, 1.01}, Bound: HarnessBound},
		Subjects: []Subject{
			{Name: "bare", Kind: KindBare, Version: "Python 3", Command: []string{"python3", "CODE"}, Measures: []Measure{
				figures(Whole, 20e6, 19e6, 21e6, &Interval{1, 0.9, 1.1}),
			}},
			{
				Name: "process", Kind: KindBackend, Isolation: "process", Waived: []tranca.Item{tranca.ItemCPUs},
				LeftChecked: true, Measures: []Measure{
					figures(Whole, 30e6, 29e6, 31e6, &Interval{1.5, 1.4, 1.6}),
					{Name: Throughput64, Missing: "left out"},
					figures(Destroy, 2e6, 1.9e6, 2.1e6, nil),
					{Name: IdleMemory, N: 1, Min: 1 << 20, P50: 1 << 20, P90: 1 << 20, P99: 1 << 20, Max: 1 << 20},
				},
			},
			{Name: "container", Kind: KindBackend, Unavailable: "no engine", Measures: []Measure{}},
		},
	}
}

func TestRoundTrip(t *testing.T) {
	want := fixed()
	var b bytes.Buffer
	if err := want.Write(&b); err != nil {
		t.Fatal(err)
	}
	got, err := Read(&b)
	if err != nil {
		t.Fatal(err)
	}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("it came back as\n%+v\nwant\n%+v", got, want)
	}
}

func TestReadRefuses(t *testing.T) {
	var b bytes.Buffer
	if err := fixed().Write(&b); err != nil {
		t.Fatal(err)
	}
	good := b.String()
	for name, c := range map[string]struct{ text, says string }{
		"nothing":         {"", "no result"},
		"another thing":   {`{"version": 1}`, `schema ""`},
		"another version": {strings.Replace(good, Schema, "tranca.bench/2", 1), `"tranca.bench/2"`},
		"half":            {good[:len(good)/2], "no result"},
		"a negative time": {strings.Replace(good, `"min": 18000000`, `"min": -1`, 1), "below 0"},
		"a level that there isn't": {
			strings.Replace(good, `"isolation": "process"`, `"isolation": "steel"`, 1), "steel",
		},
		"a name twice":       {strings.Replace(good, `"name": "process"`, `"name": "bare"`, 1), "there already"},
		"an unknown measure": {strings.Replace(good, `"name": "destroy"`, `"name": "magic"`, 1), "magic"},
		"an unknown kind":    {strings.Replace(good, `"kind": "bare"`, `"kind": "best"`, 1), "best"},
		"bounds that don't hold": {
			strings.Replace(good, `"low": 19000000`, `"low": 29000000`, 1), "interval",
		},
		"percentiles that descend": {strings.Replace(good, `"p90": 24000000`, `"p90": 1`, 1), "ascend"},
		"a histogram of nothing":   {strings.Replace(good, "          9\n", "          0\n", 1), "histogram"},
		"too much":                 {good + strings.Repeat(" ", maxBytes), "at most"},
	} {
		if c.text == good {
			t.Fatalf("%s: nothing was changed", name)
		}
		_, err := Read(strings.NewReader(c.text))
		if !errors.Is(err, tranca.ErrInvalid) || !strings.Contains(err.Error(), c.says) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// FuzzRead shows that whatever a file holds, it is refused or makes sense, and
// what makes sense can be written, read, judged and compared.
func FuzzRead(f *testing.F) {
	var b bytes.Buffer
	if err := fixed().Write(&b); err != nil {
		f.Fatal(err)
	}
	f.Add(b.Bytes())
	f.Add([]byte(`{"schema":"` + Schema + `"}`))
	f.Fuzz(func(t *testing.T, text []byte) {
		r, err := Read(bytes.NewReader(text))
		if err != nil {
			return
		}
		_ = r.Sound()
		_ = Compare(fixed(), r)
		_ = Compare(r, fixed())
		var out bytes.Buffer
		if err := r.Write(&out); err != nil {
			t.Fatalf("it was read and can't be written: %v", err)
		}
		if _, err := Read(&out); err != nil {
			t.Fatalf("it was written and can't be read: %v", err)
		}
	})
}

func TestTrust(t *testing.T) {
	for _, c := range []struct {
		first, last float64
		trusted     bool
	}{
		{20e6, 22.9e6, true}, {22.9e6, 20e6, true}, {20e6, 23.1e6, false}, {23.1e6, 20e6, false},
		{20e6, 0, false}, {0, 20e6, false}, {0, 0, false},
	} {
		if got := NewTrust(c.first, c.last); got.Trusted != c.trusted {
			t.Errorf("%v first and %v last: trusted %t", c.first, c.last, got.Trusted)
		}
	}
}

func TestSoundNamesWhatIsBad(t *testing.T) {
	if bad := fixed().Sound(); len(bad) > 0 {
		t.Fatalf("a good result: %q", bad)
	}
	for says, spoil := range map[string]func(*Result){
		"30.0 ms last":   func(r *Result) { r.Trust = NewTrust(20e6, 30e6) },
		"not measured":   func(r *Result) { r.Trust = NewTrust(20e6, 0) },
		"adds more":      func(r *Result) { r.Harness.Added = 0.03 },
		"plain loop":     func(r *Result) { r.Harness.Ratio = &Interval{1.1, 1.05, 1.2} },
		"process failed": func(r *Result) { r.Subjects[1].Failed = "boom" },
		"a cgroup":       func(r *Result) { r.Subjects[1].Left = []string{"a cgroup"} },
	} {
		r := fixed()
		spoil(r)
		if bad := r.Sound(); len(bad) != 1 || !strings.Contains(bad[0], says) {
			t.Errorf("%s: %q", says, bad)
		}
	}
}

func TestCompare(t *testing.T) {
	verdict := func(spoil func(*Result), subject string, name MeasureName) Verdict {
		now := fixed()
		spoil(now)
		for _, c := range Compare(fixed(), now) {
			if c.Subject == subject && c.Measure == name {
				return c.Verdict
			}
		}
		return "none"
	}
	set := func(i int, ratio *Interval, p50 float64) func(*Result) {
		return func(r *Result) {
			m := &r.Subjects[1].Measures[i]
			m.Ratio = ratio
			if p50 > 0 {
				m.P50, m.Interval = p50, &Interval{p50, p50 * 0.99, p50 * 1.01}
			}
		}
	}
	for _, c := range []struct {
		name  string
		spoil func(*Result)
		of    MeasureName
		want  Verdict
	}{
		{"nothing", func(*Result) {}, Whole, Same},
		{"slower, outside of the noise", set(0, &Interval{1.9, 1.8, 2}, 0), Whole, Worse},
		{"slower, intervals overlap", set(0, &Interval{1.9, 1.55, 2.2}, 0), Whole, Same},
		{"slower by less than a tenth", set(0, &Interval{1.64, 1.61, 1.65}, 0), Whole, Same},
		{"faster", set(0, &Interval{1.1, 1, 1.2}, 0), Whole, Better},
		{"the whole host is slower", set(0, &Interval{1.5, 1.4, 1.6}, 300e6), Whole, Same},
		{"without a ratio, slower", set(2, nil, 4e6), Destroy, Worse},
		{"without a ratio, faster", set(2, nil, 1e6), Destroy, Better},
		{"one sample of a time", func(r *Result) { r.Subjects[1].Measures[2].Interval = nil }, Destroy, Unclear},
		{"one sample of memory, more", func(r *Result) { r.Subjects[1].Measures[3].P50 = 2 << 20 }, IdleMemory, Worse},
		{"gone", func(r *Result) { r.Subjects[1].Measures[0].N = 0 }, Whole, Gone},
		{"new", func(r *Result) {
			r.Subjects[1].Measures[1] = Measure{Name: Throughput64, N: 1, P50: 40}
		}, Throughput64, New},
	} {
		if got := verdict(c.spoil, "process", c.of); got != c.want {
			t.Errorf("%s: %s, want %s", c.name, got, c.want)
		}
	}
	if got := verdict(func(*Result) {}, "bare", Whole); got != "none" {
		t.Errorf("bare is held against itself: %s", got)
	}
}

func TestMoreIsBetterWhereItIs(t *testing.T) {
	at := func(ratio float64) *Result {
		r := fixed()
		r.Subjects[1].Measures[1] = Measure{Name: Throughput64, N: 3, P50: 40, Ratio: &Interval{ratio, ratio * 0.98, ratio * 1.02}}
		return r
	}
	for want, now := range map[Verdict]float64{Better: 0.6, Worse: 0.3, Same: 0.41} {
		for _, c := range Compare(at(0.4), at(now)) {
			if c.Measure == Throughput64 && c.Verdict != want {
				t.Errorf("0.4 before, %v now: %s, want %s", now, c.Verdict, want)
			}
		}
	}
}

func TestMeasuresAreDistinct(t *testing.T) {
	seen := map[MeasureName]bool{}
	for _, m := range Measures() {
		if seen[m.Name] || m.Title == "" || m.What == "" || m.Unit == "" {
			t.Errorf("%+v", m)
		}
		seen[m.Name] = true
		if _, ok := MeaningOf(m.Base); m.Base != "" && !ok {
			t.Errorf("%s: its base %s is no measure", m.Name, m.Base)
		}
	}
}

// TestDocumented holds the page against the measures and fields that there are.
func TestDocumented(t *testing.T) {
	text, err := os.ReadFile(filepath.Join("..", "..", "docs", "BENCH.md"))
	if err != nil {
		t.Fatal(err)
	}
	page := string(text)
	if !strings.Contains(page, "`"+Schema+"`") {
		t.Errorf("docs/BENCH.md doesn't name %s", Schema)
	}
	for _, m := range Measures() {
		if !strings.Contains(page, "| `"+string(m.Name)+"` | "+string(m.Unit)+" |") {
			t.Errorf("docs/BENCH.md has no row for %s in %s", m.Name, m.Unit)
		}
	}
	for _, typ := range []reflect.Type{
		reflect.TypeFor[Result](), reflect.TypeFor[Host](), reflect.TypeFor[Trust](), reflect.TypeFor[Harness](),
		reflect.TypeFor[Subject](), reflect.TypeFor[Measure](), reflect.TypeFor[Interval](),
	} {
		for i := range typ.NumField() {
			name, _, _ := strings.Cut(typ.Field(i).Tag.Get("json"), ",")
			if !strings.Contains(page, "`"+name+"`") {
				t.Errorf("docs/BENCH.md doesn't say what %s.%s is", typ.Name(), name)
			}
		}
	}
}

func TestUnitsForPeople(t *testing.T) {
	for _, c := range []struct {
		u    Unit
		v    float64
		want string
	}{
		{Nanoseconds, 350, "350 ns"}, {Nanoseconds, 8810, "8.81 us"}, {Nanoseconds, 21.44e6, "21.4 ms"},
		{Nanoseconds, 1.2e9, "1200 ms"}, {Nanoseconds, 12e9, "12.0 s"}, {PerSecond, 40.52, "40.5/s"},
		{Bytes, 3 << 20, "3.00 MiB"}, {BytesPerSecond, 1500 << 20, "1500 MiB/s"},
	} {
		if got := c.u.Format(c.v); got != c.want {
			t.Errorf("%v %s: %q, want %q", c.v, c.u, got, c.want)
		}
	}
}
