package agent

import (
	"errors"
	"os"
	"strconv"

	"tranca/internal/guest/message"
	"tranca/internal/guest/wire"
)

// find returns a running program.
func (a *agent) find(sel *message.ProcessSelector) (*proc, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if sel.PID != 0 {
		if p := a.procs[sel.PID]; p != nil {
			return p, nil
		}
		return nil, &wire.Error{Code: wire.CodeNotFound, Message: "process with pid " + strconv.FormatUint(uint64(sel.PID), 10) + " not found"}
	}
	for _, p := range a.procs {
		if sel.Tag != "" && p.tag == sel.Tag {
			return p, nil
		}
	}
	return nil, &wire.Error{Code: wire.CodeNotFound, Message: "process with tag " + strconv.Quote(sel.Tag) + " not found"}
}

func (a *agent) listProcesses() (appender, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	list := new(message.ListResponse)
	for pid, p := range a.procs {
		list.Processes = append(list.Processes, message.ProcessInfo{Config: p.config, PID: pid, Tag: p.tag})
	}
	return list, nil
}

// maxSignal is Linux's highest.
const maxSignal = 64

func (a *agent) signal(req *message.SendSignalRequest) error {
	sig := req.Signal
	if req.Number != 0 {
		sig = req.Number
	}
	if sig == 0 || sig > maxSignal {
		return invalid("signal " + strconv.FormatUint(uint64(sig), 10) + " does not exist")
	}
	p, err := a.find(&req.Process)
	if err != nil {
		return err
	}
	return p.child.Signal(int(sig), req.Group)
}

func (a *agent) input(req *message.SendInputRequest) error {
	p, err := a.find(&req.Process)
	if err != nil {
		return err
	}
	return p.write(&req.Input)
}

func (a *agent) closeStdin(req *message.CloseStdinRequest) error {
	p, err := a.find(&req.Process)
	if err != nil {
		return err
	}
	if p.term != nil {
		return invalid("a terminal has no end of input: type what ends it")
	}
	if p.stdin == nil {
		return nil
	}
	// Twice is no error.
	if err := p.stdin.Close(); err != nil && !errors.Is(err, os.ErrClosed) {
		return err
	}
	return nil
}
