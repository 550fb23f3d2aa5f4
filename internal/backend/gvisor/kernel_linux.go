package gvisor

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"tranca/internal/confine"
	"tranca/internal/guest/bootspec"
	"tranca/internal/guest/sentryspec"
	"tranca/internal/linux/cleanup"
	"tranca/internal/linux/forkexec"
	"tranca/internal/linux/idrange"
)

// sentryID is the Sentry's user and group in a user namespace in which there is
// no other.
const sentryID = 1

// kvmDevice is what the KVM platform needs.
const kvmDevice = "/dev/kvm"

// kernelCaps are what a Sentry has until it has left the host's tree.
const kernelCaps = 1<<unix.CAP_SYS_ADMIN | 1<<unix.CAP_SETUID | 1<<unix.CAP_SETGID | 1<<unix.CAP_SETPCAP

// processEnv is the environment of Sentry and file server. Garbage is collected
// only once they have booted, by which time there is some.
var processEnv = []string{"GOTRACEBACK=single", "GOGC=off"}

// kernel is a Sentry that was started.
type kernel struct {
	child   forkexec.Child
	stream  *net.UnixConn // to the guest agent
	control *net.UnixConn // to the Sentry itself
	// diagnosis is what it writes to standard error, until words reads it.
	diagnosis *os.File
}

// forkKernel starts a Sentry, which waits for its boot message.
func (b *Backend) forkKernel(m *box, pl *plan, connections []*os.File) (*kernel, error) {
	var cu cleanup.Stack
	defer cu.Clean()
	k := &kernel{}
	var theirs [2]*os.File
	var err error
	for i, ours := range []**net.UnixConn{&k.control, &k.stream} {
		if *ours, theirs[i], err = confine.StreamPair(); err != nil {
			return nil, err
		}
		defer theirs[i].Close()
		cu.Add(func() { (*ours).Close() })
	}
	diagnosis, stderr, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	if b.options.DebugLog != "" {
		stderr.Close()
		if stderr, err = os.OpenFile(b.options.DebugLog, os.O_WRONLY|os.O_APPEND|os.O_CREATE, 0o600); err != nil {
			return nil, err
		}
	}
	defer stderr.Close()
	k.diagnosis = diagnosis
	cu.Add(func() { diagnosis.Close() })
	null, err := os.OpenFile(os.DevNull, os.O_RDWR, 0)
	if err != nil {
		return nil, err
	}
	defer null.Close()
	device, err := os.OpenFile(pl.device, os.O_RDWR, 0)
	if err != nil {
		return nil, err
	}
	defer device.Close()
	files := append([]*os.File{null, null, stderr, theirs[0], b.agent, theirs[1], device}, connections...)
	if k.child, err = b.spawner.Spawn(b.kernelScript(m, pl, files)); err != nil {
		return nil, err
	}
	cu.Release()
	return k, nil
}

// kernelScript is what the Sentry's process does before its exec.
func (b *Backend) kernelScript(m *box, pl *plan, files []*os.File) *forkexec.Script {
	s := forkexec.New(pl.spaces).WithPIDFD()
	s.DefaultSignals()
	if m.Group != nil {
		confine.Enter(s, m.Group.Code())
	}
	// Only now: its root is the group in which it is made.
	s.Unshare(unix.CLONE_NEWCGROUP)
	var fds []int
	for _, f := range files {
		fds = append(fds, int(f.Fd()))
	}
	if m.Block != nil {
		for _, lock := range m.Block.Locks() {
			fds = append(fds, int(lock.Fd()))
		}
	}
	s.Setsid()
	if !pl.kernel.Omit.Has(bootspec.End) {
		s.ParentDeathSignal(unix.SIGKILL)
	}
	moved := s.Files(fds, int(b.sentry.Fd()))
	// No core file, and no handler of the host's; see [confine.Rlimits].
	s.Rlimit(unix.RLIMIT_CORE, 1, 1)
	s.Capabilities(kernelCaps)
	s.Ambient(kernelCaps)
	if !pl.kernel.Omit.Has(bootspec.Privileges) {
		s.NoNewPrivileges()
	}
	s.ExecFD(moved[0], []string{sentryspec.Process, sentryspec.KernelCommand}, processEnv)
	return s
}

// tell gives the Sentry its user and boot message and waits until it has
// booted.
func (k *kernel) tell(ctx context.Context, b *Backend, m *box, pl *plan) error {
	if err := b.mapSentry(ctx, m, pl, k.child.PID); err != nil {
		return fmt.Errorf("map users: %w", err)
	}
	deadline := time.Now().Add(confine.BootTime)
	if d, ok := ctx.Deadline(); ok && d.Before(deadline) {
		deadline = d
	}
	if err := k.control.SetDeadline(deadline); err != nil {
		return err
	}
	stop := context.AfterFunc(ctx, k.hurry)
	defer stop()
	if err := pl.kernel.Write(k.control); err != nil {
		return k.bootError(ctx, err)
	}
	var answer [1]byte
	if _, err := io.ReadFull(k.control, answer[:]); err != nil {
		return k.bootError(ctx, err)
	}
	if answer[0] != sentryspec.Booted {
		return errors.New("the Sentry answered something else than that it has booted")
	}
	if !stop() {
		return context.Cause(ctx)
	}
	return k.control.SetDeadline(time.Time{})
}

// hurry ends a wait for the Sentry.
func (k *kernel) hurry() { _ = k.control.SetDeadline(time.Unix(1, 0)) }

// bootError adds what a dead Sentry said last.
func (k *kernel) bootError(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	_ = k.diagnosis.SetReadDeadline(time.Now().Add(100 * time.Millisecond))
	said, _ := io.ReadAll(io.LimitReader(k.diagnosis, wordsKept))
	if said = bytes.TrimSpace(said); len(said) > 0 {
		return fmt.Errorf("it did not boot: %w: %q", err, said)
	}
	return fmt.Errorf("it did not boot: %w", err)
}

// mapSentry gives the Sentry a user of the sandbox's block that neither agent
// nor code nor file server has.
func (b *Backend) mapSentry(ctx context.Context, m *box, pl *plan, pid int) error {
	if b.host.IDs == nil || pl.Callers {
		return confine.WriteMaps(pid,
			[]confine.IDMap{{Inside: sentryID, Outside: uint32(os.Geteuid())}},
			[]confine.IDMap{{Inside: sentryID, Outside: uint32(os.Getegid())}}, false)
	}
	return b.host.IDs.Map(ctx, pid,
		[]idrange.Line{{Inside: sentryID, Outside: m.Block.UID + 2, Count: 1}},
		[]idrange.Line{{Inside: sentryID, Outside: m.Block.GID + 2, Count: 1}})
}

// abandon ends a Sentry that nobody has adopted.
func (k *kernel) abandon() {
	_, _ = k.child.Reap() // kills first; there is nobody to tell
	k.stream.Close()
	k.control.Close()
	k.diagnosis.Close()
}

// wordsKept is how much of a Sentry's last words is kept.
const wordsKept = 8 << 10

// words are what a process has written to standard error: the first of it is
// kept, and the rest read all the same, so that a process that dies with a long
// record is not held up by it.
type words struct {
	mu   sync.Mutex
	said []byte
	done chan struct{}
}

// listen reads until the pipe ends or is closed.
func listen(pipe io.Reader) *words {
	w := &words{done: make(chan struct{})}
	go func() {
		defer close(w.done)
		buf := make([]byte, 4096)
		for {
			n, err := pipe.Read(buf)
			w.mu.Lock()
			w.said = append(w.said, buf[:min(n, wordsKept-len(w.said))]...)
			w.mu.Unlock()
			if err != nil {
				return
			}
		}
	}()
	return w
}

// all returns what was said.
func (w *words) all() string {
	w.mu.Lock()
	defer w.mu.Unlock()
	return string(bytes.TrimSpace(w.said))
}
