package hostcheck

import (
	"context"
	"fmt"

	"tranca"
	"tranca/internal/advisory"
)

// version asks a program what it is, and the table what is known about that.
func (c *Check) version(ctx context.Context, h *Host) (finding, []Advisory) {
	if h.Version == nil {
		return finding{unknown: "programs can't be asked here"}, nil
	}
	path, text, err := h.Version(ctx, c.Program)
	if err != nil {
		return finding{unknown: fmt.Sprintf("%s --version: %v", path, err)}, nil
	}
	if path == "" {
		return finding{value: "absent", seen: "no " + c.Program + " is installed"}, nil
	}
	version, ok := advisory.FindVersion(text)
	if !ok {
		return finding{value: "unread", seen: path + " says no version"}, nil
	}
	log := advisory.InstalledLog(h.Root, c.Component, path)
	known, err := h.Holes.KnownAnywhere(c.Component, version, log)
	if err != nil {
		return finding{unknown: err.Error()}, nil
	}
	var holes []Advisory
	open := 0
	for _, k := range known {
		if k.Patched == "" {
			open++
		}
		holes = append(holes, Advisory{Advisory: k})
	}
	f := finding{value: "clean", seen: path + " is " + version + ", of which no hole is known"}
	switch {
	case open > 0:
		f.value = "holes"
		f.seen = fmt.Sprintf("%s is %s; known holes of that version: %d", path, version, len(known))
		if patched := len(known) - open; patched > 0 {
			f.seen += fmt.Sprintf(", mended by the distribution: %d", patched)
		}
	case len(known) > 0:
		f.value = "mended"
		f.seen = fmt.Sprintf("%s is %s; all %d known holes are mended by the distribution", path, version, len(known))
	}
	return f, holes
}

// addBehaviour says beside what versions say what was tried. Other checks have
// to be done by then.
func (h *Host) addBehaviour(all []Result) {
	for i := range all {
		for j := range all[i].Advisories {
			a := &all[i].Advisories[j]
			a.Behaviour, a.Probes = h.Behaviour(a.Advisory, all)
		}
	}
}

// Behaviour says in words what was tried of a known hole, beside what the
// version says, and which hostile probes try it from inside.
func (h *Host) Behaviour(a tranca.Advisory, all []Result) (string, []string) {
	hole, ok := h.Holes.Find(a.Component, a.ID)
	if !ok {
		return "nothing is tried", nil
	}
	switch {
	case hole.Check != "":
		for _, r := range all {
			if r.ID == hole.Check {
				return fmt.Sprintf("%s on the host itself: %s", r.Result, r.Seen), hole.Probes
			}
		}
	case hole.Item != "":
		return h.itemTried(hole), hole.Probes
	}
	return "nothing is tried: it needs " + hole.Needs, hole.Probes
}

// itemTried says whether a trial sandbox held what the hole would break.
func (h *Host) itemTried(hole advisory.Hole) string {
	backend := madeWith(hole.Component)
	for i := range h.Reports {
		if h.Reports[i].Backend != backend {
			continue
		}
		if g := h.Reports[i].Find(hole.Item); g.Held {
			return fmt.Sprintf("%s held in a trial sandbox of %s: %s", hole.Item, backend, g.Mechanism)
		}
		return fmt.Sprintf("%s not held in a trial sandbox of %s", hole.Item, backend)
	}
	return fmt.Sprintf("not tried: no backend that uses %s can be used here", hole.Component)
}

// madeWith is the backend that a component takes part in.
func madeWith(component string) string {
	switch component {
	case advisory.GVisor:
		return "gvisor"
	case advisory.Runc, advisory.Crun, advisory.Containerd, advisory.Docker, advisory.Podman:
		return "container"
	}
	return ""
}
