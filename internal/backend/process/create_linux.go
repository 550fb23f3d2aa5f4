package process

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
	"tranca/internal/backend/process/bootspec"
	"tranca/internal/linux/cgroup"
	"tranca/internal/linux/cleanup"
	"tranca/internal/linux/forkexec"
	"tranca/internal/linux/mount"
)

// boot makes one sandbox. On error nothing of it is left.
func (b *Backend) boot(ctx context.Context, p *tranca.Policy) (*box, error) {
	pl, err := b.newPlan(p)
	if err != nil {
		return nil, err
	}
	var cu cleanup.Stack
	defer cu.Clean()
	m := &box{
		limits:    p.Limits,
		countsCPU: b.host.support.CPUTime.Held, boundsCPU: b.host.support.CPU.Held,
		limit:   make(chan tranca.Reason, 1),
		begun:   make(chan struct{}),
		closing: make(chan struct{}), closed: make(chan struct{}),
		hit: map[tranca.LimitHit]bool{},
	}
	if err := b.allot(m, pl, &cu); err != nil {
		return nil, err
	}
	if err := b.openMounts(pl, m, &cu); err != nil {
		return nil, err
	}
	if p.Limits.Disk.Backing == tranca.BackingFile {
		space, err := b.fileSpace(ctx, m, pl)
		if err != nil {
			return nil, err
		}
		pl.boot.ScratchFD = 1 // numbered when all descriptors are known
		pl.mountFDs = append(pl.mountFDs, space.FD())
	}
	if err := b.start(ctx, m, pl, &cu); err != nil {
		return nil, err
	}
	m.enforcement = b.statement(pl)
	cu.Release()
	m.watch.Add(1)
	go m.run()
	return m, nil
}

// allot takes user ids and makes the cgroup.
func (b *Backend) allot(m *box, pl *plan, cu *cleanup.Stack) error {
	if b.host.ids != nil {
		block, err := b.host.ids.Acquire()
		if err != nil {
			return fmt.Errorf("user ids: %w", err)
		}
		cu.Add(func() { block.Release() })
		m.block = block
	}
	if b.host.groups == nil {
		return nil
	}
	if m.block != nil {
		pl.cgroups.Owner = &cgroup.Owner{UID: m.block.UID, GID: m.block.GID}
	}
	g, err := b.host.groups.Create(newName(), pl.cgroups)
	if err != nil {
		return fmt.Errorf("cgroup: %w", err)
	}
	cu.Add(func() {
		ctx, cancel := context.WithTimeout(context.Background(), destroyTime)
		defer cancel()
		g.Destroy(ctx)
	})
	m.group = g
	return nil
}

// start forks the agent, maps its users, tells it what to build and takes its
// answer.
func (b *Backend) start(ctx context.Context, m *box, pl *plan, cu *cleanup.Stack) error {
	conn, theirs, err := streamPair()
	if err != nil {
		return err
	}
	defer theirs.Close()
	cu.Add(func() { conn.Close() })
	null, err := os.OpenFile(os.DevNull, os.O_RDWR, 0)
	if err != nil {
		return err
	}
	defer null.Close()
	diagnosis, stderr, err := os.Pipe()
	if err != nil {
		return err
	}
	defer stderr.Close()
	cu.Add(func() { diagnosis.Close() })

	script, err := b.script(m, pl, []*os.File{null, null, stderr, theirs})
	if err != nil {
		return err
	}
	child, err := b.spawner.spawn(script)
	pl.closeMounts()
	if err != nil {
		return b.refusal(err)
	}
	m.agent, m.agentPID, m.stream, m.diagnosis = child, child.PID, conn, diagnosis
	cu.Add(func() {
		kctx, cancel := context.WithTimeout(context.Background(), killTime)
		defer cancel()
		m.killAgent(kctx)
		unix.Close(child.PIDFD)
	})
	if err := b.mapUsers(ctx, m, pl); err != nil {
		return b.refusal(err)
	}
	theirs.Close() // or the end of the agent would not end the stream
	stderr.Close()
	if err := b.converse(ctx, m, pl); err != nil {
		return b.refusal(err)
	}
	return nil
}

// script is what the agent's process does before its exec.
func (b *Backend) script(m *box, pl *plan, files []*os.File) (*forkexec.Script, error) {
	s := forkexec.New(pl.spaces).WithPIDFD()
	fds := make([]int, 0, 16)
	for _, f := range files {
		fds = append(fds, int(f.Fd()))
	}
	if m.group != nil {
		if err := b.enterGroups(s, m, pl, &fds); err != nil {
			return nil, err
		}
	}
	for _, fd := range pl.mountFDs {
		fds = append(fds, fd)
	}
	pl.number(len(fds) - len(pl.mountFDs))
	s.Setsid()
	s.ParentDeathSignal(unix.SIGKILL)
	moved := s.Files(fds, int(b.image.Fd()))
	s.Capabilities(bootCaps)
	s.Ambient(bootCaps)
	s.ExecFD(moved[0], []string{"init"}, nil)
	return s, nil
}

// number tells the boot message at which descriptors the mounts will be.
func (pl *plan) number(first int) {
	i := first
	for j := range pl.boot.Binds {
		if pl.boot.Binds[j].FD != 0 {
			pl.boot.Binds[j].FD = i
			i++
		}
	}
	if pl.boot.ScratchFD != 0 {
		pl.boot.ScratchFD = i
	}
}

func (pl *plan) closeMounts() {
	for _, fd := range pl.mountFDs {
		unix.Close(fd)
	}
	pl.mountFDs = nil
	for _, s := range pl.sources {
		unix.Close(s.fd)
	}
	pl.sources = nil
}

// converse sends the boot message and reads the answer: one line and, with
// "ok", a descriptor of the writable space.
func (b *Backend) converse(ctx context.Context, m *box, pl *plan) error {
	deadline := time.Now().Add(bootTime)
	if d, ok := ctx.Deadline(); ok && d.Before(deadline) {
		deadline = d
	}
	m.stream.SetDeadline(deadline)
	stop := context.AfterFunc(ctx, func() { m.stream.SetDeadline(time.Unix(1, 0)) })
	defer stop()
	body := pl.boot.Marshal()
	if len(body) > bootspec.MaxSize {
		return fmt.Errorf("%w: the policy's mounts make a boot message of %d bytes, at most %d are possible",
			tranca.ErrInvalid, len(body), bootspec.MaxSize)
	}
	msg := binary.BigEndian.AppendUint32(make([]byte, 0, len(body)+4), uint32(len(body)))
	if _, err := m.stream.Write(append(msg, body...)); err != nil {
		return m.bootError(ctx, err)
	}
	line := make([]byte, 2048)
	oob := make([]byte, unix.CmsgSpace(4))
	n, oobn, _, _, err := m.stream.ReadMsgUnix(line, oob)
	if err != nil {
		return m.bootError(ctx, err)
	}
	answer, _, _ := strings.Cut(string(line[:n]), "\n")
	if answer != "ok" {
		return bootFailure(answer)
	}
	if m.scratch, err = receivedFile(oob[:oobn]); err != nil {
		return err
	}
	if !stop() {
		return context.Cause(ctx)
	}
	return m.stream.SetDeadline(time.Time{})
}

// bootError adds what a dead agent said last.
func (b *box) bootError(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	if errors.Is(err, io.EOF) || errors.Is(err, unix.EPIPE) || errors.Is(err, unix.ECONNRESET) {
		err = errors.New("the guest agent died")
	}
	b.diagnosis.SetReadDeadline(time.Now().Add(50 * time.Millisecond))
	said, _ := io.ReadAll(io.LimitReader(b.diagnosis, 4096))
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

// refusal explains an error of building in terms of the host.
func (b *Backend) refusal(err error) error {
	if errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded) || errors.Is(err, tranca.ErrInvalid) {
		return err
	}
	return &tranca.RefusalError{Backend: Name, Unavailable: true, Problems: []tranca.Problem{explain(err, b.host.root)}}
}

// streamPair makes the byte stream: our end as a connection, theirs as a file.
func streamPair() (*net.UnixConn, *os.File, error) {
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

// openMounts opens and checks the policy's mounts and describes them to the
// agent. Root clones them here, with owners mapped to the code's user; an
// unprivileged agent clones them itself, from the path that was checked here.
func (b *Backend) openMounts(pl *plan, m *box, cu *cleanup.Stack) error {
	cu.Add(pl.closeMounts)
	for i := range pl.policy.Mounts {
		pm := &pl.policy.Mounts[i]
		src, err := openSource(pm)
		if err != nil {
			return err
		}
		pl.sources = append(pl.sources, src)
		bind, err := bindOf(pm, src)
		if err != nil {
			return err
		}
		if b.host.root {
			t, err := b.cloneMapped(pm, src, m, pl)
			if err != nil {
				return err
			}
			bind.FD = 1 // numbered when all descriptors are known
			pl.mountFDs = append(pl.mountFDs, t.FD())
		} else {
			bind.Source = pm.Source
		}
		pl.boot.Binds = append(pl.boot.Binds, bind)
	}
	return nil
}

// cloneMapped clones a mount whose owner appears inside as the code's user, so
// that the code can use what the operator mounted, and files that it makes
// belong to that owner outside.
func (b *Backend) cloneMapped(pm *tranca.Mount, src source, m *box, pl *plan) (mount.Tree, error) {
	t, err := mount.Clone(src.fd, "", false)
	if err != nil {
		return t, fmt.Errorf("mount %s: %w", pm.Source, err)
	}
	uid, gid := b.codeIDs(m)
	ns, err := userNamespace([]idMap{{src.owner, uid}}, []idMap{{src.group, gid}})
	if err != nil {
		t.Close()
		return t, fmt.Errorf("mount %s: %w", pm.Source, err)
	}
	defer ns.Close()
	err = t.MapIDs(int(ns.Fd()))
	if err != nil && (pm.Writable || !errors.Is(err, unix.EINVAL)) {
		t.Close()
		return t, &tranca.RefusalError{Backend: Name, Problems: []tranca.Problem{{
			Item: tranca.ItemMounts, Asked: "mount " + pm.Source + " with its owner mapped to the code's user",
			Missing: "the file system there can't map owners (" + err.Error() + ")",
			Mend:    "mount a folder of ext4, xfs, btrfs or tmpfs, or read-only",
		}}}
	}
	// A read-only mount that can't be mapped shows what everybody may read.
	return t, nil
}

// userNamespace makes a user namespace with the given maps, for the one call
// that reads them.
func userNamespace(uids, gids []idMap) (*os.File, error) {
	s := forkexec.New(unix.CLONE_NEWUSER).WithPIDFD()
	s.ParentDeathSignal(unix.SIGKILL)
	c, err := s.Hold()
	if err != nil {
		return nil, err
	}
	defer func() {
		_ = unix.PidfdSendSignal(c.PIDFD, unix.SIGKILL, nil, 0)
		_, _ = unix.Wait4(c.PID, nil, unix.WALL, nil)
		unix.Close(c.PIDFD)
	}()
	if err := writeMaps(c.PID, uids, gids, true); err != nil {
		return nil, err
	}
	return os.Open(fmt.Sprintf("/proc/%d/ns/user", c.PID))
}
