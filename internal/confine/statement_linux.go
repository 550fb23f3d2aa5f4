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
			e.Mechanism, e.Status = MountStatement(item, pl.Policy.Mounts, e.Mechanism)
		case item == tranca.ItemUser && h.SharesUser(pl.Policy) && g.Held:
			e.Status = tranca.StatusWaived
			e.Mechanism = "the code runs as the caller's own user, in namespaces of its own: so it may use what the operator mounted"
		case !g.Held && pl.Policy.Waives(item):
			e.Status, e.Mechanism = tranca.StatusWaived, Weaker(item, g.Missing)
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
