package confine

import (
	"errors"
	"os"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"

	"tranca"
)

// A namespace or mount that fails says only "operation not permitted". The
// causes that people meet are known, and each leaves a trace by which it can
// be told; the trace is only looked at after the thing itself has failed.

// explain turns a failed boot into a problem that a person can mend.
func explain(err error, root bool) tranca.Problem {
	p := tranca.Problem{
		Item:    tranca.ItemIsolation,
		Asked:   "a process in namespaces of its own",
		Missing: "the sandbox could not be built: " + err.Error(),
	}
	switch {
	case errors.Is(err, unix.ENOSPC) && Sysctl("user/max_user_namespaces") == "0":
		p.Missing = "user namespaces are switched off (user.max_user_namespaces is 0)"
		p.Mend = asRoot(root, "sysctl user.max_user_namespaces=10000")
	case errors.Is(err, unix.ENOSPC):
		p.Missing = "no more namespaces may be made (a limit of user.max_*_namespaces, or too many nested ones)"
		p.Mend = asRoot(root, "sysctl user.max_user_namespaces=10000")
	case errors.Is(err, unix.EINVAL) && isWSL1():
		p.Missing = "WSL 1 has no Linux kernel, so no namespaces"
		p.Mend = "in PowerShell: wsl --set-version <distribution> 2"
	case !isPermission(err):
	case !root && Sysctl("kernel/apparmor_restrict_unprivileged_userns") == "1":
		p.Missing = "AppArmor lets only named programs use user namespaces (kernel.apparmor_restrict_unprivileged_userns is 1)"
		p.Mend = SetupCommand
	case !root && Sysctl("kernel/unprivileged_userns_clone") == "0":
		p.Missing = "only root may make user namespaces (kernel.unprivileged_userns_clone is 0)"
		p.Mend = "sudo sysctl kernel.unprivileged_userns_clone=1"
	case inContainer():
		p.Missing = "the container that tranca runs in may not make namespaces or mounts (" + err.Error() + ")"
		p.Mend = "start that container with --security-opt seccomp=unconfined --security-opt apparmor=unconfined --security-opt systempaths=unconfined --cap-add SYS_ADMIN"
	}
	return p
}

func isPermission(err error) bool {
	return errors.Is(err, unix.EPERM) || errors.Is(err, unix.EACCES)
}

func asRoot(root bool, command string) string {
	if root {
		return command
	}
	return "sudo " + command
}

// Sysctl returns a value below /proc/sys, or "" where there is none.
func Sysctl(name string) string {
	b, err := os.ReadFile("/proc/sys/" + name)
	if err != nil {
		return ""
	}
	return strings.TrimSpace(string(b))
}

// KernelRelease is what uname says.
func KernelRelease() string { return Sysctl("kernel/osrelease") }

// KernelOlder compares the release's first two numbers.
func KernelOlder(major, minor int) bool {
	parts := strings.SplitN(KernelRelease(), ".", 3)
	if len(parts) < 2 {
		return false
	}
	a, err1 := strconv.Atoi(parts[0])
	b, err2 := strconv.Atoi(strings.TrimRight(parts[1], "-+abcdefghijklmnopqrstuvwxyz"))
	if err1 != nil || err2 != nil {
		return false
	}
	return a < major || (a == major && b < minor)
}

// TooOld refuses kernels before the oldest that the mechanisms are known on.
func TooOld(backend string) error {
	if !KernelOlder(5, 15) {
		return nil
	}
	return &tranca.RefusalError{Backend: backend, Unavailable: true, Problems: []tranca.Problem{{
		Item: tranca.ItemIsolation, Asked: "Linux 5.15 or later",
		Missing: "this kernel is " + KernelRelease(), Mend: "update the kernel",
	}}}
}

func isWSL1() bool {
	r := KernelRelease()
	return strings.Contains(r, "Microsoft") && !strings.Contains(r, "WSL2")
}

func inContainer() bool {
	for _, f := range []string{"/.dockerenv", "/run/.containerenv"} {
		if _, err := os.Stat(f); err == nil {
			return true
		}
	}
	return false
}
