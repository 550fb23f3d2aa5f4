package cli

import (
	"context"
	"errors"
	"sync"
	"syscall"
	"time"

	"tranca"
	"tranca/client"
)

// warden passes the signals that this process gets on to a program in a
// sandbox, for which a command waits, and ends it where the command has to end.
type warden struct {
	p *client.Process
	// abandon ends the command's wait, whatever the program does.
	abandon context.CancelCauseFunc

	mu      sync.Mutex
	ending  *signalError // why the command ends, where not by its program
	later   []*time.Timer
	stopped bool
	signals sync.WaitGroup
}

const (
	// endPatience is how long a program may take to end when it is told to.
	endPatience = 3 * time.Second
	// abandonPatience is how long its end and its last output may take then.
	abandonPatience = 5 * time.Second
	signalPatience  = 5 * time.Second
)

// watchOver passes signals on until stop. The first SIGINT becomes one for the
// program, the second kills it, and the third ends this process at once.
// SIGTERM, SIGHUP and SIGQUIT end the program. See [hear].
func watchOver(ctx context.Context, p *client.Process, quit func(status int)) (_ context.Context, w *warden, stop func()) {
	ctx, cancel := context.WithCancelCause(ctx)
	w = &warden{p: p, abandon: cancel}
	ends := []syscall.Signal{syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP, syscall.SIGQUIT}
	deaf := hear(ends, func(s syscall.Signal, heard int) { w.caught(s, heard, quit) })
	return ctx, w, func() {
		deaf()
		cancel(nil)
		w.stop()
	}
}

// stop waits until nothing is under way any more.
func (w *warden) stop() {
	w.mu.Lock()
	w.stopped = true
	for _, t := range w.later {
		t.Stop()
	}
	w.mu.Unlock()
	w.signals.Wait()
}

func (w *warden) caught(s syscall.Signal, heard int, quit func(int)) {
	switch {
	case heard >= 3, heard == 2 && s != syscall.SIGINT:
		quit(statusSignal + int(s))
	case s != syscall.SIGINT:
		w.end(&signalError{s})
	case heard == 1:
		w.send(sigInt)
	default:
		w.send(sigKill)
	}
}

// Signals as the sandbox counts them, which this host may not.
const (
	sigHangup = tranca.Signal(1)
	sigInt    = tranca.Signal(2)
	sigKill   = tranca.Signal(9)
	sigTerm   = tranca.Signal(15)
)

// send signals the program's group, without waiting for it.
func (w *warden) send(s tranca.Signal) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.stopped {
		return
	}
	w.signals.Go(func() {
		ctx, cancel := context.WithTimeout(context.Background(), signalPatience)
		defer cancel()
		if err := w.p.Signal(ctx, s, true); errors.Is(err, tranca.ErrGone) {
			return
		} else if err != nil {
			w.abandon(err)
		}
	})
}

// end ends the program, and soon after that the command, with why as its
// reason.
func (w *warden) end(why *signalError) {
	first := sigTerm
	if why.signal == syscall.SIGHUP {
		first = sigHangup
	}
	w.mu.Lock()
	begun := w.ending != nil
	if !begun {
		w.ending = why
		w.later = append(w.later,
			time.AfterFunc(endPatience, func() { w.send(sigKill) }),
			time.AfterFunc(endPatience+abandonPatience, func() { w.abandon(why) }))
	}
	w.mu.Unlock()
	if !begun {
		w.send(first)
	}
}

// reason is why the command ends, or nil where it is the program's end.
func (w *warden) reason() error {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.ending == nil {
		return nil
	}
	return w.ending
}
