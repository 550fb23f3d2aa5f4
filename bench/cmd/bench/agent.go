package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"

	"tranca"
	"tranca/internal/bench/sample"
	"tranca/internal/guest/host"
	"tranca/internal/machine"
)

// agent times the guest agent alone, without the namespaces and mounts around
// it: from the call that starts it to its first answered request.
func (o *options) agent(ctx context.Context, rep *report) error {
	dir, err := os.MkdirTemp("", "tranca-bench-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	program := filepath.Join(dir, "agentstart")
	build := exec.CommandContext(ctx, "go", "build", "-ldflags", "-s -w", "-o", program, "./bench/cmd/agentstart")
	if out, err := build.CombinedOutput(); err != nil {
		return fmt.Errorf("building the agent: %w\n%s", err, out)
	}
	const name = "guest agent, exec to first answer"
	var sb tranca.Sandbox
	end := func(ctx context.Context) error { // of the round before, which isn't timed
		if sb == nil {
			return nil
		}
		return sb.Close(ctx)
	}
	times, err := sample.Interleave(ctx, []sample.Subject{{
		Name: name, Prepare: end, Do: func(ctx context.Context) (err error) {
			sb, err = firstAnswer(ctx, program)
			return err
		},
	}}, o.warm, o.rounds, o.seed)
	if err = errors.Join(err, end(ctx)); err != nil {
		return err
	}
	rep.Times[name] = times[name]
	rep.Rows = append(rep.Rows, row{
		Part: "agent", Name: name, Figure: quantiles(times[name]),
		Value: ms(times[name].Percentile(50)), Target: 3, Unit: "ms",
	})
	return nil
}

// firstAnswer starts an agent and returns it when it has answered once.
func firstAnswer(ctx context.Context, program string) (tranca.Sandbox, error) {
	fds, err := syscall.Socketpair(syscall.AF_UNIX, syscall.SOCK_STREAM|syscall.SOCK_CLOEXEC|syscall.SOCK_NONBLOCK, 0)
	if err != nil {
		return nil, err
	}
	ours, theirs := os.NewFile(uintptr(fds[0]), "ours"), os.NewFile(uintptr(fds[1]), "theirs")
	conn, err := net.FileConn(ours)
	ours.Close()
	if err != nil {
		return nil, errors.Join(err, theirs.Close())
	}
	cmd := exec.CommandContext(context.WithoutCancel(ctx), program)
	cmd.ExtraFiles = []*os.File{theirs}
	cmd.Env = []string{"GOMAXPROCS=1"} // as in a sandbox
	err = cmd.Start()
	theirs.Close()
	if err != nil {
		return nil, errors.Join(err, conn.Close())
	}
	sb, err := host.New(&bareMachine{conn: conn, cmd: cmd}, tranca.Spec{ID: benchID(0)})
	if err != nil {
		return nil, err
	}
	ping, ok := tranca.As[host.Pinger](sb)
	if !ok {
		return sb, errors.New("the sandbox can't ping its agent")
	}
	return sb, ping.Ping(ctx)
}

// bareMachine is a machine that confines nothing: the agent as a child.
type bareMachine struct {
	conn net.Conn
	cmd  *exec.Cmd
}

func (m *bareMachine) Stream() io.ReadWriteCloser        { return m.conn }
func (m *bareMachine) Begin(context.Context) error       { return nil }
func (m *bareMachine) Limit() <-chan tranca.Reason       { return nil }
func (m *bareMachine) Kill(context.Context) error        { return nil }
func (m *bareMachine) Enforcement() []tranca.Enforcement { return nil }

func (m *bareMachine) Observe(context.Context) (machine.Observation, error) {
	return machine.Observation{}, nil
}

func (m *bareMachine) Close(context.Context) error {
	m.conn.Close()
	return m.cmd.Wait()
}
