package weaken

import (
	"fmt"
	"slices"
	"strings"

	"tranca"
)

// Switch takes one guarantee of one backend away.
type Switch struct {
	Backend string
	Item    tranca.Item
	// Takes says what is taken away; empty where there is no switch.
	Takes string
	// None says why there is no switch.
	None string
	// Layer, where set, says behind what the guarantee stands, so that nothing
	// that a program does shows its absence alone. Takes then says what else is
	// taken with it.
	Layer string
}

// Name is the switch's word in the environment: "process:network".
func (s Switch) Name() string { return s.Backend + ":" + string(s.Item) }

// Find returns the switch of a guarantee, and whether the table has it.
func Find(backend string, item tranca.Item) (Switch, bool) {
	for _, s := range Switches() {
		if s.Backend == backend && s.Item == item {
			return s, true
		}
	}
	return Switch{}, false
}

// Of are the switches that take something from a backend.
func Of(backend string) []Switch {
	return slices.DeleteFunc(Switches(), func(s Switch) bool { return s.Backend != backend || s.Takes == "" })
}

// Also has the switch of an item do one thing more, after what it does.
func Also[P any](all map[tranca.Item]func(P), item tranca.Item, edit func(P)) {
	before := all[item]
	all[item] = func(plan P) {
		if before != nil {
			before(plan)
		}
		edit(plan)
	}
}

// Apply edits a plan by each switch of a backend that is on. how says what each
// does to it. In an ordinary build it does nothing; call it behind Enabled, so
// that how is not built either.
func Apply[P any](backend string, how map[tranca.Item]func(P), plan P) {
	for _, item := range tranca.Items() {
		if edit := how[item]; edit != nil && Takes(backend, item) {
			edit(plan)
		}
	}
}

// Any reports whether any guarantee of a backend is taken away.
func Any(backend string) bool {
	return slices.ContainsFunc(tranca.Items(), func(item tranca.Item) bool { return Takes(backend, item) })
}

// Lacks returns a line for each guarantee of a report that the table doesn't
// know, whether or not this host gives it, and for each switch of the table that
// nobody makes: neither the backend, which has how, nor the engine.
func Lacks[P any](report tranca.Report, how map[tranca.Item]func(P)) []string {
	var all []string
	for _, g := range report.Guarantees {
		// A subprocess never has what it doesn't have here.
		if _, ok := Find(report.Backend, g.Item); !ok && (g.Held || report.Level > tranca.LevelSubprocess) {
			all = append(all, fmt.Sprintf("%s claims %s, and there is no switch for it", report.Backend, g.Item))
		}
	}
	for _, s := range Of(report.Backend) {
		byEngine := slices.Contains(ByEngine(), s.Item)
		if made := how[s.Item] != nil; made == byEngine {
			all = append(all, fmt.Sprintf("%s: made by the backend: %v, made by the engine: %v", s.Name(), made, byEngine))
		}
	}
	return all
}

// parse reads a list of names.
func parse(list string) ([]Switch, error) {
	if list == "" {
		return nil, nil
	}
	var out []Switch
	for name := range strings.SplitSeq(list, ",") {
		backend, item, ok := strings.Cut(name, ":")
		if !ok {
			return nil, fmt.Errorf("%w: %q: write backend:item, as process:network", tranca.ErrInvalid, name)
		}
		s, ok := Find(backend, tranca.Item(item))
		switch {
		case !ok && !has(backend):
			return nil, fmt.Errorf("%w: %q: no backend %q has switches; there are %s", tranca.ErrInvalid, name, backend, strings.Join(backends(), ", "))
		case !ok:
			return nil, fmt.Errorf("%w: %q: backend %s has no switch for an item %q; it has %s", tranca.ErrInvalid, name, backend, item, strings.Join(items(backend), ", "))
		case s.Takes == "":
			return nil, fmt.Errorf("%w: %q can't be taken away: %s", tranca.ErrInvalid, name, s.None)
		}
		out = append(out, s)
	}
	return out, nil
}

// backends are those in the table, in its order.
func backends() []string {
	var all []string
	for _, s := range Switches() {
		if n := len(all); n == 0 || all[n-1] != s.Backend {
			all = append(all, s.Backend)
		}
	}
	return all
}

func has(backend string) bool { return len(items(backend)) > 0 }

// items are those of a backend that can be taken away.
func items(backend string) []string {
	var all []string
	for _, s := range Of(backend) {
		all = append(all, string(s.Item))
	}
	return all
}

// ByEngine are the guarantees that the engine keeps, whatever the backend.
func ByEngine() []tranca.Item { return []tranca.Item{tranca.ItemWall, tranca.ItemOutput} }
