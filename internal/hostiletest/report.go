package hostiletest

import (
	"maps"
	"slices"
	"strings"
	"testing"

	"tranca"
)

// Report is what hostile programs told of their attempts and twins.
type Report struct {
	// Attempts says of each attempt whether it escaped, Values what the program
	// said of it or of a twin.
	Attempts map[string]bool
	Values   map[string]string

	broken []string // twins that failed
	twins  int      // those that worked
	exit   tranca.Exit
	text   string
}

// Take adds what a program told: an attempt that read something has escaped if
// what it read holds canary, which is planted on the host. The program that was
// taken last is the one whose end Sound looks at.
func (r *Report) Take(o Outcome, canary string) {
	if r.Attempts == nil {
		r.Attempts, r.Values = map[string]bool{}, map[string]string{}
	}
	r.exit = o.Exit
	r.text += o.Stdout + o.Stderr
	for line := range strings.Lines(o.Stdout) {
		f := strings.SplitN(strings.TrimSpace(line), "\t", 4)
		if len(f) != 4 {
			continue
		}
		name := f[1]
		r.Values[name] = f[3]
		switch f[0] + " " + f[2] {
		case "attempt escaped":
			r.Attempts[name] = true
		case "attempt denied":
			r.Attempts[name] = r.Attempts[name] || false
		case "attempt read":
			r.Attempts[name] = r.Attempts[name] || strings.Contains(f[3], canary)
		case "twin ok":
			r.twins++
		case "twin broken":
			r.broken = append(r.broken, name+": "+f[3])
		}
	}
}

// Decide decides attempts by what they did on the host, whatever the program
// said. An effect of an attempt that was not made is left out.
func (r *Report) Decide(effect map[string]func() bool) {
	for name, happened := range effect {
		if _, tried := r.Attempts[name]; tried {
			r.Attempts[name] = happened()
		}
	}
}

// Contained checks that the programs were sound and every attempt was denied.
func (r *Report) Contained(t testing.TB, where string) {
	t.Helper()
	r.Sound(t, where)
	for _, name := range slices.Sorted(maps.Keys(r.Attempts)) {
		if r.Attempts[name] {
			t.Errorf("%s: escaped %s: %s", name, where, r.Values[name])
		}
	}
}

// Sound checks that the program ran to its end and its twins worked.
func (r *Report) Sound(t testing.TB, where string) {
	t.Helper()
	if !r.exit.Success() {
		t.Errorf("%s the program ended with %s:\n%s", where, r.exit, r.text)
	}
	if len(r.broken) > 0 || r.twins == 0 {
		t.Errorf("%s %d allowed acts worked, and these failed: %q\n%s", where, r.twins, r.broken, r.text)
	}
}

// All checks that every attempt escaped, or none.
func (r *Report) All(t testing.TB, where string, escaped bool) {
	t.Helper()
	r.Sound(t, where)
	for _, name := range slices.Sorted(maps.Keys(r.Attempts)) {
		if r.Attempts[name] != escaped {
			t.Errorf("%s: escaped %s: %v: %s", name, where, r.Attempts[name], r.Values[name])
		}
	}
}

// Expected are the attempts that a control lets escape: those that it names, or
// without names all but the blind ones, of which blind has the reason.
func (r *Report) Expected(escapes []string, blind map[string]string) []string {
	if escapes != nil {
		return escapes
	}
	var all []string
	for name := range r.Attempts {
		if blind[name] == "" {
			all = append(all, name)
		}
	}
	return all
}

// Shown checks that each attempt is expected to escape in some control, or is
// blind: another one that is denied shows nothing.
func (r *Report) Shown(t testing.TB, expected []string, blind map[string]string) {
	t.Helper()
	for name := range r.Attempts {
		if _, ok := blind[name]; !ok && !slices.Contains(expected, name) {
			t.Errorf("%s: no control lets it escape, so that it is denied shows nothing", name)
		}
	}
}

// Escaped checks that a control was sound and let the named attempts escape.
func (r *Report) Escaped(t testing.TB, without string, names []string) {
	t.Helper()
	r.Sound(t, "without "+without)
	for _, name := range names {
		if !r.Attempts[name] {
			t.Errorf("%s: denied also without %s: %s", name, without, r.Values[name])
		}
	}
}
