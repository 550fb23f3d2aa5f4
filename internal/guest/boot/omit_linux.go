package boot

import (
	"errors"
	"io"
	"os"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"tranca/internal/guest/bootspec"
	"tranca/internal/linux/mount"
)

// What an agent does otherwise where it is told to leave something out; see
// [bootspec.Omission].

// keptCaps are those that programs keep: most that the boot has, in namespaces
// of the sandbox's own, and one where there are none and more would be the
// host's.
func keptCaps(spec *bootspec.Spec) uint64 {
	switch {
	case spec.Insulate: // of which it has all in its own namespace
		return agentCaps | 1<<unix.CAP_SYS_ADMIN
	case spec.Contained:
		return agentCaps
	case spec.Plain:
		return 1 << unix.CAP_NET_ADMIN
	}
	return agentCaps | 1<<unix.CAP_SYS_ADMIN | 1<<unix.CAP_NET_ADMIN | 1<<unix.CAP_CHOWN |
		1<<unix.CAP_DAC_OVERRIDE | 1<<unix.CAP_DAC_READ_SEARCH | 1<<unix.CAP_FOWNER
}

// foundProc is the /proc that the agent found, where the code shall have that.
func foundProc(spec *bootspec.Spec) (mount.Tree, error) {
	none := mount.FromFD(-1)
	if !spec.Omit.Has(bootspec.Processes) {
		return none, nil
	}
	m, err := mount.Clone(unix.AT_FDCWD, "/proc", true)
	if err != nil {
		return none, err
	}
	return m, m.Set(mount.ReadOnly | mount.NoSUID | mount.NoDev | mount.NoExec)
}

// watchThreads lets the launcher find what it has to end where no namespace ends
// it: programs that outlive their parents become its children. Its own /proc has
// to be in sight.
func (l *launcher) watchThreads() (err error) {
	if !l.spec.Plain && !l.spec.Omit.Has(bootspec.Processes) {
		return nil
	}
	if err := unix.Prctl(unix.PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0); err != nil {
		return os.NewSyscallError("subreaper", err)
	}
	l.threads, err = os.Open("/proc/self/task")
	return err
}

// ends reports whether the agent itself ends what it has started, because no
// namespace ends with it.
func (l *launcher) ends() bool { return l.threads != nil }

// killOwn kills what is left below this process, and leaves the reaping to who
// waits for it. A kill of everything would reach further than the sandbox.
func (l *launcher) killOwn() error {
	for range killRounds {
		alive := false
		for _, pid := range l.children() {
			if isZombie(pid) {
				continue
			}
			alive = true
			killWithGroup(pid)
		}
		if !alive {
			return nil
		}
		time.Sleep(time.Millisecond)
	}
	return errors.New("programs do not die")
}

// isZombie reports whether a child only waits for its parent, or is gone.
func isZombie(pid int) bool {
	f, err := os.Open("/proc/" + strconv.Itoa(pid) + "/stat")
	if err != nil {
		return errors.Is(err, unix.ENOENT)
	}
	defer f.Close()
	text, _ := io.ReadAll(io.LimitReader(f, 4096))
	// The name before it can hold anything.
	rest := string(text[strings.LastIndexByte(string(text), ')')+1:])
	return strings.HasPrefix(rest, " Z")
}
