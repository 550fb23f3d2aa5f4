package boot

import (
	"fmt"
	"os"
	"strconv"

	"golang.org/x/sys/unix"

	"tranca/internal/guest/bootspec"
)

// guestGroups is where a kernel in user space shows its own control groups.
const guestGroups = "/sys/fs/cgroup/"

// makeGuestGroup bounds the code's processes by a control group of the kernel
// that the agent runs under, where that is the sandbox's own: from outside a
// process of the code is none. The agent has a group beside it, and is not
// counted. Programs are born into theirs; it is named "code", by which the
// kernel's other side finds it.
func makeGuestGroup(spec *bootspec.Spec) error {
	if spec.GuestProcesses == 0 {
		return nil
	}
	if _, err := os.Stat(guestGroups + "pids/tasks"); err == nil {
		return makeGuestGroupV1(spec)
	}
	for _, name := range []string{"agent", "code"} {
		if err := os.Mkdir(guestGroups+name, 0o755); err != nil {
			return err
		}
	}
	for _, w := range []struct{ file, value string }{
		// A group with processes of its own can't hand its controllers on.
		{"agent/cgroup.procs", strconv.Itoa(os.Getpid())},
		{"cgroup.subtree_control", "+pids"},
	} {
		if err := os.WriteFile(guestGroups+w.file, []byte(w.value), 0); err != nil {
			return err
		}
	}
	if err := boundProcesses(guestGroups+"code/", spec.GuestProcesses); err != nil {
		return err
	}
	fd, err := unix.Open(guestGroups+"code", unix.O_RDONLY|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	if err != nil {
		return &os.PathError{Op: "open", Path: guestGroups + "code", Err: err}
	}
	spec.CodeCgroupFD = fd
	return nil
}

// makeGuestGroupV1 is makeGuestGroup where a container engine has asked that
// kernel for control groups of version 1.
func makeGuestGroupV1(spec *bootspec.Spec) error {
	const code = guestGroups + "pids/code/"
	if err := os.Mkdir(code, 0o755); err != nil {
		return err
	}
	if err := boundProcesses(code, spec.GuestProcesses); err != nil {
		return err
	}
	fd, err := unix.Open(code+"tasks", unix.O_WRONLY|unix.O_CLOEXEC, 0)
	if err != nil {
		return &os.PathError{Op: "open", Path: code + "tasks", Err: err}
	}
	spec.TaskFDs = append(spec.TaskFDs, fd)
	return nil
}

// boundProcesses sets the limit of a group and sees that it is set.
func boundProcesses(group string, most uint64) error {
	limit := strconv.FormatUint(most, 10)
	if err := os.WriteFile(group+"pids.max", []byte(limit), 0); err != nil {
		return err
	}
	set, err := os.ReadFile(group + "pids.max")
	if err != nil {
		return err
	}
	if string(set) != limit+"\n" {
		return fmt.Errorf("pids.max is %q after %s was written", set, limit)
	}
	return nil
}
