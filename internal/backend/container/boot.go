package container

import (
	"bufio"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"tranca"
	"tranca/internal/backend/container/docker"
	"tranca/internal/guest/bootspec"
	"tranca/internal/linux/cleanup"
	"tranca/internal/weaken"
)

// boot makes one sandbox. On error nothing of it is left.
func (b *Backend) boot(ctx context.Context, spec *tranca.Spec) (*box, error) {
	e, err := b.ready(ctx)
	if err != nil {
		return nil, err
	}
	f, err := b.finding(ctx, e, e.runtimeFor(spec.Policy.Runtime))
	if err != nil {
		return nil, err
	}
	if spec.Policy.Floor > f.level {
		return nil, &tranca.RefusalError{Backend: Name, Problems: []tranca.Problem{{
			Item: tranca.ItemIsolation, Asked: "isolation " + spec.Policy.Floor.String() + " or stronger",
			Missing: "runtime " + quote(e.runtimeFor(spec.Policy.Runtime)) + " gives " + f.level.String(),
			Mend:    "name a runtime with a kernel of its own, or choose another backend",
		}}}
	}
	return b.bootBy(ctx, e, spec, f)
}

// bootBy is boot with what is known of the runtime.
func (b *Backend) bootBy(ctx context.Context, e *engine, spec *tranca.Spec, f finding) (*box, error) {
	ctx, cancel := context.WithTimeout(ctx, createTime)
	defer cancel()
	if err := b.accepts(e, &spec.Policy, f); err != nil {
		return nil, err
	}
	img, err := b.resolve(ctx, e, spec)
	if err != nil {
		return nil, err
	}
	var cu cleanup.Stack
	defer cu.Clean()
	pl, err := b.prepare(e, spec, img, f, &cu)
	if err != nil {
		return nil, err
	}
	m := newBox(b, e, pl)
	err = b.start(ctx, m, &cu)
	if errors.Is(err, errAbandoned) {
		cu.Release() // until the engine is done with it
		b.life.Stay()
		go m.abandon()
		return nil, context.Cause(ctx)
	}
	if err != nil {
		return nil, b.explainBoot(ctx, e, pl, err)
	}
	m.enforcement = pl.stated
	cu.Release()
	m.watch.Add(1)
	go m.run()
	return m, nil
}

// prepare makes space and mounts, or has the engine make them, and completes
// what is asked of it.
func (b *Backend) prepare(e *engine, spec *tranca.Spec, img *resolved, f finding, cu *cleanup.Stack) (*plan, error) {
	if err := diskOf(&spec.Policy); err != nil {
		return nil, err
	}
	user, st, err := b.chooseUser(e, spec)
	if err != nil {
		return nil, err
	}
	if st != nil {
		cu.Add(func() { _ = st.giveBack() })
	}
	pl, err := b.newPlan(e, spec, img, user)
	if err != nil {
		return nil, err
	}
	pl.stage, pl.finding = st, f
	if f.kernel == guestKernel {
		pl.underGuestKernel()
	}
	pl.stated = b.statement(e, pl)
	if weaken.Enabled {
		b.takeAwayFirst(e, pl)
	}
	if err := b.addSpace(e, pl); err != nil {
		return nil, err
	}
	pl.coverRoot(e)
	if err := pl.coverVolumes(e); err != nil {
		return nil, err
	}
	if weaken.Enabled {
		b.takeAway(e, pl)
	}
	if b.weaken != nil {
		b.weaken(pl)
	}
	return pl, nil
}

// addSpace makes the writable space and the mounts, here or by the engine.
func (b *Backend) addSpace(e *engine, pl *plan) error {
	if pl.stage == nil {
		pl.engineSpace(e)
		return b.engineMounts(e, pl)
	}
	if err := pl.stage.makeSpace(pl); err != nil {
		return err
	}
	for i := range pl.policy.Mounts {
		if err := pl.stage.makeMount(pl, i); err != nil {
			return err
		}
	}
	return nil
}

// start makes the container, and lets the agent boot when everything about it
// is as it was asked for. Until then no code is in it.
func (b *Backend) start(ctx context.Context, m *box, cu *cleanup.Stack) error {
	e, pl := m.engine, m.plan
	recursive(e, &pl.config)
	go m.create(context.WithoutCancel(ctx))
	select {
	case <-m.created:
	case <-ctx.Done():
		return errAbandoned
	}
	cu.Add(func() { _ = m.outside.close() }) // after what is added next
	// Whether or not the engine got as far as to say so, it may have made it.
	cu.Add(func() { _ = m.removeAll(m.name()) })
	if m.createErr != nil {
		return m.createErr
	}
	id := m.id
	var err error
	checked := make(chan error, 1)
	go func() {
		if pl.unread {
			checked <- nil
			return
		}
		checked <- readBack(ctx, e, pl, id)
	}()
	m.stream, err = e.Attach(ctx, id)
	if err == nil {
		cu.Add(func() { m.stream.Close() })
	}
	if err = errors.Join(<-checked, err); err != nil {
		return err
	}
	if err := e.Start(ctx, id); err != nil {
		return err
	}
	seen := make(chan error, 1)
	go func() { seen <- m.lookFromOutside(ctx) }()
	err = m.converse(ctx)
	outside := <-seen
	if err != nil {
		return err // then there is not much left to be seen from outside
	}
	if outside != nil {
		return outside
	}
	m.outside.settle()
	if pl.stage == nil {
		return nil
	}
	return pl.stage.settled() // the container has its own mounts now
}

// errAbandoned says that the caller has gone while the engine was making the
// container. The engine may go on with it, whoever listens.
var errAbandoned = errors.New("the caller has gone while the container was made")

func (m *box) name() string { return "tranca-" + string(m.plan.id) }

// create asks the engine for the container, to the end: a request that is
// broken off may still make one, after it was looked for in vain.
func (m *box) create(ctx context.Context) {
	defer close(m.created)
	ctx, cancel := context.WithTimeout(ctx, createTime)
	defer cancel()
	m.id, m.createErr = m.engine.Create(ctx, m.name(), &m.plan.config)
}

// abandon takes down what the engine makes for a caller that has gone.
func (m *box) abandon() {
	defer m.backend.life.Leave()
	<-m.created
	_ = m.removeAll(m.name()) // what is left, the next start removes
	if m.plan.stage != nil {
		_ = m.plan.stage.giveBack()
	}
}

// converse sends the boot message and reads the answer, which is one line.
func (m *box) converse(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, bootTime)
	defer cancel()
	stop := context.AfterFunc(ctx, func() { _ = m.stream.SetDeadline(time.Unix(1, 0)) })
	defer stop()
	body := m.plan.boot.Marshal()
	if len(body) > bootspec.MaxSize {
		return fmt.Errorf("%w: the policy's mounts make a boot message of %d bytes, at most %d are possible",
			tranca.ErrInvalid, len(body), bootspec.MaxSize)
	}
	msg := binary.BigEndian.AppendUint32(make([]byte, 0, len(body)+4), uint32(len(body)))
	if _, err := m.stream.Write(append(msg, body...)); err != nil {
		return m.bootError(ctx, err)
	}
	answer, err := readLine(m.stream)
	if err != nil {
		return m.bootError(ctx, err)
	}
	if answer != "ok" {
		return &bootFailure{answer}
	}
	if !stop() {
		return context.Cause(ctx)
	}
	return m.stream.SetDeadline(time.Time{})
}

// maxAnswer bounds the agent's line.
const maxAnswer = 2048

// readLine reads a line and nothing beyond it.
func readLine(r io.Reader) (string, error) {
	var line []byte
	one := make([]byte, 1)
	for len(line) < maxAnswer {
		if _, err := io.ReadFull(r, one); err != nil {
			return "", err
		}
		if one[0] == '\n' {
			return string(line), nil
		}
		line = append(line, one[0])
	}
	return "", bufio.ErrTooLong
}

// bootFailure is what the agent answered instead of "ok".
type bootFailure struct{ said string }

func (f *bootFailure) Error() string { return "guest agent did not boot: " + quote(f.said) }

// bootError adds what the container said last.
func (m *box) bootError(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		err = context.Cause(ctx)
	}
	if said := strings.TrimSpace(m.stream.Said()); said != "" {
		return fmt.Errorf("guest agent did not boot: %w: %s", err, quote(said))
	}
	return fmt.Errorf("guest agent did not boot: %w", err)
}

// explainBoot turns what went wrong into what the operator can mend.
func (b *Backend) explainBoot(ctx context.Context, e *engine, pl *plan, err error) error {
	var r *tranca.RefusalError
	if errors.As(err, &r) || errors.Is(err, tranca.ErrInvalid) || errors.Is(err, context.Canceled) {
		return err
	}
	if ctx.Err() != nil && !errors.Is(err, context.DeadlineExceeded) {
		return context.Cause(ctx)
	}
	p := tranca.Problem{Item: tranca.ItemIsolation, Asked: "a container of " + e.Name, Missing: err.Error()}
	var failed *bootFailure
	var said *docker.Error
	switch {
	case errors.As(err, &failed):
		p.Item, p.Mend = explainAgent(failed.said, pl)
		p.Missing = failed.Error()
	case errors.As(err, &said) && strings.Contains(said.Message, "no space left"):
		p.Item, p.Mend = tranca.ItemDisk, "make room on the disk that holds "+e.Name+"'s data"
	case errors.As(err, &said) && pl.policy.Runtime != "" && strings.Contains(said.Message, pl.policy.Runtime):
		p.Mend = "make " + e.Name + " know the runtime, or leave `runtime` out"
	case errors.As(err, &said):
		p.Mend = "see that `" + strings.ToLower(e.Name) + " run` works with the same options; the message is the engine's"
	default:
		return explain(e.Socket, err)
	}
	return &tranca.RefusalError{Backend: Name, Unavailable: true, Problems: []tranca.Problem{p}}
}

// explainAgent says which item an agent's failure is about, by its first words.
func explainAgent(said string, pl *plan) (tranca.Item, string) {
	switch {
	case strings.HasPrefix(said, "user namespace"):
		return tranca.ItemUser, "allow user namespaces on the engine's host (sysctl user.max_user_namespaces), or waive it: waive: [user]"
	case strings.HasPrefix(said, "landlock"):
		return tranca.ItemLandlock, "boot the engine's host with lsm=landlock,… on the kernel's command line, or waive it: waive: [landlock]"
	case strings.HasPrefix(said, "rights: the system call filter"):
		return tranca.ItemSyscalls, "use an engine and runtime with seccomp"
	case strings.HasPrefix(said, "rights"):
		return tranca.ItemPrivileges, "use an engine that drops capabilities when it is asked to"
	case strings.HasPrefix(said, "root") && pl.stage != nil:
		return tranca.ItemFiles, "use an image in which /work, /tmp, /dev and /proc are no links, and an engine that runs in the same mount namespace as tranca"
	case strings.HasPrefix(said, "root"):
		return tranca.ItemFiles, "use an image in which /work, /tmp, /dev and /proc are no links; else the engine made other mounts than were asked for"
	}
	return tranca.ItemIsolation, ""
}
