package confine

import (
	"tranca"
	"tranca/internal/linux/cgroup"
)

// Feature turns a finding about control groups into a guarantee. What an
// ordinary user lacks is all mended by one command.
func (h *Host) Feature(item tranca.Item, f cgroup.Feature) tranca.Guarantee {
	mend := f.Mend
	if !h.Root && mend != "" {
		mend = SetupCommand
	}
	return tranca.Guarantee{Item: item, Held: f.Held, Mechanism: f.Mechanism, Missing: f.Missing, Mend: mend}
}

// SetupCommand makes the host changes that need root, once.
const SetupCommand = "sudo tranca setup"

// MountMechanism says how mounts get in.
func (h *Host) MountMechanism() string {
	if h.Root {
		return "binds by descriptor, owners mapped by idmapped mounts"
	}
	return "binds by descriptor; the code runs as the caller's own user where there are mounts"
}

// UserGuarantee says whose the code is on the host.
func (h *Host) UserGuarantee() tranca.Guarantee {
	g := tranca.Guarantee{Item: tranca.ItemUser, Held: h.IDs != nil}
	if h.IDs != nil {
		g.Mechanism = "own uid and gid on the host for each sandbox, locked among all tranca processes"
		return g
	}
	g.Missing, g.Mend = h.IDsMissing, h.IDsMend
	if g.Mend != "" {
		g.Mend = SetupCommand
	}
	return g
}

// CPUTimeGuarantee needs a group that counts; without one only each process
// has a bound.
func (h *Host) CPUTimeGuarantee() tranca.Guarantee {
	g := h.Feature(tranca.ItemCPUTime, h.Support.CPUTime)
	if g.Held {
		g.Mechanism += ", watched by the supervisor"
	}
	return g
}

// Accepts refuses what this host can't enforce and the operator did not
// waive. An engine has checked that before; a boundary does not rely on it.
func Accepts(report *tranca.Report, p *tranca.Policy) error {
	problems := Unheld(report, p)
	if problems == nil {
		return nil
	}
	return &tranca.RefusalError{Backend: report.Backend, Problems: problems}
}
