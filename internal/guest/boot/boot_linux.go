// Package boot is the inner half of the local backends: what the guest agent
// does between its exec and its first request. It builds the root that the
// code will see, gives the code a pid namespace of its own with an init that
// reaps, locks down the thread that will start programs, and drops what the
// agent itself no longer needs.
//
// It runs before any hostile code, in new namespaces that hold nothing else.
package boot

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"os"
	"strconv"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"tranca/internal/guest/agent"
	"tranca/internal/guest/bootspec"
	"tranca/internal/linux/mount"
	"tranca/internal/linux/netns"
	"tranca/internal/linux/seccomp"
)

// Agent capabilities that stay after the boot: to change to the code's user,
// for programs and for files, and to signal it.
const agentCaps = 1<<unix.CAP_SETUID | 1<<unix.CAP_SETGID | 1<<unix.CAP_KILL

// outlives is how long an agent that was told so, and each of its programs, live
// on after the end of its stream.
const outlives = 10 * time.Minute

// Run boots from the given stream descriptor and serves it until it ends. The
// returned error is for the agent's exit status only: the host learns of a
// failed boot from the stream.
func Run(fd int) error {
	spec, err := read(fdReader(fd))
	if err != nil {
		return err
	}
	build := enter
	switch {
	case spec.Plain:
		build = enterPlain
	case spec.Contained:
		build = enterContained
	}
	launcher, scratch, err := build(spec)
	if err != nil {
		return errors.Join(err, reply(fd, err.Error(), -1))
	}
	if err := reply(fd, "ok", scratch.FD()); err != nil {
		return err
	}
	if scratch.FD() >= 0 {
		scratch.Close()
	}
	if err := unix.SetNonblock(fd, true); err != nil {
		return err
	}
	return serve(os.NewFile(uintptr(fd), "stream"), spec, launcher)
}

// RunStdio is Run in a container whose engine gives the agent standard input
// and output as its stream. The boot message must say that it is contained.
func RunStdio() error {
	stream, err := takeStdio()
	if err != nil {
		return err
	}
	spec, err := read(stream)
	if err != nil {
		return err
	}
	if !spec.Contained {
		return errors.New("only a contained agent has its stream there")
	}
	launcher, _, err := enterContained(spec)
	if err != nil {
		_, told := stream.Write(answer(err.Error()))
		return errors.Join(err, told)
	}
	if _, err := stream.Write(answer("ok")); err != nil {
		return err
	}
	return serve(stream, spec, launcher)
}

// serve answers the host until the stream ends. The calling thread forks.
func serve(stream io.ReadWriteCloser, spec *bootspec.Spec, launcher *launcher) (err error) {
	ended := make(chan struct{})
	var outlive time.Duration
	if spec.Omit.Has(bootspec.End) {
		outlive = outlives
	}
	go func() {
		defer close(ended)
		err = agent.Serve(stream, agent.Config{
			Launcher: launcher,
			Env:      spec.Env,
			Path:     spec.Path,
			Workdir:  spec.Workdir,
			FSUID:    spec.CodeUID,
			FSGID:    spec.CodeGID,
			Files:    true,
			Outlive:  outlive,
		})
	}()
	launcher.serve(ended)
	time.Sleep(outlive)
	if launcher.ends() {
		launcher.endAll()
	}
	return err
}

func read(f io.Reader) (*bootspec.Spec, error) {
	var head [4]byte
	if _, err := io.ReadFull(f, head[:]); err != nil {
		return nil, err
	}
	n := binary.BigEndian.Uint32(head[:])
	if n > bootspec.MaxSize {
		return nil, errors.New("boot message is too long")
	}
	body := make([]byte, n)
	if _, err := io.ReadFull(f, body); err != nil {
		return nil, err
	}
	return bootspec.Unmarshal(body)
}

type fdReader int

func (f fdReader) Read(b []byte) (int, error) {
	for {
		n, err := unix.Read(int(f), b)
		if err == unix.EINTR {
			continue
		}
		if err != nil {
			return 0, err
		}
		if n == 0 {
			return 0, io.EOF
		}
		return n, nil
	}
}

// reply answers the boot message with one line, and the descriptor of the
// writable space, by which the host watches how full it is.
func reply(fd int, line string, scratch int) error {
	var rights []byte
	if scratch >= 0 {
		rights = unix.UnixRights(scratch)
	}
	return unix.Sendmsg(fd, answer(line), rights, nil, 0)
}

func answer(line string) []byte {
	return []byte(line[:min(len(line), 1000)] + "\n")
}

func enter(spec *bootspec.Spec) (*launcher, mount.Tree, error) {
	none := mount.FromFD(-1)
	image, err := openImage(spec)
	if err != nil {
		return nil, none, fmt.Errorf("image: %w", err)
	}
	if err := becomeRoot(spec); err != nil {
		return nil, none, fmt.Errorf("user: %w", err)
	}
	if err := openGroups(spec); err != nil {
		return nil, none, fmt.Errorf("cgroup: %w", err)
	}
	l, err := newLauncher(spec)
	if err != nil {
		return nil, none, fmt.Errorf("launcher: %w", err)
	}
	if err := l.watchThreads(); err != nil {
		return nil, none, fmt.Errorf("launcher: %w", err)
	}
	if spec.Hostname != "" {
		if err := unix.Sethostname([]byte(spec.Hostname)); err != nil {
			return nil, none, fmt.Errorf("hostname: %w", err)
		}
	}
	if err := netns.RaiseLoopback(); err != nil {
		return nil, none, fmt.Errorf("loopback: %w", err)
	}
	scratch, init, err := buildRoot(spec, image)
	if err != nil {
		return nil, none, fmt.Errorf("root: %w", err)
	}
	if err := l.restrict(init); err != nil {
		return nil, none, fmt.Errorf("launcher: %w", err)
	}
	if err := settle(spec); err != nil {
		return nil, none, fmt.Errorf("privileges: %w", err)
	}
	return l, scratch, nil
}

// becomeRoot changes to the agent's user. Until the host had mapped it the
// process was nobody, and kept its capabilities by the ambient set.
func becomeRoot(spec *bootspec.Spec) error {
	id := int(spec.AgentUID)
	if id != 0 {
		return nil // the only user that is mapped; it is that one already
	}
	if err := syscall.Setresgid(0, 0, 0); err != nil {
		return os.NewSyscallError("setresgid", err)
	}
	// Mostly the spawner has given them up already.
	groups, err := syscall.Getgroups()
	if err != nil || len(groups) > 0 {
		if err := syscall.Setgroups(nil); err != nil {
			return os.NewSyscallError("setgroups", err)
		}
	}
	return os.NewSyscallError("setresuid", syscall.Setresuid(0, 0, 0))
}

// settle drops, on all threads, what only the boot needed, and keeps the
// code's user from looking into the agent. Each act on all threads stops the
// agent for a while, so what can be done before its exec is: it already has no
// new privileges.
func settle(spec *bootspec.Spec) error {
	if err := allThreadsCaps(remaining(spec)); err != nil {
		return err
	}
	if !spec.Plain && !(spec.Contained && len(spec.AgentFilter) == 0) {
		prog, err := seccomp.FromBytes(spec.AgentFilter)
		if err != nil {
			return err
		}
		if err := seccomp.InstallAll(prog); err != nil {
			return err
		}
	}
	return os.NewSyscallError("prctl", unix.Prctl(unix.PR_SET_DUMPABLE, 0, 0, 0, 0))
}

// remaining are the capabilities that the agent keeps: to be another user
// where there is one, and under cgroup v2 what each program needs at its birth
// to leave the agent's cgroup namespace. What CAP_SYS_ADMIN is good for beside
// that, the agent's filter takes.
func remaining(spec *bootspec.Spec) uint64 {
	if spec.Omit.Has(bootspec.Privileges) && !spec.Contained {
		return keptCaps(spec)
	}
	var caps uint64
	if spec.AgentUID == 0 {
		caps = agentCaps
	}
	if bornInGroup(spec) {
		caps |= 1 << unix.CAP_SYS_ADMIN
	}
	return caps
}

// bornInGroup reports whether programs start in a cgroup of version 2. The
// kernel then wants that the namespace of their parent holds both its group
// and theirs, so that theirs can't be made ahead.
func bornInGroup(spec *bootspec.Spec) bool { return spec.CodeCgroupFD != 0 && !spec.Contained }

// openGroups gets the ways into the code's cgroup that only the agent can open,
// while the host's tree is still in sight.
func openGroups(spec *bootspec.Spec) error {
	if spec.ReopenTasks {
		for i, fd := range spec.TaskFDs {
			again, err := unix.Open("/proc/self/fd/"+strconv.Itoa(fd), unix.O_WRONLY|unix.O_CLOEXEC, 0)
			if err != nil {
				return os.NewSyscallError("open tasks again", err)
			}
			unix.Close(fd)
			spec.TaskFDs[i] = again
		}
	}
	if spec.CodeCgroup == "" {
		return nil
	}
	// A mount of its own, that hangs nowhere: ".." does not lead out of it.
	t, err := mount.Clone(unix.AT_FDCWD, spec.CodeCgroup, false)
	if err != nil {
		return err
	}
	spec.CodeCgroupFD = t.FD()
	return nil
}
