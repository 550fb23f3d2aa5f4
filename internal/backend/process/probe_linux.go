package process

import (
	"context"
	"fmt"
	"os"
	"strconv"
	"strings"

	"tranca"
	"tranca/internal/linux/cgroup"
	"tranca/internal/linux/landlock"
	"tranca/internal/linux/seccomp"
)

// Probe boots a trial sandbox and reads back what the host's control groups
// did. See [tranca.Backend].
func (b *Backend) Probe(ctx context.Context) (tranca.Report, error) {
	if err := b.enter(); err != nil {
		return tranca.Report{}, err
	}
	defer b.live.Done()
	report := b.host.report
	if err := tooOld(); err != nil {
		return report, err
	}
	trial, err := b.boot(ctx, trialPolicy())
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
func (b *Backend) Report() tranca.Report { return b.host.report }

// tooOld refuses kernels before the oldest that the mechanisms are known on.
func tooOld() error {
	if !kernelOlder(5, 15) {
		return nil
	}
	return &tranca.RefusalError{Backend: Name, Unavailable: true, Problems: []tranca.Problem{{
		Item: tranca.ItemIsolation, Asked: "Linux 5.15 or later",
		Missing: "this kernel is " + kernelRelease(), Mend: "update the kernel",
	}}}
}

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

// guarantees lists what this host gives. What every boot puts in place, or
// else fails, is held; the rest depends on what was found.
func (h *hostState) guarantees() []tranca.Guarantee {
	held := func(item tranca.Item, mechanism string) tranca.Guarantee {
		return tranca.Guarantee{Item: item, Held: true, Mechanism: mechanism}
	}
	return []tranca.Guarantee{
		held(tranca.ItemIsolation, "namespaces: user, mount, pid, network, ipc, uts, cgroup"),
		held(tranca.ItemFiles, "own root by pivot_root: read-only binds of a minimal host tree, fresh /proc, /dev and /tmp"),
		held(tranca.ItemMounts, h.mountMechanism()),
		{Item: tranca.ItemMountDisk, Missing: "nothing bounds what is written to a host folder", Mend: "say `disk: unbounded` for the mount, or mount it read-only"},
		held(tranca.ItemProtect, "read-only binds over existing files; new ones are reported as changes"),
		held(tranca.ItemProcesses, "own pid namespace, with its own init, inside that of the guest agent"),
		held(tranca.ItemIPC, "own ipc namespace"),
		held(tranca.ItemNetwork, "own network namespace with nothing but loopback"),
		h.userGuarantee(),
		held(tranca.ItemPrivileges, "no capability in any set, no_new_privs, nosuid mounts"),
		held(tranca.ItemSyscalls, "seccomp allowlist for every ABI"),
		h.landlockGuarantee(),
		held(tranca.ItemDevices, "own /dev with null, zero, full, random, urandom, tty; all mounts nodev"),
		held(tranca.ItemEnvironment, "own environment for each program; the agent starts with none"),
		held(tranca.ItemHostname, "own uts namespace"),
		held(tranca.ItemLifetime, "parent death signal, end of the stream, pid namespace"),
		held(tranca.ItemWall, "monotonic clock of the supervisor, then kill of the tree"),
		h.cpuTimeGuarantee(),
		h.feature(tranca.ItemCPUs, h.support.CPU),
		h.feature(tranca.ItemMemory, h.support.Memory),
		h.pidsGuarantee(),
		held(tranca.ItemOpenFiles, "RLIMIT_NOFILE"),
		held(tranca.ItemFileSize, "RLIMIT_FSIZE"),
		held(tranca.ItemDisk, "size of the tmpfs that holds /work, /tmp and /dev/shm"),
		held(tranca.ItemInodes, "nr_inodes of that tmpfs"),
		held(tranca.ItemOutput, "the supervisor keeps the first bytes of each stream and drains the rest"),
	}
}

// feature turns a finding about control groups into a guarantee. What an
// ordinary user lacks is all mended by one command.
func (h *hostState) feature(item tranca.Item, f cgroup.Feature) tranca.Guarantee {
	mend := f.Mend
	if !h.root && mend != "" {
		mend = setupCommand
	}
	return tranca.Guarantee{Item: item, Held: f.Held, Mechanism: f.Mechanism, Missing: f.Missing, Mend: mend}
}

// setupCommand makes the host changes that need root, once.
const setupCommand = "sudo tranca setup"

func (h *hostState) mountMechanism() string {
	if h.root {
		return "binds by descriptor, owners mapped by idmapped mounts"
	}
	return "binds by descriptor; the code runs as the caller's own user where there are mounts"
}

func (h *hostState) userGuarantee() tranca.Guarantee {
	g := tranca.Guarantee{Item: tranca.ItemUser, Held: h.ids != nil}
	if h.ids != nil {
		g.Mechanism = "own uid and gid on the host for each sandbox, locked among all tranca processes"
		return g
	}
	g.Missing, g.Mend = h.idsMissing, h.idsMend
	if g.Mend != "" {
		g.Mend = setupCommand
	}
	return g
}

func (h *hostState) landlockGuarantee() tranca.Guarantee {
	abi, err := landlock.ABI()
	if err != nil {
		return tranca.Guarantee{
			Item: tranca.ItemLandlock, Missing: err.Error(),
			Mend: "boot with lsm=landlock,… on the kernel's command line, or waive it: waive: [landlock]",
		}
	}
	return tranca.Guarantee{Item: tranca.ItemLandlock, Held: true, Mechanism: landlock.Statement(landlock.Config{}, abi)}
}

// cpuTimeGuarantee needs a group that counts; without one only each process
// has a bound.
func (h *hostState) cpuTimeGuarantee() tranca.Guarantee {
	g := h.feature(tranca.ItemCPUTime, h.support.CPUTime)
	if g.Held {
		g.Mechanism += ", watched by the supervisor"
	}
	return g
}

// pidsGuarantee falls to the user namespace's own count of processes, which
// the kernel keeps for each user in it.
func (h *hostState) pidsGuarantee() tranca.Guarantee {
	g := h.feature(tranca.ItemPIDs, h.support.PIDs)
	if !g.Held && !h.root {
		return tranca.Guarantee{Item: tranca.ItemPIDs, Held: true, Mechanism: "RLIMIT_NPROC, counted in the sandbox's own user namespace"}
	}
	return g
}

func (h *hostState) facts() map[string]string {
	f := map[string]string{
		"kernel":       kernelRelease(),
		"cgroup":       h.support.Version,
		"user id":      strconv.Itoa(os.Geteuid()),
		"landlock ABI": "none",
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
		if v := sysctl(key); v != "" {
			f[name] = v
		}
	}
	return f
}
