package confine

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"tranca"
	"tranca/internal/guest/bootspec"
	"tranca/internal/linux/cleanup"
	"tranca/internal/linux/forkexec"
)

// Agent is a guest agent that has answered its boot message.
type Agent struct {
	Child     forkexec.Child
	Stream    *net.UnixConn
	Diagnosis *os.File // what it writes to stderr
	Scratch   *os.File // the writable space; nil where the agent made none
}

// StartAgent forks an agent by a script over its first descriptors, maps its
// users, tells it what to build and takes its answer. On error nothing of it is
// left.
func StartAgent(ctx context.Context, spawn func(*forkexec.Script) (forkexec.Child, error), spec *bootspec.Spec,
	script func(files []*os.File) (*forkexec.Script, error),
	mapUsers func(ctx context.Context, pid int) error,
) (*Agent, error) {
	var cu cleanup.Stack
	defer cu.Clean()
	a := &Agent{}
	stream, theirs, err := StreamPair()
	if err != nil {
		return nil, err
	}
	cu.Add(func() { stream.Close() })
	// Their ends are closed before the talk begins: or the agent's end would
	// not end them.
	defer theirs.Close()
	diagnosis, stderr, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	cu.Add(func() { diagnosis.Close() })
	defer stderr.Close()
	null, err := os.OpenFile(os.DevNull, os.O_RDWR, 0)
	if err != nil {
		return nil, err
	}
	defer null.Close()
	s, err := script([]*os.File{null, null, stderr, theirs})
	if err != nil {
		return nil, err
	}
	if a.Child, err = spawn(s); err != nil {
		return nil, err
	}
	cu.Add(func() { a.Child.Reap() })
	a.Stream, a.Diagnosis = stream, diagnosis
	if err := mapUsers(ctx, a.Child.PID); err != nil {
		return nil, err
	}
	theirs.Close()
	stderr.Close()
	if err := a.Converse(ctx, spec); err != nil {
		return nil, err
	}
	cu.Release()
	return a, nil
}

// Abandon ends an agent that nobody has adopted.
func (a *Agent) Abandon() {
	_, _ = a.Child.Reap() // kills first; there is nobody to tell
	a.Stream.Close()
	a.Diagnosis.Close()
	if a.Scratch != nil {
		a.Scratch.Close()
	}
}

// Converse sends the boot message and reads the answer: one line and, with
// "ok", a descriptor of the writable space.
func (a *Agent) Converse(ctx context.Context, spec *bootspec.Spec) error {
	deadline := time.Now().Add(BootTime)
	if d, ok := ctx.Deadline(); ok && d.Before(deadline) {
		deadline = d
	}
	if err := a.Stream.SetDeadline(deadline); err != nil {
		return err
	}
	stop := context.AfterFunc(ctx, func() { _ = a.Stream.SetDeadline(time.Unix(1, 0)) })
	defer stop()
	body := spec.Marshal()
	if len(body) > bootspec.MaxSize {
		return fmt.Errorf("%w: the policy's mounts make a boot message of %d bytes, at most %d are possible",
			tranca.ErrInvalid, len(body), bootspec.MaxSize)
	}
	msg := binary.BigEndian.AppendUint32(make([]byte, 0, len(body)+4), uint32(len(body)))
	if _, err := a.Stream.Write(append(msg, body...)); err != nil {
		return a.bootError(ctx, err)
	}
	line := make([]byte, 2048)
	oob := make([]byte, unix.CmsgSpace(4))
	n, oobn, _, _, err := a.Stream.ReadMsgUnix(line, oob)
	if err != nil {
		return a.bootError(ctx, err)
	}
	if answer, _, _ := strings.Cut(string(line[:n]), "\n"); answer != "ok" {
		return bootFailure(answer)
	}
	if !spec.Plain && !spec.Contained {
		if a.Scratch, err = receivedFile(oob[:oobn]); err != nil {
			return err
		}
	}
	if !stop() {
		return context.Cause(ctx)
	}
	return a.Stream.SetDeadline(time.Time{})
}

// bootError adds what a dead agent said last.
func (a *Agent) bootError(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	if errors.Is(err, io.EOF) || errors.Is(err, unix.EPIPE) || errors.Is(err, unix.ECONNRESET) {
		err = errors.New("the guest agent died")
	}
	_ = a.Diagnosis.SetReadDeadline(time.Now().Add(50 * time.Millisecond))
	said, _ := io.ReadAll(io.LimitReader(a.Diagnosis, 4096))
	if said = bytes.TrimSpace(said); len(said) > 0 {
		return fmt.Errorf("guest agent did not boot: %w: %q", err, said)
	}
	return fmt.Errorf("guest agent did not boot: %w", err)
}

// bootFailure is what the agent answered. It keeps the errno's meaning, so
// that a cause can be recognised.
func bootFailure(answer string) error {
	for _, e := range []unix.Errno{unix.EPERM, unix.EACCES, unix.ENOSPC, unix.EINVAL, unix.ENOENT, unix.ENOSYS} {
		if strings.HasSuffix(answer, e.Error()) {
			return fmt.Errorf("guest agent did not boot: %s%w", strings.TrimSuffix(answer, e.Error()), e)
		}
	}
	return fmt.Errorf("guest agent did not boot: %q", answer)
}

func receivedFile(oob []byte) (*os.File, error) {
	msgs, err := unix.ParseSocketControlMessage(oob)
	if err != nil || len(msgs) != 1 {
		return nil, fmt.Errorf("%w: no descriptor of the writable space", tranca.ErrProtocol)
	}
	fds, err := unix.ParseUnixRights(&msgs[0])
	if err != nil || len(fds) != 1 {
		return nil, fmt.Errorf("%w: no descriptor of the writable space", tranca.ErrProtocol)
	}
	unix.CloseOnExec(fds[0])
	return os.NewFile(uintptr(fds[0]), "writable space"), nil
}

// Refusal explains an error of building in terms of the host.
func Refusal(backend string, root bool, err error) error {
	if errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded) || errors.Is(err, tranca.ErrInvalid) {
		return err
	}
	if strings.Contains(err.Error(), bootspec.CowFailed) {
		return cowRefusal(backend, err)
	}
	return &tranca.RefusalError{Backend: backend, Unavailable: true, Problems: []tranca.Problem{explain(err, root)}}
}

// StreamPair makes the byte stream: our end as a connection, theirs as a file.
func StreamPair() (*net.UnixConn, *os.File, error) {
	fds, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return nil, nil, os.NewSyscallError("socketpair", err)
	}
	ours := os.NewFile(uintptr(fds[0]), "stream")
	theirs := os.NewFile(uintptr(fds[1]), "stream")
	defer ours.Close()
	c, err := net.FileConn(ours)
	if err != nil {
		theirs.Close()
		return nil, nil, err
	}
	return c.(*net.UnixConn), theirs, nil
}
