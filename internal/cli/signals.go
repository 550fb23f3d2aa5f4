package cli

import (
	"context"
	"os"
	"os/signal"
	"strconv"
	"sync/atomic"
	"syscall"

	"tranca"
)

// interruptible returns a context that the first of SIGINT, SIGTERM and
// SIGHUP cancels, with a [signalError] as its cause; the second ends this
// process at once through quit, and the sandboxes die with it. stop frees what
// it holds; see [hear].
func interruptible(ctx context.Context, quit func(status int)) (_ context.Context, stop func()) {
	ctx, cancel := context.WithCancelCause(ctx)
	ends := []syscall.Signal{syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP}
	deaf := hear(ends, func(s syscall.Signal, heard int) {
		if heard > 1 {
			quit(statusSignal + int(s))
		}
		cancel(&signalError{s})
	})
	return ctx, func() {
		deaf()
		cancel(nil)
	}
}

// hear calls each with each signal that comes and how many there were with it,
// until deaf. A signal that whoever started tranca chose to ignore (nohup, a
// shell's background job) stays ignored. Where one has come, deaf changes nothing:
// the process is about to end with a status that says so, which a further signal
// must not overtake.
//
// SIGPIPE is taken too, so that writing to a closed pipe is an error that the
// writer sees, not the death of this process with a sandbox open.
func hear(signals []syscall.Signal, each func(s syscall.Signal, heard int)) (deaf func()) {
	caught := make(chan os.Signal, 4)
	for _, s := range signals {
		if !signal.Ignored(s) {
			signal.Notify(caught, s)
		}
	}
	pipes := make(chan os.Signal, 1)
	signal.Notify(pipes, syscall.SIGPIPE)
	done := make(chan struct{})
	var heard atomic.Int32
	go func() {
		for {
			select {
			case <-done:
				return
			case s := <-caught:
				each(s.(syscall.Signal), int(heard.Add(1)))
			}
		}
	}()
	return func() {
		signal.Stop(pipes)
		if heard.Load() == 0 {
			signal.Stop(caught)
			close(done)
		}
	}
}

var signalNames = map[tranca.Signal]string{
	1: "SIGHUP", 2: "SIGINT", 3: "SIGQUIT", 4: "SIGILL", 5: "SIGTRAP",
	6: "SIGABRT", 7: "SIGBUS", 8: "SIGFPE", 9: "SIGKILL", 10: "SIGUSR1",
	11: "SIGSEGV", 12: "SIGUSR2", 13: "SIGPIPE", 14: "SIGALRM", 15: "SIGTERM",
	24: "SIGXCPU", 25: "SIGXFSZ", 31: "SIGSYS",
}

// signalName returns "SIGSEGV", or "signal 40".
func signalName(s tranca.Signal) string {
	if name := signalNames[s]; name != "" {
		return name
	}
	return "signal " + strconv.Itoa(int(s))
}
