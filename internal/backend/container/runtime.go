package container

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"tranca"
	"tranca/internal/guest/host"
)

// kernel is whose kernel answers the code, by a runtime.
type kernel int

const (
	hostKernel  kernel = iota // the engine's host's
	guestKernel               // one of the sandbox's own
)

// What a kernel in user space needs itself comes on top of the code's limits:
// the figures are those of package gvisor, where they are measured.
const (
	guestMemory      = 64 << 20
	guestShare       = 16
	guestEachMemory  = 512 << 10
	guestTasks       = 64
	guestTasksOfEach = 4
)

// ordinary are the runtimes that are known to use the host's kernel: they need
// no trial to be given the lowest level.
var ordinary = []string{"runc", "crun", "io.containerd.runc.v2", "youki"}

// finding is what a trial of a runtime has shown.
type finding struct {
	kernel kernel
	level  tranca.Level
	how    string // what was seen
}

// runtimeFor is the runtime that a policy's sandboxes get.
func (e *engine) runtimeFor(policy string) string {
	if policy != "" {
		return policy
	}
	return e.info.DefaultRuntime
}

// finding returns what is known of a runtime, by a trial unless it is an
// ordinary one.
func (b *Backend) finding(ctx context.Context, e *engine, runtime string) (finding, error) {
	if runtime == "" || slices.Contains(ordinary, runtime) {
		return finding{level: tranca.LevelContainer}, nil
	}
	b.mu.Lock()
	f, known := b.found[runtime]
	b.mu.Unlock()
	if known {
		return f, nil
	}
	f, err := b.try(ctx, e, runtime)
	if err == nil {
		b.mu.Lock()
		b.found[runtime] = f
		b.mu.Unlock()
	}
	return f, err
}

// try makes a sandbox by a runtime, as one that uses the host's kernel, and
// where that fails as one with a kernel of its own, which then has to be seen.
func (b *Backend) try(ctx context.Context, e *engine, runtime string) (finding, error) {
	if _, there := e.info.Runtimes[runtime]; !there && len(e.info.Runtimes) > 0 {
		return finding{}, refusal(tranca.Problem{
			Item: tranca.ItemIsolation, Asked: "the runtime " + quote(runtime),
			Missing: e.Name + " has none of that name; it has " + b.facts(e)["runtimes"],
			Mend:    "add it to the engine's configuration (Docker: runtimes in daemon.json; Podman: engine.runtimes in containers.conf), or leave `runtime` out",
		})
	}
	_, err := b.look(ctx, e, runtime, hostKernel)
	if err == nil {
		return finding{level: tranca.LevelContainer, how: "tranca's system call filter and Landlock hold: it is the host's kernel"}, nil
	}
	f, guestErr := b.look(ctx, e, runtime, guestKernel)
	if guestErr != nil {
		return finding{}, errors.Join(guestErr, err)
	}
	if f.level <= tranca.LevelContainer {
		return finding{}, errors.Join(fmt.Errorf("runtime %s: %s", quote(runtime), f.how), err)
	}
	return f, nil
}

// look makes a sandbox and looks at it, from inside and from outside.
func (b *Backend) look(ctx context.Context, e *engine, runtime string, k kernel) (f finding, err error) {
	spec := tranca.Spec{ID: tranca.NewID(), Policy: trialPolicy(runtime)}
	m, err := b.bootBy(ctx, e, &spec, finding{kernel: k, level: tranca.LevelContainer})
	if err != nil {
		return f, err
	}
	sb, err := host.New(m, spec)
	if err != nil {
		return f, errors.Join(err, m.Close(context.WithoutCancel(ctx)))
	}
	defer func() { err = errors.Join(err, sb.Close(context.WithoutCancel(ctx))) }()
	f = finding{kernel: k, level: tranca.LevelContainer}
	if k == hostKernel {
		return f, nil
	}
	inside, err := kernelOf(ctx, sb)
	if err != nil {
		return f, err
	}
	f.level, f.how = judge(inside, e.info.KernelVersion, m.outside.process())
	return f, nil
}

// kernelOf asks the one program that is in every container, since an image may
// have none, which kernel it runs under.
func kernelOf(ctx context.Context, sb tranca.Sandbox) (string, error) {
	var said firstBytes
	p, err := sb.Start(ctx, tranca.Command{Args: []string{agentPath, "kernel"}, Stdout: &said})
	if err != nil {
		return "", err
	}
	exit, err := p.Wait(ctx)
	if err == nil && !exit.Success() {
		err = fmt.Errorf("the trial program ended with %s", exit)
	}
	return strings.TrimSpace(said.String()), err
}

// firstBytes keeps the beginning of what is written to it.
type firstBytes struct{ strings.Builder }

// Write keeps what there is room for, and takes all.
func (f *firstBytes) Write(p []byte) (int, error) {
	f.Builder.Write(p[:min(len(p), max(0, 4096-f.Len()))])
	return len(p), nil
}

// seen is what this host sees of a container's first process.
type seen struct {
	agent bool // it is the guest agent itself
	vm    bool // it has made a virtual machine
	known bool // it can be seen at all
}

// judge says which level the evidence shows. One piece alone is not enough: a
// version can be written by anybody, and a process have any name.
func judge(inside, hostRelease string, outside seen) (tranca.Level, string) {
	same := hostRelease == "" || strings.Contains(inside, " "+hostRelease+" ")
	if same || !outside.known || outside.agent {
		return tranca.LevelContainer, "it uses the host's kernel"
	}
	saw := fmt.Sprintf("inside the kernel is %s, outside no process is the guest agent", quote(inside))
	switch {
	case outside.vm:
		return tranca.LevelMicroVM, saw + ", but one with a virtual machine"
	case strings.Contains(inside, "gvisor") || strings.HasPrefix(inside, "Linux version 4.4.0 #1 SMP Sun Jan 10 15:06:54 PST 2016"):
		return tranca.LevelGVisor, saw
	}
	return tranca.LevelContainer, saw + "; it is not known what it is"
}
