package container

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"tranca"
	"tranca/internal/confine"
)

// reportTime bounds what a report takes that nobody waits for by a context.
const reportTime = 10 * time.Second

// Report says what the engine tells of itself, without a trial: Create looks at
// each container once more. See [tranca.Reporter].
func (b *Backend) Report() tranca.Report {
	ctx, cancel := context.WithTimeout(context.Background(), reportTime)
	defer cancel()
	e, err := b.ready(ctx)
	if err != nil {
		return unusable(err)
	}
	return b.reportOf(e)
}

// unusable is the report of a backend without an engine.
func unusable(err error) tranca.Report {
	g := tranca.Guarantee{Item: tranca.ItemIsolation, Missing: err.Error()}
	var r *tranca.RefusalError
	if errors.As(err, &r) {
		g.Missing, g.Mend = r.Problems[0].Missing, r.Problems[0].Mend
	}
	return tranca.Report{Backend: Name, Level: tranca.LevelContainer, Guarantees: []tranca.Guarantee{g}}
}

func (b *Backend) reportOf(e *engine) tranca.Report {
	return tranca.Report{
		Backend: Name, Level: tranca.LevelContainer, Guarantees: b.guarantees(e), Facts: b.facts(e),
		Advisories: e.advisories(""),
	}
}

// reportBy is the report for a runtime, with what a trial of it has shown.
func (b *Backend) reportBy(e *engine, runtime string, f finding) tranca.Report {
	r := tranca.Report{
		Backend: Name, Level: f.level, Guarantees: b.guaranteesBy(e, runtime, f), Facts: b.facts(e),
		Advisories: e.advisories(runtime),
	}
	if runtime != "" {
		r.Facts[tranca.FactRuntime] = runtime
	}
	if f.how != "" {
		r.Facts["trial of the runtime"] = f.how
	}
	return r
}

// holds reports whether the engine guarantees an item, whatever the runtime.
func (b *Backend) holds(e *engine, item tranca.Item) bool {
	r := tranca.Report{Guarantees: b.guarantees(e)}
	return r.Holds(item)
}

// guaranteesBy are the guarantees by a runtime, with what a trial of it has
// shown.
func (b *Backend) guaranteesBy(e *engine, runtime string, f finding) []tranca.Guarantee {
	all := b.guarantees(e)
	for i := range all {
		all[i] = f.adjust(all[i], e.runtimeFor(runtime))
	}
	return all
}

// adjust says of a guarantee what is other by a runtime with a kernel of its
// own.
func (f finding) adjust(g tranca.Guarantee, runtime string) tranca.Guarantee {
	if g.Item == tranca.ItemIsolation {
		g.Mechanism = "runtime " + runtime + ": " + f.level.String()
	}
	if f.kernel == hostKernel || !g.Held {
		return g
	}
	switch g.Item {
	case tranca.ItemUser:
		g.Mechanism = "users of the runtime's own kernel"
	case tranca.ItemSyscalls:
		g.Mechanism = "the runtime's own kernel answers system calls; tranca's filter inside"
	case tranca.ItemLandlock:
		g.Mechanism = "not needed: the code uses no kernel of the host's"
	case tranca.ItemMounts:
		g.Mechanism = "mounts made by tranca by descriptor, owners mapped, and shown to the engine, for the runtime's own kernel"
	case tranca.ItemProtect:
		g.Mechanism = "a writable folder with paths to protect is refused; new ones are reported as changes"
	case tranca.ItemMemory:
		g.Mechanism += ", over code and kernel together, with the kernel's measured need added"
	case tranca.ItemPIDs:
		g.Held, g.Mechanism = false, ""
		g.Missing = "the runtime's own kernel counts processes loosely when many are made at once; of the host's tasks it can have no more than 64 and 4 for each"
		g.Mend = "choose --backend gvisor, which counts them, or waive it: waive: [limits.processes]"
	}
	return g
}

func (b *Backend) guarantees(e *engine) []tranca.Guarantee {
	held := func(item tranca.Item, mechanism string) tranca.Guarantee {
		return tranca.Guarantee{Item: item, Held: true, Mechanism: mechanism}
	}
	return []tranca.Guarantee{
		held(tranca.ItemIsolation, "container of "+e.Name+" "+e.Version+", runtime "+e.defaultRuntime()),
		held(tranca.ItemFiles, "the image's tree as a read-only root; nothing of the host's"),
		held(tranca.ItemMounts, b.mountMechanism(e)),
		{
			Item: tranca.ItemMountDisk, Missing: "nothing bounds what is written to a host folder",
			Mend: "say `disk: unbounded` for the mount, or mount it read-only",
		},
		held(tranca.ItemProtect, "read-only binds over existing files; new ones are reported as changes"),
		held(tranca.ItemProcesses, "own pid namespace"),
		held(tranca.ItemIPC, "own ipc namespace"),
		held(tranca.ItemNetwork, "network mode none: nothing but loopback"),
		held(tranca.ItemUser, userMechanism(e)),
		held(tranca.ItemPrivileges, "no capability in any set, no_new_privs, nosuid mounts"),
		held(tranca.ItemSyscalls, "the engine's seccomp filter, from tranca's allowlist, and beneath it tranca's own"),
		held(tranca.ItemLandlock, "Landlock, set by the guest agent"),
		held(tranca.ItemDevices, "the engine's /dev with null, zero, full, random, urandom, tty; no device cgroup entry beyond; mounts nodev"),
		held(tranca.ItemEnvironment, "own environment for each program: the image's variables beneath the policy's"),
		held(tranca.ItemHostname, "own uts namespace"),
		held(tranca.ItemLifetime, "the container ends with its stream, which ends with this process; what is left is removed by the next start"),
		held(tranca.ItemWall, "monotonic clock of the supervisor, then kill of the tree"),
		e.group(tranca.ItemCPUTime, e.info.CPUCfsQuota || e.info.MemoryLimit, "CPU time of the container's group, watched by the supervisor"),
		e.group(tranca.ItemCPUs, e.info.CPUCfsQuota, "CPU quota of the container's group"),
		e.group(tranca.ItemMemory, e.info.MemoryLimit, "memory limit of the container's group, swap included"),
		e.processGuarantee(),
		held(tranca.ItemOpenFiles, "RLIMIT_NOFILE"),
		held(tranca.ItemFileSize, "RLIMIT_FSIZE"),
		held(tranca.ItemDisk, b.spaceMechanism(e)),
		b.inodeGuarantee(e),
		held(tranca.ItemOutput, "the supervisor keeps the first bytes of each stream and drains the rest; the engine logs none"),
	}
}

func (b *Backend) mountMechanism(e *engine) string {
	if b.stages(e) {
		return "mounts made by tranca by descriptor, owners mapped, and shown to the engine; looked at again by the guest agent"
	}
	return "binds of the engine; the guest agent compares what it finds there with what was opened here"
}

// mountModes is [tranca.FactMounts]: the engine makes no overlay by itself of
// which the writable space would be known.
func (b *Backend) mountModes(e *engine) string {
	if b.stages(e) {
		return confine.MountModes
	}
	return "ro, rw"
}

func userMechanism(e *engine) string {
	if e.mapsUsers() {
		return "user namespace of the engine, and in it one for the code, with a user that no other sandbox has"
	}
	return "user namespace for the code; on the host it has a user that nobody else has"
}

func (b *Backend) spaceMechanism(e *engine) string {
	if b.stages(e) {
		return "size of the tmpfs that holds /work, /tmp and /dev/shm"
	}
	return "sizes of the three tmpfs at /work (10/16), /tmp (5/16) and /dev/shm (1/16), which sum up to it"
}

func (b *Backend) inodeGuarantee(e *engine) tranca.Guarantee {
	g := tranca.Guarantee{Item: tranca.ItemInodes, Held: true, Mechanism: "nr_inodes of that tmpfs"}
	switch {
	case b.stages(e):
	case e.podman():
		g.Held, g.Mechanism = false, ""
		g.Missing = "Podman gives a tmpfs no bound on inodes"
		g.Mend = "run as root, or waive it: waive: [limits.disk.inodes]; they count as memory all the same"
	default:
		g.Mechanism = "nr_inodes of the three tmpfs, which sum up to it"
	}
	return g
}

// group is a guarantee that a controller of the control groups gives, if the
// engine may use it.
func (e *engine) group(item tranca.Item, has bool, mechanism string) tranca.Guarantee {
	g := tranca.Guarantee{Item: item, Held: has, Mechanism: "cgroup v" + e.info.CgroupVersion + ": " + mechanism}
	if e.info.CgroupDriver == "none" || e.rootless() && e.info.CgroupVersion == "1" {
		g.Held = false
	}
	if g.Held {
		return g
	}
	g.Mechanism = ""
	g.Missing = e.Name + " may not use the controller of the control groups here"
	switch {
	case e.rootless() && e.info.CgroupVersion == "1":
		g.Missing = "without root, " + e.Name + " has no control groups of version 1"
		g.Mend = "boot with systemd.unified_cgroup_hierarchy=1, or waive it: waive: [" + string(item) + "]"
	case e.rootless():
		g.Mend = "delegate the controller to the user (systemd: Delegate=yes for user@.service), or waive it: waive: [" + string(item) + "]"
	default:
		g.Mend = "enable the controller on the kernel's command line, or waive it: waive: [" + string(item) + "]"
	}
	return g
}

// boundsTasks reports whether a control group bounds processes.
func (e *engine) boundsTasks() bool {
	return e.group(tranca.ItemPIDs, e.info.PidsLimit, "").Held
}

// processGuarantee falls to the code's own user namespace, in which the kernel
// counts the processes of its user.
func (e *engine) processGuarantee() tranca.Guarantee {
	if e.boundsTasks() {
		return e.group(tranca.ItemPIDs, true, "pids limit of the container's group")
	}
	return tranca.Guarantee{Item: tranca.ItemPIDs, Held: true, Mechanism: "RLIMIT_NPROC, counted in the code's own user namespace"}
}

func (e *engine) defaultRuntime() string {
	if e.info.DefaultRuntime == "" {
		return "unknown"
	}
	return e.info.DefaultRuntime
}

func (b *Backend) facts(e *engine) map[string]string {
	runtimes := make([]string, 0, len(e.info.Runtimes))
	for name := range e.info.Runtimes {
		runtimes = append(runtimes, name)
	}
	slices.Sort(runtimes)
	roots := "image"
	if b.options.Image != "" {
		roots = "host, image" // where a policy names none, it is that one
	}
	return map[string]string{
		tranca.FactRoots:    roots,
		tranca.FactMounts:   b.mountModes(e),
		tranca.FactRuntime:  e.defaultRuntime(),
		"engine":            e.Name + " " + e.Version,
		"engine socket":     e.Socket,
		"versions":          e.versions(""),
		"known holes as of": e.known.String(),
		"engine API":        e.APIVersion,
		"runtimes":          strings.Join(runtimes, ", "),
		"storage driver":    e.info.Driver,
		"cgroup":            "v" + e.info.CgroupVersion + ", " + e.info.CgroupDriver,
		"security options":  strings.Join(e.info.SecurityOptions, "; "),
		"rootless":          fmt.Sprint(e.rootless()),
		"users mapped":      fmt.Sprint(e.mapsUsers()),
	}
}

// accepts refuses what the engine can't enforce and the operator did not waive.
// An engine of ours has checked that before; a boundary does not rely on it.
func (b *Backend) accepts(e *engine, p *tranca.Policy, f finding) error {
	r := tranca.Report{Guarantees: b.guaranteesBy(e, p.Runtime, f)}
	problems := confine.Unheld(&r, p)
	for i := range problems {
		problems[i].Waivable = slices.Contains(tranca.Waivable(), problems[i].Item)
	}
	for i := range p.Mounts {
		if p.Mounts[i].Cow && !b.stages(e) {
			problems = append(problems, tranca.Problem{
				Item: tranca.ItemMounts, Asked: "mount " + p.Mounts[i].Target + " in mode cow",
				Missing: "tranca makes such mounts beside the engine, which it can as root alone, on the engine's own host, with ids in /etc/subuid for root or tranca, and where the engine maps no users",
				Mend:    "choose --backend process or gvisor, or mount read-only",
			})
		}
	}
	if problems == nil {
		return nil
	}
	return &tranca.RefusalError{Backend: Name, Problems: problems}
}

// statement says how each item of the policy is enforced in this sandbox.
func (b *Backend) statement(e *engine, pl *plan) []tranca.Enforcement {
	r := tranca.Report{Guarantees: b.guaranteesBy(e, pl.policy.Runtime, pl.finding)}
	var out []tranca.Enforcement
	for _, item := range tranca.Items() {
		g := r.Find(item)
		s := tranca.Enforcement{Item: item, Mechanism: g.Mechanism, Status: tranca.StatusEnforced}
		switch {
		case item == tranca.ItemMounts || item == tranca.ItemProtect || item == tranca.ItemMountDisk:
			if len(pl.policy.Mounts) == 0 {
				continue
			}
			s.Mechanism, s.Status = confine.MountStatement(item, pl.policy.Mounts, g.Mechanism)
		case item == tranca.ItemUser && pl.user.callers:
			s.Status, s.Mechanism = tranca.StatusWaived, pl.user.who()
		case item == tranca.ItemUser && !pl.guest:
			s.Mechanism = pl.user.who()
		case item == tranca.ItemLandlock && pl.boot.Landlock < 0 && !pl.guest:
			s.Status, s.Mechanism = tranca.StatusWaived, "not enforced"
		case item == tranca.ItemIPC && !unixSockets(pl.policy):
			s.Mechanism += "; no unix sockets, since a mount may hold the host's"
		case !g.Held && pl.policy.Waives(item):
			s.Status, s.Mechanism = tranca.StatusWaived, weaker(item, g.Missing)
		}
		out = append(out, s)
	}
	return out
}

// weaker says what still stands of a waived item.
func weaker(item tranca.Item, missing string) string {
	if item == tranca.ItemPIDs {
		return "pids.max inside and a bound on the host's tasks (" + missing + ")"
	}
	return confine.Weaker(item, missing)
}
