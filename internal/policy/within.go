package policy

import (
	"slices"

	"tranca"
)

// Within reports whether everything that policy a lets code do, policy b lets
// it do too: a is b or narrower. It is written apart from [Narrow], item by
// item, so that each can be tested by the other.
//
// Variables that only a has widen nothing, since the code could set them
// itself; nor does where it starts. Mounts are matched by target.
func Within(a, b tranca.Policy) bool {
	return a.Floor >= b.Floor &&
		(b.Backend == "" || a.Backend == b.Backend) &&
		a.Image == b.Image &&
		a.Runtime == b.Runtime &&
		(a.KnownVulnerabilities == b.KnownVulnerabilities || a.KnownVulnerabilities == tranca.VulnerabilitiesRefuse) &&
		limitsWithin(&a.Limits, &b.Limits) &&
		mountsWithin(a.Mounts, b.Mounts) &&
		envWithin(a.Env, b.Env) &&
		a.User == b.User &&
		a.Hostname == b.Hostname &&
		a.Network == b.Network &&
		a.Chroot == b.Chroot &&
		a.MinLandlockABI >= b.MinLandlockABI &&
		(b.KeepFiles || !a.KeepFiles) &&
		!slices.ContainsFunc(a.Waive, func(i tranca.Item) bool { return !b.Waives(i) })
}

func limitsWithin(a, b *tranca.Limits) bool {
	return a.Wall <= b.Wall &&
		a.CPUTime <= b.CPUTime &&
		a.MilliCPUs <= b.MilliCPUs &&
		a.Memory <= b.Memory &&
		a.Processes <= b.Processes &&
		a.OpenFiles <= b.OpenFiles &&
		a.FileSize <= b.FileSize &&
		a.Disk.Size <= b.Disk.Size &&
		a.Disk.Inodes <= b.Disk.Inodes &&
		a.Disk.Backing == b.Disk.Backing &&
		a.Output.Size <= b.Output.Size &&
		(a.Output.OnExceed == b.Output.OnExceed || a.Output.OnExceed == tranca.ExceedKill)
}

func mountsWithin(a, b []tranca.Mount) bool {
	for _, m := range a {
		at := slices.IndexFunc(b, func(o tranca.Mount) bool { return o.Target == m.Target })
		if at < 0 || !mountWithin(&m, &b[at]) {
			return false
		}
	}
	return true
}

func mountWithin(a, b *tranca.Mount) bool {
	if a.Source != b.Source || (a.Writable && !b.Writable) || (a.DiskUnbounded && !b.DiskUnbounded) {
		return false
	}
	// A copy is less than the files themselves, and more than only to read.
	if a.Cow && !b.Cow && !b.Writable {
		return false
	}
	if slices.ContainsFunc(b.Deny, func(d string) bool { return !slices.Contains(a.Deny, d) }) {
		return false
	}
	// Nothing of a read-only mount needs protection.
	return !(a.Writable || a.Cow) || !slices.ContainsFunc(b.Protect, func(d string) bool { return !slices.Contains(a.Protect, d) })
}

func envWithin(a, b map[string]string) bool {
	for name, value := range b {
		if have, ok := a[name]; !ok || have != value {
			return false
		}
	}
	return true
}
