package policy

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

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
// [Required]: mounts need ItemMounts at every level, those of mode rw or cow
// ItemProtect where their protect list holds anything, and those of mode rw
// ItemMountDisk where the policy does not say "disk: unbounded". What is
// written to one of mode cow is in the space of ItemDisk.
func RequiredFor(p tranca.Policy, level tranca.Level) []tranca.Item {
	need := Required(level)
	for _, m := range p.Mounts {
		need = append(need, tranca.ItemMounts)
		if m.Writable && !m.DiskUnbounded {
			need = append(need, tranca.ItemMountDisk)
		}
		if m.Cow {
			need = append(need, tranca.ItemDisk, tranca.ItemInodes)
		}
		if (m.Writable || m.Cow) && len(m.Protect) > 0 {
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
	problems := slices.Concat(checkPlace(p, r), checkAdvisories(p, r), checkForm(p, r))
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
	if have := r.Facts[tranca.FactRuntime]; p.Runtime != "" && have != p.Runtime {
		missing := "backend " + r.Backend + " has no runtimes to choose from"
		if have != "" {
			missing = "backend " + r.Backend + " was tried with the runtime " + have
		}
		problems = append(problems, tranca.Problem{
			Item: tranca.ItemIsolation, Asked: "runtime " + p.Runtime,
			Missing: missing, Mend: "leave runtime out of the policy, or backend: container",
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

// checkAdvisories checks that nothing has a known hole, where the policy
// refuses that.
func checkAdvisories(p tranca.Policy, r tranca.Report) []tranca.Problem {
	if p.KnownVulnerabilities != tranca.VulnerabilitiesRefuse {
		return nil
	}
	var problems []tranca.Problem
	for _, a := range r.Advisories {
		if a.Patched == "" {
			problems = append(problems, tranca.Problem{
				Item: tranca.ItemIsolation, Asked: "known_vulnerabilities refuse", Missing: a.String(),
				Mend: "an update of " + a.Component + " to " + a.FixedIn + " or later, or known_vulnerabilities: warn",
			})
		}
	}
	return problems
}

// checkForm checks that the backend can show the root tree and the modes of
// mounts that the policy names.
func checkForm(p tranca.Policy, r tranca.Report) []tranca.Problem {
	var problems []tranca.Problem
	root, asked := "image", "image "+p.Image
	missing := "backend " + r.Backend + " runs no images here"
	mend := "image: host, or a backend that runs images"
	if p.Image == tranca.ImageHost {
		root, missing = "host", "backend "+r.Backend+" can't show the host's own tree"
		mend = "an image in the policy: `tranca image list` shows what is there, `tranca image build` makes one"
	}
	if !can(r, tranca.FactRoots, "host", root) {
		problems = append(problems, tranca.Problem{Item: tranca.ItemFiles, Asked: asked, Missing: missing, Mend: mend})
	}
	for _, m := range p.Mounts {
		if m.Cow && !can(r, tranca.FactMounts, "ro, rw", "cow") {
			problems = append(problems, tranca.Problem{
				Item: tranca.ItemMounts, Asked: "mount " + clip(m.Target) + " of mode cow",
				Missing: "backend " + r.Backend + " makes no such mounts here", Mend: "mode: ro, or a backend that makes them",
			})
			break
		}
	}
	return problems
}

// can reports whether a list in a report's facts holds a word; otherwise is
// the list where the report has none.
func can(r tranca.Report, fact, otherwise, word string) bool {
	list, said := r.Facts[fact]
	if !said {
		list = otherwise
	}
	return slices.Contains(strings.Split(list, ", "), word)
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
