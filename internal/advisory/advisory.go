// Package advisory knows which versions of runtimes, engines and other parts of
// a boundary have known holes, and looks at what the distribution did about
// them: it often mends a hole without a new version, so that comparing numbers
// alone would say the wrong thing.
//
// The table is data (advisories.json) and has to be kept up; an operator may
// put a newer copy at [SystemFile]. A version that says nothing bad here is not
// thereby a good one.
package advisory

import (
	"fmt"
	"slices"
	"strings"

	"tranca"
)

// Components returns the names of the parts of which holes are known.
func (t *Table) Components() []string {
	var names []string
	for i := range t.holes {
		if !slices.Contains(names, t.holes[i].Component) {
			names = append(names, t.holes[i].Component)
		}
	}
	return names
}

// Known returns the known holes that a version of a component brings into
// tranca's own sandboxes, in the order of the table, those that the
// distribution's changelog names as mended with [tranca.Advisory].Patched. The
// changelog counts only where it is about this version; the zero value is about
// none. Of a component that is not in [Table.Components] nothing is known.
//
// The version is what the component says of itself, with or without what a
// distribution adds: "1.1.5+ds1", "1:20.10.24+dfsg1-1+deb12u1", "v2.0.4",
// "1.0.0~rc93+ds1", "release-20250319.0". One that can't be read is an error
// that wraps [tranca.ErrInvalid], and then nothing is known.
func (t *Table) Known(component, version string, log Changelog) ([]tranca.Advisory, error) {
	return t.known(component, version, log, false)
}

// KnownAnywhere is [Table.Known] with the holes that only sandboxes of others
// have; see [Hole].Plain.
func (t *Table) KnownAnywhere(component, version string, log Changelog) ([]tranca.Advisory, error) {
	return t.known(component, version, log, true)
}

func (t *Table) known(component, text string, log Changelog, plain bool) ([]tranca.Advisory, error) {
	if !slices.Contains(t.Components(), component) {
		return nil, nil
	}
	v, err := parseVersion(text)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", component, err)
	}
	patched := log.about(v)
	var found []tranca.Advisory
	for i := range t.holes {
		h := &t.holes[i]
		if h.Component != component || h.Plain && !plain || !h.affects(v) {
			continue
		}
		a := tranca.Advisory{
			ID: h.ID, Component: component, Version: text,
			FixedIn: strings.Join(h.Fixed, ", "), Needs: h.Needs,
		}
		if patched && log.mended[h.ID] {
			a.Patched = log.source
		}
		found = append(found, a)
	}
	return found, nil
}

// Find returns the row of a hole.
func (t *Table) Find(component, id string) (Hole, bool) {
	for i := range t.holes {
		if t.holes[i].Component == component && t.holes[i].ID == id {
			return t.holes[i], true
		}
	}
	return Hole{}, false
}

// Holes returns all rows.
func (t *Table) Holes() []Hole { return slices.Clone(t.holes) }
