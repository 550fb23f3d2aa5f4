// Package agent is the guest agent: the program inside a sandbox that starts
// programs and serves files for the host, over one byte stream. Package wire
// has the framing, package message the messages.
//
// The host trusts nothing that comes from here, and the agent trusts nothing
// but the host: the code around it may kill, trace, starve or flood whatever
// its user lets it. How a program is confined is the [Launcher]'s business.
// File work is done with the rights of the code's user, so that a path that
// the code prepared leads at most to where the code itself may go.
//
// The package is linked into a program that must start in a millisecond and
// idle in little memory. So it uses neither fmt nor reflection nor net, starts
// goroutines only for calls, and makes buffers as data comes.
package agent

import (
	"context"
	"errors"
	"io"
	"sync"
	"sync/atomic"
	"time"

	"tranca/internal/guest/message"
	"tranca/internal/guest/wire"
)

// DefaultMaxProcesses bounds the programs that run at one moment. For each, some
// of its input may wait in the agent's memory.
const DefaultMaxProcesses = 64

// Config is what the agent serves with.
type Config struct {
	// Launcher starts programs.
	Launcher Launcher
	// Env is the base environment of every program, "NAME=value". A request
	// adds to it.
	Env []string
	// Path lists the folders where programs named without a slash are looked
	// up. If it is empty, PATH of Env is used. A request can't change it.
	Path string
	// Workdir is where programs start, and what relative paths are relative
	// to. It is absolute.
	Workdir string
	// FSUID and FSGID are the user whose rights all file work has. Where they
	// are not the agent's own, it needs CAP_SETUID and CAP_SETGID, and Serve
	// drops the supplementary groups of the whole calling process.
	FSUID, FSGID uint32
	// Files lets the host use the sandbox's files.
	Files bool
	// MaxProcesses bounds running programs; 0 means DefaultMaxProcesses.
	MaxProcesses int
	// Outlive is how long a program lives on when nobody follows it any more.
	// It is 0 but in tests of what finds that out; see bootspec.End.
	Outlive time.Duration
}

// Serve answers the host on stream until that ends, then kills what it has
// started and returns why it ended: nil where the host closed the stream. The
// caller then exits, which ends the sandbox. Descriptors 0 to 2 of the process
// are open.
func Serve(stream io.ReadWriteCloser, cfg Config) error {
	if cfg.MaxProcesses == 0 {
		cfg.MaxProcesses = DefaultMaxProcesses
	}
	id, err := newIdentity(cfg.FSUID, cfg.FSGID)
	if err != nil {
		stream.Close()
		return err
	}
	if cfg.Path == "" {
		cfg.Path = lookupEnv(cfg.Env, "PATH")
	}
	a := &agent{cfg: cfg, id: id, procs: make(map[uint32]*proc)}
	a.sess = wire.New(stream, wire.Config{Handler: a.handle, MaxMessage: message.MaxStart})
	err = a.sess.Run()
	if errors.Is(err, wire.ErrEnded) {
		return nil
	}
	return err
}

type agent struct {
	cfg  Config
	id   identity
	sess *wire.Session

	watches     watching
	connections atomic.Int32 // to ports

	mu      sync.Mutex
	procs   map[uint32]*proc // by pid
	running int              // with those that are being started
	// threaded counts the running ones that threads follow.
	threaded int
}

// handle answers one call.
func (a *agent) handle(c *wire.Call) {
	var err error
	switch c.Method {
	case message.MethodPing:
		err = a.unary(c, &message.Empty{}, func() (appender, error) { return &message.Empty{}, nil })
	case message.MethodStart:
		err = a.start(c)
	case message.MethodKillAll:
		err = a.unary(c, &message.Empty{}, a.killAll)
	case message.MethodList:
		err = a.unary(c, &message.Empty{}, a.listProcesses)
	case message.MethodSendSignal:
		var req message.SendSignalRequest
		err = a.unary(c, &req, func() (appender, error) { return &message.Empty{}, a.signal(&req) })
	case message.MethodDial:
		err = a.dial(c)
	case message.MethodUpdate:
		var req message.UpdateRequest
		err = a.unary(c, &req, func() (appender, error) { return &message.Empty{}, a.update(&req) })
	case message.MethodSendInput:
		var req message.SendInputRequest
		err = a.unary(c, &req, func() (appender, error) { return &message.Empty{}, a.input(&req) })
	case message.MethodCloseStdin:
		var req message.CloseStdinRequest
		err = a.unary(c, &req, func() (appender, error) { return &message.Empty{}, a.closeStdin(&req) })
	default:
		if a.cfg.Files {
			err = a.handleFiles(c)
		} else {
			err = &wire.Error{Code: wire.CodeUnimplemented, Message: "no such method"}
		}
	}
	if err != nil {
		e := toWire(err)
		c.Reset(e.Code, e.Message)
	}
}

// killAll ends every program for a host that can't.
func (a *agent) killAll() (appender, error) {
	k, ok := a.cfg.Launcher.(Killer)
	if !ok {
		return nil, &wire.Error{Code: wire.CodeUnimplemented, Message: "this launcher can't"}
	}
	return &message.Empty{}, k.KillAll()
}

// handleFiles answers calls about files.
func (a *agent) handleFiles(c *wire.Call) error {
	switch c.Method {
	case message.MethodStat:
		var req message.PathRequest
		return a.unary(c, &req, func() (appender, error) { return a.stat(req.Path) })
	case message.MethodMakeDir:
		var req message.PathRequest
		return a.unary(c, &req, func() (appender, error) { return a.makeDir(req.Path) })
	case message.MethodMove:
		var req message.MoveRequest
		return a.unary(c, &req, func() (appender, error) { return a.move(req.Source, req.Destination) })
	case message.MethodRemove:
		var req message.PathRequest
		return a.unary(c, &req, func() (appender, error) { return &message.Empty{}, a.remove(c, req.Path) })
	case message.MethodListDir:
		return a.list(c)
	case message.MethodRead:
		return a.read(c)
	case message.MethodWrite:
		return a.write(c)
	case message.MethodSymlink:
		var req message.SymlinkRequest
		return a.unary(c, &req, func() (appender, error) { return &message.Empty{}, a.symlink(&req) })
	case message.MethodWatchDir:
		return a.watch(c)
	}
	return &wire.Error{Code: wire.CodeUnimplemented, Message: "no such method"}
}

type appender interface{ Append([]byte) []byte }

type unmarshaler interface{ Unmarshal([]byte) error }

// receive takes the request of a call.
func receive(c *wire.Call, req unmarshaler) error {
	b, err := c.Recv(context.Background())
	if err != nil {
		return err
	}
	defer b.Free()
	if err := req.Unmarshal(b.Bytes()); err != nil {
		return invalid(err.Error())
	}
	return nil
}

// unary answers a call of one request and one answer. The request may hold
// slices of the received bytes, so these are kept until it was answered.
func (a *agent) unary(c *wire.Call, req unmarshaler, f func() (appender, error)) error {
	b, err := c.Recv(context.Background())
	if err != nil {
		return err
	}
	defer b.Free()
	if err := req.Unmarshal(b.Bytes()); err != nil {
		return invalid(err.Error())
	}
	answer, err := f()
	if err != nil {
		return err
	}
	return c.Send(context.Background(), answer.Append(nil), true)
}

// givenUp reports whether nobody waits for the call's answer any more.
func (a *agent) givenUp(c *wire.Call) bool {
	select {
	case <-c.Reseted():
		return true
	case <-a.sess.Done():
		return true
	default:
		return false
	}
}

// grace is how long descendants may keep a program's output open after it has
// ended itself.
const grace = 100 * time.Millisecond
