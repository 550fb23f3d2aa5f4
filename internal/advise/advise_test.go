package advise

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"tranca"
	"tranca/internal/hostcheck"
	"tranca/internal/policy"
)

// state is how a backend of a made-up host is.
type state int

const (
	usable state = iota
	absent
	incomplete // a guarantee is not held
	holed      // a version with a known hole
	broken     // hostile programs got through
	states
)

var rungs = []struct {
	name  string
	level tranca.Level
}{{"subprocess", tranca.LevelSubprocess}, {"process", tranca.LevelProcess}, {"container", tranca.LevelContainer}, {"gvisor", tranca.LevelGVisor}, {"microvm", tranca.LevelMicroVM}}

// candidate is a backend in a state.
func candidate(name string, level tranca.Level, s state) Candidate {
	r := tranca.Report{Backend: name, Level: level, Facts: map[string]string{tranca.FactRoots: "host, image", "landlock ABI": "7"}}
	for _, item := range tranca.Items() {
		r.Guarantees = append(r.Guarantees, tranca.Guarantee{Item: item, Held: s != incomplete || item != tranca.ItemMemory, Mechanism: "made up", Missing: "no group", Mend: "mend groups"})
	}
	if s == holed {
		r.Advisories = []tranca.Advisory{{ID: "CVE-2024-21626", Component: "runc", Version: "1", FixedIn: "2"}}
	}
	c := Candidate{Backend: name, Level: level, Report: r}
	if s == absent {
		c.Err = &tranca.RefusalError{Backend: name, Unavailable: true, Problems: []tranca.Problem{{Item: tranca.ItemIsolation, Missing: "no " + name, Mend: "install " + name}}}
	}
	return c
}

// host makes the candidates process to microvm in the states given.
func host(of ...state) (all []Candidate, e Evidence) {
	e.Hostile = &Hostile{When: time.Unix(1e9, 0), Held: map[string]Held{}}
	all = append(all, candidate("subprocess", tranca.LevelSubprocess, usable))
	for i, s := range of {
		r := rungs[i+1]
		all = append(all, candidate(r.name, r.level, s))
		if s == broken {
			e.Hostile.Held[r.name] = Held{Contained: 9, Escaped: 1, Promised: []string{"read-home"}}
		}
	}
	return all, e
}

// space is every combination of answers about risk.
func space() (all []Answers) {
	q := Questions()
	for _, code := range q[0].Choices {
		for _, breakout := range q[1].Choices {
			for _, network := range q[2].Choices {
				for _, secrets := range q[3].Choices {
					all = append(all, Answers{Code: code.Word, Breakout: breakout.Word, Network: network.Word, Secrets: secrets.Word})
				}
			}
		}
	}
	return all
}

// riskier reports whether each answer of b is of at least the risk of a's.
func riskier(a, b Answers) bool {
	for _, q := range Questions()[:4] {
		if q.rank(q.get(&b)) < q.rank(q.get(&a)) {
			return false
		}
	}
	return true
}

// TestGolden holds the rules to the cases that they were made for.
func TestGolden(t *testing.T) {
	text, err := os.ReadFile("testdata/golden.txt")
	if err != nil {
		t.Fatal(err)
	}
	cases := 0
	for line := range strings.Lines(string(text)) {
		if strings.HasPrefix(line, "#") || strings.TrimSpace(line) == "" {
			continue
		}
		// answers -> floor, backend on a host with every rung, on one without a microVM, on one of process alone
		asked, want, _ := strings.Cut(strings.TrimSpace(line), " -> ")
		w := strings.Fields(asked)
		a := Answers{Code: w[0], Breakout: w[1], Network: w[2], Secrets: w[3]}
		got := needOf(&a).Floor.String()
		for _, h := range [][]state{{usable, usable, usable, usable}, {usable, usable, usable}, {usable, absent, absent}} {
			all, e := host(h...)
			advice, err := Build(Input{Answers: a, Candidates: all, Evidence: e})
			if err != nil {
				t.Fatal(err)
			}
			if advice.Recommended == nil {
				got += " none"
			} else {
				got += " " + advice.Recommended.Backend
			}
		}
		if got != want {
			t.Errorf("%s: %s, want %s", asked, got, want)
		}
		cases++
	}
	if cases < 12 {
		t.Errorf("only %d cases", cases)
	}
}

// TestMoreRiskNeverLower holds all pairs of answers against each other.
func TestMoreRiskNeverLower(t *testing.T) {
	all := space()
	if len(all) != 80 {
		t.Fatalf("%d answers", len(all))
	}
	pairs := 0
	for _, a := range all {
		for _, b := range all {
			if !riskier(a, b) {
				continue
			}
			pairs++
			less, more := needOf(&a), needOf(&b)
			if more.Floor < less.Floor || more.Aim < less.Aim || less.RefuseHoles && !more.RefuseHoles {
				t.Errorf("%+v needs %+v, and the riskier %+v %+v", a, less, b, more)
			}
		}
	}
	if pairs < 500 {
		t.Errorf("%d pairs", pairs)
	}
}

// need is what of a [Need] decides.
type need struct {
	floor, aim tranca.Level
	refuse     bool
}

// distinct returns one answer for each need, and the need of each answer.
func distinct() (some []Answers, of map[Answers]need) {
	of = map[Answers]need{}
	seen := map[need]bool{}
	for _, a := range space() {
		n := needOf(&a)
		of[a] = need{n.Floor, n.Aim, n.RefuseHoles}
		if !seen[of[a]] {
			seen[of[a]] = true
			some = append(some, a)
		}
	}
	return some, of
}

// everyHost calls f with each combination of states of the four rungs.
func everyHost(f func(of [4]state)) {
	for p := range states {
		for c := range states {
			for g := range states {
				for m := range states {
					f([4]state{p, c, g, m})
				}
			}
		}
	}
}

// TestEveryAnswerOnEveryHost: what is recommended reaches the floor, is usable,
// holds everything, and let nothing through; where nothing does, nothing is
// recommended, and each rung that would do says why not.
func TestEveryAnswerOnEveryHost(t *testing.T) {
	recommended, refused := 0, 0
	some, _ := distinct()
	everyHost(func(of [4]state) {
		candidates, e := host(of[:]...)
		for _, a := range some {
			n := needOf(&a)
			p := policyFor(a, n)
			var eligible []*Candidate
			for i := range candidates {
				c := &candidates[i]
				r := judge(c, p, &e)
				if r == nil {
					eligible = append(eligible, c)
				} else if len(r.Why) == 0 {
					t.Fatalf("%s is rejected without a word", c.Backend)
				}
			}
			best := choose(n, eligible, &e)
			able := func(i int) bool {
				return rungs[i+1].level >= n.Floor && (of[i] == usable || of[i] == holed && !n.RefuseHoles)
			}
			could := able(0) || able(1) || able(2) || able(3)
			switch {
			case best == nil && could, best != nil && !could:
				t.Fatalf("%+v on %v: %v", a, of, best)
			case best == nil:
				refused++
			default:
				recommended++
				i := int(best.Level - tranca.LevelProcess)
				if !able(i) {
					t.Fatalf("%+v on %v: %s", a, of, best.Backend)
				}
				for j := range of { // a rung between the aim and the choice, or above a choice below the aim
					above := rungs[j+1].level
					if able(j) && (best.Level >= n.Aim && above >= n.Aim && above < best.Level || best.Level < n.Aim && above > best.Level) {
						t.Fatalf("%+v on %v: %s, and %s would have done", a, of, best.Backend, rungs[j+1].name)
					}
				}
			}
		}
	})
	if recommended < 1000 || refused < 500 {
		t.Errorf("%d recommended, %d refused", recommended, refused)
	}
}

// TestRecommendedIsMonotoneToo: on any host without known holes more risk never
// gets a weaker backend.
func TestRecommendedIsMonotoneToo(t *testing.T) {
	some, needs := distinct()
	type pair struct{ less, more need }
	pairs := map[pair]bool{}
	for a, less := range needs {
		for b, more := range needs {
			if less != more && riskier(a, b) {
				pairs[pair{less, more}] = true
			}
		}
	}
	everyHost(func(of [4]state) {
		if slices.Contains(of[:], holed) {
			return
		}
		candidates, e := host(of[:]...)
		level := map[need]tranca.Level{}
		for _, a := range some {
			n := needOf(&a)
			var eligible []*Candidate
			for i := range candidates {
				if judge(&candidates[i], policyFor(a, n), &e) == nil {
					eligible = append(eligible, &candidates[i])
				}
			}
			if best := choose(n, eligible, &e); best != nil {
				level[needs[a]] = best.Level
			}
		}
		for p := range pairs {
			if level[p.more] != 0 && level[p.more] < level[p.less] {
				t.Fatalf("on %v: %+v gets %s, and the riskier %+v %s", of, p.less, level[p.less], p.more, level[p.more])
			}
		}
	})
}

// TestAdvice reads one in full.
func TestAdvice(t *testing.T) {
	candidates, e := host(usable, absent, usable)
	e.Hostile.Held["gvisor"] = Held{Contained: 90, Limited: 10}
	e.Bench = &Bench{When: time.Unix(2e9, 0), Costs: map[string]Cost{
		"process": {FirstByteMS: 30, Ratio: 1.5, RatioLow: 1.4, RatioHigh: 1.6, PerSecond: 50, IdleMiB: 6},
		"gvisor":  {FirstByteMS: 180, Ratio: 8, RatioLow: 7.5, RatioHigh: 8.5, PerSecond: 9, IdleMiB: 24},
	}}
	in := Input{
		Answers:    Answers{Code: "strangers", Breakout: "this-machine", Network: "some", Secrets: "none", Latency: 50 * time.Millisecond, LatencyMS: 50, Rate: 5, Memory: 256 << 20},
		Candidates: candidates, Evidence: e,
		Checks: []hostcheck.Result{{ID: "smt", Group: "processor and memory", Result: hostcheck.Weak}, {ID: "bpf", Group: "kernel", Result: hostcheck.Open}},
	}
	a, err := Build(in)
	if err != nil {
		t.Fatal(err)
	}
	text, err := json.Marshal(a)
	if err != nil {
		t.Fatal(err)
	}
	listsAreLists(t, a)
	if a.Floor != tranca.LevelGVisor || a.Recommended.Backend != "gvisor" || a.Recommended.Hostile.Contained != 90 {
		t.Errorf("%s", text)
	}
	for _, want := range []string{
		"180 ms to the first byte, 8.00x the bare program's (7.50 to 8.50); 9.00 starts a second; 24.0 MiB idle, measured on 2033-05-18",
		"microvm would be better", "hostile programs against gvisor on 2001-09-09: 90 contained", "23 of 23 guarantees",
		"smt", "no network yet", `"install container"`,
	} {
		if !strings.Contains(string(text), want) {
			t.Errorf("it does not say %q: %s", want, text)
		}
	}
	if strings.Contains(strings.Join(a.NotProtected, ""), "bpf") {
		t.Error("gvisor's code does not use the host's kernel")
	}
	met := map[string]Met{}
	for _, d := range a.Demands {
		met[d.Name] = d.Met
	}
	if met["latency"] != No || met["rate"] != Yes || met["memory"] != Yes {
		t.Errorf("%+v", a.Demands)
	}
	p, err := policy.Parse("p", []byte(a.Policy))
	if err != nil || p.Floor != tranca.LevelGVisor || p.Backend != "gvisor" || p.KnownVulnerabilities != tranca.VulnerabilitiesRefuse || p.Limits.Memory != 232<<20 {
		t.Errorf("%v\n%s", err, a.Policy)
	}
	if a.Next == nil || a.Next.Level != tranca.LevelMicroVM || a.Next.Usable || len(a.Next.Why) == 0 {
		t.Errorf("%+v", a.Next)
	}
}

// listsAreLists: no list of the JSON form is null.
func listsAreLists(t *testing.T, a *Advice) {
	t.Helper()
	text, err := json.Marshal(a)
	if err != nil {
		t.Fatal(err)
	}
	var whole struct {
		Reasons, Demands, Rejected, Notes []any
		NotProtected                      []any `json:"not_protected_from"`
		Next                              *struct{ Why, Mends []any }
	}
	if err := json.Unmarshal(text, &whole); err != nil {
		t.Fatal(err)
	}
	if whole.Reasons == nil || whole.Demands == nil || whole.Rejected == nil || whole.Notes == nil || whole.NotProtected == nil ||
		whole.Next != nil && (whole.Next.Why == nil || whole.Next.Mends == nil) {
		t.Errorf("a list is null: %s", text)
	}
	for _, r := range a.Rejected {
		if r.Why == nil || r.Mends == nil {
			t.Errorf("a list is null: %+v", r)
		}
	}
}

// TestNextRung has a price, and what is in its way.
func TestNextRung(t *testing.T) {
	candidates, e := host(usable, incomplete, usable)
	e.Bench = &Bench{When: time.Unix(2e9, 0), Costs: map[string]Cost{"process": {FirstByteMS: 30}, "container": {FirstByteMS: 300}}}
	a, err := Build(Input{Answers: Answers{Code: "own", Breakout: "this-user", Network: "none", Secrets: "none"}, Candidates: candidates, Evidence: e})
	if err != nil {
		t.Fatal(err)
	}
	n := a.Next
	if a.Recommended.Backend != "process" || n.Backend != "container" || n.Usable || !strings.Contains(n.Price, "10.0x of process") || !slices.Contains(n.Mends, "mend groups") {
		t.Errorf("%+v, %+v", a.Recommended, n)
	}
}

// TestNothingIsRecommendedBelowTheFloor says which mend helps.
func TestNothingIsRecommendedBelowTheFloor(t *testing.T) {
	candidates, e := host(usable, usable, absent)
	a, err := Build(Input{Answers: Answers{Code: "strangers", Breakout: "this-user", Network: "none", Secrets: "none"}, Candidates: candidates, Evidence: e})
	if err != nil || a.Recommended != nil || a.Policy != "" {
		t.Fatalf("%+v, %v", a.Recommended, err)
	}
	listsAreLists(t, a)
	if a.Next == nil || a.Next.Backend != "gvisor" || !slices.Contains(a.Next.Mends, "install gvisor") {
		t.Errorf("%+v", a.Next)
	}
}

// TestAnotherColumnOfOneBackend: results are found by the runtime's name.
func TestAnotherColumnOfOneBackend(t *testing.T) {
	c := candidate("container", tranca.LevelContainer, usable)
	c.Report.Facts[tranca.FactRuntime] = "runc"
	e := Evidence{
		Hostile: &Hostile{Held: map[string]Held{"container (runc)": {Escaped: 1, Promised: []string{"x"}}, "container (runsc)": {Contained: 1}}},
		Bench:   &Bench{Costs: map[string]Cost{"container:runc": {FirstByteMS: 7}}},
	}
	cost, ok := e.cost(&c)
	if !ok || cost.FirstByteMS != 7 || !slices.Equal(e.broken(&c), []string{"x"}) {
		t.Errorf("%+v, %v", cost, e.broken(&c))
	}
}

func TestCollect(t *testing.T) {
	give := func(pairs ...string) (all []Given) {
		for i := 0; i < len(pairs); i += 2 {
			all = append(all, Given{pairs[i], pairs[i+1], fmt.Sprintf("f:%d:1", i/2+1)})
		}
		return all
	}
	whole := []string{"code", "own", "breakout", "this-user", "network", "none", "secrets", "none"}
	a, open, err := Collect(give(append(whole, "latency", "50ms", "rate", "2.5", "memory", "1GiB", "image", "code:1")...))
	if err != nil || open != nil || a.Latency != 50*time.Millisecond || a.Rate != 2.5 || a.Memory != 1<<30 || a.Image != "code:1" {
		t.Fatalf("%+v, %v, %v", a, open, err)
	}
	if _, open, err = Collect(give("code", "own")); err != nil || len(open) != 3 || open[0].Name != "breakout" {
		t.Errorf("%v, %v", open, err)
	}
	for _, c := range []struct {
		given []string
		want  string
	}{
		{[]string{"colour", "red"}, `f:1:1: there is no question "colour": want code, breakout, network, secrets, latency, rate, memory, image`},
		{[]string{"code", "mine"}, `f:1:1: code: "mine" is no answer: want own, nearly-trusted, internal-tools, strangers or tenants`},
		{[]string{"code", "own", "code", "tenants"}, "f:1:1 says code: own, and f:2:1 says tenants: leave one out"},
		{[]string{"latency", "fast"}, "f:1:1: latency: "},
		{[]string{"latency", "2h"}, "at most 1h"},
		{[]string{"rate", "0"}, "want a number above 0"},
		{[]string{"rate", "NaN"}, "want a number above 0"},
		{[]string{"memory", "1KiB"}, "want at least 32MiB"},
		{[]string{"memory", "900TiB"}, "f:1:1: memory: "},
		{[]string{"image", "../x"}, "f:1:1: image: "},
		{[]string{"code", "own", "breakout", "nothing", "network", "none", "secrets", "some"}, "breakout: nothing (f:2:1) and secrets: some (f:4:1) contradict each other"},
		{[]string{"code", "tenants", "breakout", "nothing", "network", "none", "secrets", "none"}, "code: tenants (f:1:1) and breakout: nothing (f:2:1) contradict"},
	} {
		_, _, err := Collect(give(c.given...))
		if !errors.Is(err, tranca.ErrInvalid) || !strings.Contains(fmt.Sprint(err), c.want) {
			t.Errorf("%v: %v, want %s", c.given, err, c.want)
		}
	}
}

func TestReadAnswers(t *testing.T) {
	given, err := ReadAnswers("a.yaml", []byte("# mine\ncode: strangers\nrate: 5\n"))
	if err != nil || len(given) != 2 || given[1] != (Given{"rate", "5", "a.yaml:3:7"}) {
		t.Errorf("%+v, %v", given, err)
	}
	if _, err := ReadAnswers("a.yaml", []byte("code: [own]\n")); err == nil || !strings.Contains(err.Error(), "a.yaml:1:7") {
		t.Error(err)
	}
}

func TestRulesThatCannotBe(t *testing.T) {
	if len(rules()) < 15 {
		t.Errorf("%d rules", len(rules()))
	}
	for _, level := range tranca.Levels()[1:] {
		if len(gapsOf(level)) < 3 {
			t.Errorf("%s protects from everything?", level)
		}
	}
	for row, want := range map[string]string{
		`{"code": "mine", "floor": "process", "why": "x"}`:                    "no answer",
		`{"floor": "gvisor", "aim": "process", "why": "x"}`:                   "no lower",
		`{"floor": "subprocess", "why": "x"}`:                                 "process or more",
		`{"floor": "process"}`:                                                "has a why",
		`{"floor": "process", "why": "x", "gap": "y", "levels": ["process"]}`: "want a floor, a contradiction or a gap",
		`{"contradiction": "x", "code": "own"}`:                               "between two",
		`{"gap": "x"}`:                                                        "has levels",
		`{"gap": "x", "levels": ["moon"]}`:                                    "moon",
	} {
		_, err := ruleLists.Parse("f", []byte("{\"schema\": \"tranca.advice-rules/1\", \"date\": \"2026-01-01\", \"rows\": [\n"+row+"\n]}"))
		if err == nil || !strings.Contains(err.Error(), want) || !strings.Contains(err.Error(), "f:2: ") {
			t.Errorf("%s: %v, want %s", row, err, want)
		}
	}
}
