package process

import (
	"context"
	"fmt"
	"os"
	"strconv"
	"strings"

	"tranca"
	"tranca/internal/confine"
	"tranca/internal/linux/landlock"
	"tranca/internal/linux/seccomp"
)

// Probe boots a trial sandbox and reads back what the host's control groups
// did. See [tranca.Backend].
func (b *Backend) Probe(ctx context.Context) (tranca.Report, error) {
	if err := b.life.Enter(Name); err != nil {
		return tranca.Report{}, err
	}
	defer b.life.Leave()
	report := b.report
	if err := confine.TooOld(Name); err != nil {
		return report, err
	}
	trial, err := b.boot(ctx, &tranca.Spec{Policy: *trialPolicy()}, nil)
	if err != nil {
		return report, err
	}
	// Also when the caller has gone: nothing of the trial may stay.
	if err := trial.Close(context.WithoutCancel(ctx)); err != nil {
		return report, fmt.Errorf("%w: trial sandbox: %w", tranca.ErrUnavailable, err)
	}
	return report, nil
}

// Report says what was found when the backend was made. See [tranca.Reporter].
func (b *Backend) Report() tranca.Report { return b.report }

// trialPolicy is the least that can be booted.
func trialPolicy() *tranca.Policy {
	return &tranca.Policy{
		Floor: tranca.LevelProcess, Image: "host", Hostname: "sandbox", Workdir: "/work",
		Network: tranca.NetworkNone, User: tranca.User{Name: "user", UID: 1000, GID: 1000},
		Waive: tranca.Waivable(),
		Limits: tranca.Limits{
			Memory: 64 << 20, Processes: 16, MilliCPUs: 1000, OpenFiles: 64, FileSize: 1 << 20,
			CPUTime: 1e9, Wall: 1e9,
			Disk: tranca.Disk{Size: 1 << 20, Inodes: 64, Backing: tranca.BackingMemory},
		},
	}
}

// findings says what a host gives.
func findings(h *confine.Host) tranca.Report {
	r := tranca.Report{Backend: Name, Level: tranca.LevelProcess, Guarantees: guarantees(h), Facts: facts(h)}
	if h.SweepFault != "" {
		r.Facts["sweep"] = h.SweepFault
	}
	return r
}

// guarantees lists what this host gives. What every boot puts in place, or
// else fails, is held; the rest depends on what was found.
func guarantees(h *confine.Host) []tranca.Guarantee {
	held := func(item tranca.Item, mechanism string) tranca.Guarantee {
		return tranca.Guarantee{Item: item, Held: true, Mechanism: mechanism}
	}
	return []tranca.Guarantee{
		held(tranca.ItemIsolation, "namespaces: user, mount, pid, network, ipc, uts, cgroup"),
		held(tranca.ItemFiles, "own root by pivot_root: read-only binds of a minimal host tree, fresh /proc, /dev and /tmp"),
		held(tranca.ItemMounts, h.MountMechanism()),
		{Item: tranca.ItemMountDisk, Missing: "nothing bounds what is written to a host folder", Mend: "say `disk: unbounded` for the mount, or mount it read-only"},
		held(tranca.ItemProtect, "read-only binds over existing files; new ones are reported as changes"),
		held(tranca.ItemProcesses, "own pid namespace, with its own init, inside that of the guest agent"),
		held(tranca.ItemIPC, "own ipc namespace"),
		held(tranca.ItemNetwork, "own network namespace with nothing but loopback"),
		h.UserGuarantee(),
		held(tranca.ItemPrivileges, "no capability in any set, no_new_privs, nosuid mounts"),
		held(tranca.ItemSyscalls, "seccomp allowlist for every ABI"),
		landlockGuarantee(),
		held(tranca.ItemDevices, "own /dev with null, zero, full, random, urandom, tty; all mounts nodev"),
		held(tranca.ItemEnvironment, "own environment for each program; the agent starts with none"),
		held(tranca.ItemHostname, "own uts namespace"),
		held(tranca.ItemLifetime, "parent death signal, end of the stream, pid namespace"),
		held(tranca.ItemWall, "monotonic clock of the supervisor, then kill of the tree"),
		h.CPUTimeGuarantee(),
		h.Feature(tranca.ItemCPUs, h.Support.CPU),
		h.Feature(tranca.ItemMemory, h.Support.Memory),
		pidsGuarantee(h),
		held(tranca.ItemOpenFiles, "RLIMIT_NOFILE"),
		held(tranca.ItemFileSize, "RLIMIT_FSIZE"),
		held(tranca.ItemDisk, "size of the tmpfs that holds /work, /tmp and /dev/shm"),
		held(tranca.ItemInodes, "nr_inodes of that tmpfs"),
		held(tranca.ItemOutput, "the supervisor keeps the first bytes of each stream and drains the rest"),
	}
}

func landlockGuarantee() tranca.Guarantee {
	abi, err := landlock.ABI()
	if err != nil {
		return tranca.Guarantee{
			Item: tranca.ItemLandlock, Missing: err.Error(),
			Mend: "boot with lsm=landlock,… on the kernel's command line, or waive it: waive: [landlock]",
		}
	}
	return tranca.Guarantee{Item: tranca.ItemLandlock, Held: true, Mechanism: landlock.Statement(landlock.Config{}, abi)}
}

// pidsGuarantee falls to the user namespace's own count of processes, which
// the kernel keeps for each user in it.
func pidsGuarantee(h *confine.Host) tranca.Guarantee {
	g := h.Feature(tranca.ItemPIDs, h.Support.PIDs)
	if !g.Held && !h.Root {
		return tranca.Guarantee{Item: tranca.ItemPIDs, Held: true, Mechanism: "RLIMIT_NPROC, counted in the sandbox's own user namespace"}
	}
	return g
}

func facts(h *confine.Host) map[string]string {
	f := map[string]string{
		"kernel":       confine.KernelRelease(),
		"cgroup":       h.Support.Version,
		"user id":      strconv.Itoa(os.Geteuid()),
		"landlock ABI": "none",

		tranca.FactMounts: confine.MountModes,
		tranca.FactRoots:  "host, image",
	}
	if abi, err := landlock.ABI(); err == nil {
		f["landlock ABI"] = strconv.Itoa(abi)
		if lacks := landlock.Lacks(abi); len(lacks) > 0 {
			f["landlock lacks"] = strings.Join(lacks, ", ")
		}
	}
	if prog, err := seccomp.Compile(seccomp.Profile{}); err == nil {
		f["seccomp filter"] = strconv.Itoa(len(prog)) + " instructions"
	}
	for name, key := range map[string]string{
		"user namespaces":                      "user/max_user_namespaces",
		"unprivileged user namespaces":         "kernel/unprivileged_userns_clone",
		"AppArmor restricts user namespaces":   "kernel/apparmor_restrict_unprivileged_userns",
		"kernel.yama.ptrace_scope":             "kernel/yama/ptrace_scope",
		"kernel.unprivileged_bpf_disabled":     "kernel/unprivileged_bpf_disabled",
		"kernel.io_uring_disabled":             "kernel/io_uring_disabled",
		"memfd without exec (vm.memfd_noexec)": "vm/memfd_noexec",
	} {
		if v := confine.Sysctl(key); v != "" {
			f[name] = v
		}
	}
	return f
}
