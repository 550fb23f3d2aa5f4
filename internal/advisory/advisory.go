// Package advisory knows which versions of runtimes, engines and other parts of
// a boundary have known holes, and looks at what the distribution did about
// them: it often mends a hole without a new version, so that comparing numbers
// alone would say the wrong thing.
//
// The table is data ([Components], table.go) and has to be kept up. A version
// that says nothing bad here is not thereby a good one.
package advisory

import (
	"fmt"
	"slices"
	"strings"

	"tranca"
)

// Components returns the names of the parts of which holes are known.
func Components() []string {
	var names []string
	for _, h := range table {
		if !slices.Contains(names, h.component) {
			names = append(names, h.component)
		}
	}
	return names
}

// Known returns the known holes of a version of a component, in the order of
// the table, those that the distribution's changelog names as mended with
// [tranca.Advisory].Patched. The changelog counts only where it is about this
// version; the zero value is about none. Of a component that is not in
// [Components] nothing is known.
//
// The version is what the component says of itself, with or without what a
// distribution adds: "1.1.5+ds1", "1:20.10.24+dfsg1-1+deb12u1", "v2.0.4",
// "1.0.0~rc93+ds1", "release-20250319.0". One that can't be read is an error
// that wraps [tranca.ErrInvalid], and then nothing is known.
func Known(component, version string, log Changelog) ([]tranca.Advisory, error) {
	if !slices.Contains(Components(), component) {
		return nil, nil
	}
	v, err := parseVersion(version)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", component, err)
	}
	patched := log.about(v)
	var found []tranca.Advisory
	for _, h := range table {
		if h.component != component || !h.affects(v) {
			continue
		}
		a := tranca.Advisory{
			ID: h.id, Component: component, Version: version,
			FixedIn: strings.Join(h.fixed, ", "), Needs: h.needs,
		}
		if patched && log.mended[h.id] {
			a.Patched = log.source
		}
		found = append(found, a)
	}
	return found, nil
}

// affects reports whether a version has the hole: it is not older than the
// first that has it, and neither as new as the newest mended one nor as the
// mended one of its own line (its first two numbers).
func (h *hole) affects(v version) bool {
	if h.from != "" && v.compare(must(h.from)) < 0 {
		return false
	}
	newest := true
	for i := len(h.fixed) - 1; i >= 0; i-- {
		f := must(h.fixed[i])
		if (newest || f.sameLine(v)) && v.compare(f) >= 0 {
			return false
		}
		newest = false
	}
	return true
}

// must reads a version of the table, which a test reads whole.
func must(s string) version {
	v, err := parseVersion(s)
	if err != nil {
		panic("advisory: table: " + err.Error())
	}
	return v
}
