package policy

import (
	"fmt"
	"slices"
	"strconv"

	"tranca"
)

// FactLandlockABI is the key in a report's facts under which a backend that
// uses Landlock says the host's ABI, as a decimal number.
const FactLandlockABI = "landlock ABI"

// subprocessItems is what the rung "subprocess" promises. It shares the
// host's files, processes and kernel, so everything else is missing by its
// nature and not by this host's.
var subprocessItems = []tranca.Item{
	tranca.ItemIsolation, tranca.ItemNetwork, tranca.ItemEnvironment,
	tranca.ItemWall, tranca.ItemCPUTime, tranca.ItemOpenFiles,
	tranca.ItemFileSize, tranca.ItemOutput,
}

// Required returns the items that a boundary of a level must hold, whatever
// the policy says, in the order of [tranca.Items]. Mounts add some:
// [RequiredFor]. A value that is no level must hold everything.
//
//   - subprocess: isolation, network, environment, wall and CPU time, open
//     files, file size, output. The level can only be had by naming it.
//   - process: every item but those that only mounts need.
//   - container and above: the same without Landlock, which guards a host
//     kernel's files, and which those may or may not use.
func Required(level tranca.Level) []tranca.Item {
	if level == tranca.LevelSubprocess {
		return slices.Clone(subprocessItems)
	}
	return slices.DeleteFunc(tranca.Items(), func(item tranca.Item) bool {
		switch item {
		case tranca.ItemMountDisk, tranca.ItemProtect:
			return true
		case tranca.ItemLandlock:
			return level >= tranca.LevelContainer
		}
		return false
	})
}

// RequiredFor returns the items that a boundary of a level must hold for a
// policy, waived ones included, in the order of [tranca.Items]. Beyond
// [Required]: mounts need ItemMounts at every level, writable ones ItemProtect
// where their protect list holds anything, and ItemMountDisk where the policy
// does not say "disk: unbounded".
func RequiredFor(p tranca.Policy, level tranca.Level) []tranca.Item {
	need := Required(level)
	for _, m := range p.Mounts {
		need = append(need, tranca.ItemMounts)
		if m.Writable && !m.DiskUnbounded {
			need = append(need, tranca.ItemMountDisk)
		}
		if m.Writable && len(m.Protect) > 0 {
			need = append(need, tranca.ItemProtect)
		}
	}
	return slices.DeleteFunc(tranca.Items(), func(item tranca.Item) bool {
		return !slices.Contains(need, item)
	})
}

// Check returns what a policy needs and a backend does not hold on this host,
// waived items aside, in the order of [tranca.Items]. No problem means that
// the backend may be used.
func Check(p tranca.Policy, r tranca.Report) []tranca.Problem {
	problems := checkPlace(p, r)
	for _, item := range RequiredFor(p, r.Level) {
		if p.Waives(item) {
			continue
		}
		if g := r.Find(item); !g.Held {
			problems = append(problems, tranca.Problem{
				Item: item, Asked: Asked(p, item), Missing: missing(g), Mend: g.Mend,
				Waivable: slices.Contains(tranca.Waivable(), item),
			})
		} else if item == tranca.ItemLandlock {
			problems = append(problems, checkABI(p, r)...)
		}
	}
	return problems
}

// checkPlace checks that the backend is the one that is named, and its level
// not below the floor.
func checkPlace(p tranca.Policy, r tranca.Report) []tranca.Problem {
	var problems []tranca.Problem
	if p.Backend != "" && r.Backend != p.Backend {
		problems = append(problems, tranca.Problem{
			Item: tranca.ItemIsolation, Asked: "backend " + p.Backend,
			Missing: "this is backend " + r.Backend,
		})
	}
	if r.Level < p.Floor || r.Level < tranca.LevelSubprocess {
		problems = append(problems, tranca.Problem{
			Item: tranca.ItemIsolation, Asked: Asked(p, tranca.ItemIsolation),
			Missing: fmt.Sprintf("backend %s gives %s, which is below the floor", r.Backend, r.Level),
		})
	}
	return problems
}

// missing never leaves the reader without a reason.
func missing(g tranca.Guarantee) string {
	if g.Missing != "" {
		return g.Missing
	}
	if g.Mechanism != "" {
		return g.Mechanism + " does not work on this host"
	}
	return "this host has no mechanism for it"
}

// checkABI checks the least Landlock ABI. A backend that holds Landlock has
// ABI 1 at least; for more, a report that doesn't say its ABI is refused.
func checkABI(p tranca.Policy, r tranca.Report) []tranca.Problem {
	abi, err := strconv.Atoi(r.Facts[FactLandlockABI])
	if err != nil {
		abi = 1
	}
	if abi >= p.MinLandlockABI {
		return nil
	}
	have := "the host's Landlock has ABI " + strconv.Itoa(abi)
	if err != nil {
		have = "backend " + r.Backend + " does not say which Landlock ABI the host has"
	}
	return []tranca.Problem{{
		Item:    tranca.ItemLandlock,
		Asked:   "landlock ABI " + strconv.Itoa(p.MinLandlockABI) + " or later",
		Missing: have, Mend: "a later kernel, or a lower landlock.min_abi in the policy", Waivable: true,
	}}
}
