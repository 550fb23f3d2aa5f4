package confine

import (
	"strings"

	"tranca"
)

// This file is for every system: what it says holds for whatever confines by a
// kernel of Linux, also where this program only asks for it.

// MountModes are the modes of mounts that a kernel of Linux makes for a sandbox;
// see [tranca.FactMounts].
const MountModes = "ro, rw, cow"

// Unheld are the items that a policy asks for and does not waive, and that a
// report does not hold.
func Unheld(report *tranca.Report, p *tranca.Policy) []tranca.Problem {
	var problems []tranca.Problem
	for _, item := range tranca.Items() {
		if g := report.Find(item); !g.Held && !p.Waives(item) && needs(item, p) {
			problems = append(problems, tranca.Problem{
				Item: item, Asked: string(item), Missing: g.Missing, Mend: g.Mend,
			})
		}
	}
	return problems
}

// needs reports whether a policy asks for an item at all.
func needs(item tranca.Item, p *tranca.Policy) bool {
	switch item {
	case tranca.ItemMounts, tranca.ItemProtect:
		return len(p.Mounts) > 0
	case tranca.ItemMountDisk:
		for i := range p.Mounts {
			if p.Mounts[i].Writable && !p.Mounts[i].DiskUnbounded {
				return true
			}
		}
		return false
	}
	return true
}

// Weaker says what still stands of a waived item.
func Weaker(item tranca.Item, missing string) string {
	switch item {
	case tranca.ItemMemory:
		return "RLIMIT_AS for each process; the tree is not bounded (" + missing + ")"
	case tranca.ItemCPUTime:
		return "RLIMIT_CPU for each process; the tree is not bounded (" + missing + ")"
	case tranca.ItemPIDs:
		return "RLIMIT_NPROC in the sandbox's own user namespace (" + missing + ")"
	case tranca.ItemUser:
		return "the code runs as the caller's own user, in namespaces of its own (" + missing + ")"
	}
	return "not enforced: " + missing
}

// MountStatement says how an item about mounts is enforced, and whether it is, by
// what the policy mounts. The mechanism is what the backend guarantees.
func MountStatement(item tranca.Item, mounts []tranca.Mount, mechanism string) (string, tranca.Status) {
	var rw, cow []string
	for i := range mounts {
		switch m := &mounts[i]; {
		case m.Writable:
			rw = append(rw, m.Target)
		case m.Cow:
			cow = append(cow, m.Target)
		}
	}
	switch {
	case item == tranca.ItemMounts && len(cow) > 0:
		return mechanism + "; overlays for " + strings.Join(cow, ", ") + ", whose folders on the host are mounted read-only", tranca.StatusEnforced
	case item == tranca.ItemMountDisk && len(rw) > 0:
		return "no bound on what is written to " + strings.Join(rw, ", ") + ": the operator said so", tranca.StatusWaived
	case item == tranca.ItemMountDisk && len(cow) > 0:
		return "what is written to " + strings.Join(cow, ", ") + " is in the sandbox's own space, which limits.disk bounds", tranca.StatusEnforced
	case item == tranca.ItemMountDisk:
		return "all mounts are read-only", tranca.StatusEnforced
	case item == tranca.ItemProtect && len(rw)+len(cow) == 0:
		return "all mounts are read-only", tranca.StatusEnforced
	}
	return mechanism, tranca.StatusEnforced
}
