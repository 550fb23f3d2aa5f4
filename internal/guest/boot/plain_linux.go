package boot

import (
	"fmt"
	"io"
	"os"
	"strconv"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"tranca/internal/guest/bootspec"
	"tranca/internal/linux/mount"
	"tranca/internal/linux/netns"
)

// enterPlain is the boot of the weaker rung: no root of its own, no further
// namespaces than the network's, the code's user from the start.
func enterPlain(spec *bootspec.Spec) (*launcher, mount.Tree, error) {
	none := mount.FromFD(-1)
	l := &launcher{spec: spec, tasks: make(chan func())}
	// Before the change of root, under which there may be no /proc.
	if err := l.watchThreads(); err != nil {
		return nil, none, fmt.Errorf("launcher: %w", err)
	}
	if err := netns.RaiseLoopback(); err != nil {
		return nil, none, fmt.Errorf("loopback: %w", err)
	}
	if spec.Chroot != "" {
		if err := unix.Chroot(spec.Chroot); err != nil {
			return nil, none, os.NewSyscallError("chroot", err)
		}
		if err := unix.Chdir("/"); err != nil {
			return nil, none, os.NewSyscallError("chdir", err)
		}
	}
	if spec.Omit.Has(bootspec.Privileges) {
		if err := allThreadsKeepCaps(); err != nil {
			return nil, none, err
		}
	}
	if os.Geteuid() == 0 {
		if err := dropTo(int(spec.CodeUID), int(spec.CodeGID)); err != nil {
			return nil, none, fmt.Errorf("user: %w", err)
		}
	}
	if err := settle(spec); err != nil {
		return nil, none, fmt.Errorf("privileges: %w", err)
	}
	return l, none, nil
}

func dropTo(uid, gid int) error {
	if err := syscall.Setgroups(nil); err != nil {
		return os.NewSyscallError("setgroups", err)
	}
	if err := syscall.Setresgid(gid, gid, gid); err != nil {
		return os.NewSyscallError("setresgid", err)
	}
	return os.NewSyscallError("setresuid", syscall.Setresuid(uid, uid, uid))
}

// endAll kills what is left below this process when its host has gone, however
// that went: no namespace does it here. What lost its parent has become a child
// of this process. It gives up after a time, as there is nobody to tell.
func (l *launcher) endAll() {
	for range killRounds {
		for {
			pid, err := unix.Wait4(-1, nil, unix.WNOHANG|unix.WALL, nil)
			if pid <= 0 && err != unix.EINTR {
				break
			}
		}
		children := l.children()
		if len(children) == 0 {
			return
		}
		for _, pid := range children {
			killWithGroup(pid)
		}
		time.Sleep(time.Millisecond)
	}
}

// killWithGroup kills a child and the group that it leads, if any. The group is
// first: its leader's death would free the number.
func killWithGroup(pid int) {
	_ = unix.Kill(-pid, unix.SIGKILL) // most lead no group
	_ = unix.Kill(pid, unix.SIGKILL)  // found again if it lives
}

// children lists the children of this process, zombies included.
func (l *launcher) children() []int {
	if _, err := l.threads.Seek(0, io.SeekStart); err != nil {
		return nil
	}
	names, err := l.threads.Readdirnames(-1)
	if err != nil {
		return nil
	}
	var all []int
	for _, name := range names {
		fd, err := unix.Openat(int(l.threads.Fd()), name+"/children", unix.O_RDONLY|unix.O_CLOEXEC, 0)
		if err != nil {
			continue // the thread has ended
		}
		text, _ := io.ReadAll(fdReader(fd))
		unix.Close(fd)
		for _, word := range strings.Fields(string(text)) {
			if pid, err := strconv.Atoi(word); err == nil {
				all = append(all, pid)
			}
		}
	}
	return all
}
