package seccomp

import "slices"

// Allowed returns the names of the calls that a profile allows, always or by
// their arguments, sorted. It is for filters that others make and that code
// runs under beside its own: they may be coarser, but not stricter.
func Allowed(p Profile) []string {
	var names []string
	for _, g := range groups() {
		for _, c := range g.calls {
			r := g.rule
			if p.Agent {
				r = agentRule(p, g, c)
			}
			if r == nil || r == rule(allow) {
				names = append(names, c.name)
			} else if _, some := r.(*test); some {
				names = append(names, c.name)
			}
		}
	}
	slices.Sort(names)
	return names
}
