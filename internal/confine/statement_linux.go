package confine

import (
	"strings"

	"tranca"
)

// Statement says how each item of the policy is enforced by this plan, in the
// words of what the backend guarantees on this host.
func (h *Host) Statement(report *tranca.Report, pl *Plan) []tranca.Enforcement {
	var out []tranca.Enforcement
	for _, item := range tranca.Items() {
		g := report.Find(item)
		e := tranca.Enforcement{Item: item, Mechanism: g.Mechanism, Status: tranca.StatusEnforced}
		switch {
		case item == tranca.ItemMounts || item == tranca.ItemProtect || item == tranca.ItemMountDisk:
			if len(pl.Policy.Mounts) == 0 {
				continue
			}
			e.Mechanism, e.Status = mountStatement(item, pl, e.Mechanism)
		case item == tranca.ItemUser && h.SharesUser(pl.Policy) && g.Held:
			e.Status = tranca.StatusWaived
			e.Mechanism = "the code runs as the caller's own user, in namespaces of its own: so it may use what the operator mounted"
		case !g.Held && pl.Policy.Waives(item):
			e.Status, e.Mechanism = tranca.StatusWaived, weaker(item, g.Missing)
		}
		if item == tranca.ItemFiles && pl.Boot.Image != "" {
			e.Mechanism = strings.Replace(e.Mechanism, "a minimal host tree", "the image's tree", 1)
		}
		if pl.Policy.Limits.Disk.Backing == tranca.BackingFile {
			e.Mechanism = onDisk(item, e.Mechanism)
		}
		out = append(out, e)
	}
	return out
}

// onDisk says what bounds a writable space on disk.
func onDisk(item tranca.Item, mechanism string) string {
	switch item {
	case tranca.ItemDisk:
		return "size of an ext4 in an unnamed file on disk that holds /work, /tmp and /dev/shm"
	case tranca.ItemInodes:
		return "inode count of that ext4"
	}
	return mechanism
}

// weaker says what still stands of a waived item.
func weaker(item tranca.Item, missing string) string {
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

func mountStatement(item tranca.Item, pl *Plan, mechanism string) (string, tranca.Status) {
	var rw, cow []string
	for i := range pl.Policy.Mounts {
		switch m := &pl.Policy.Mounts[i]; {
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
