package cli

import (
	"context"
	"os"
	"os/signal"
	"strconv"
	"syscall"

	"tranca"
)

// interruptible returns a context that the first of SIGINT, SIGTERM and
// SIGHUP cancels, with a [signalError] as its cause; the second ends this
// process at once through quit, and the sandboxes die with it. A signal that
// whoever started tranca chose to ignore (nohup, a shell's background job)
// stays ignored. stop frees what it holds.
//
// SIGPIPE is taken too, so that writing to a closed pipe is an error that the
// writer sees, not the death of this process with a sandbox open.
func interruptible(ctx context.Context, quit func(status int)) (_ context.Context, stop func()) {
	ctx, cancel := context.WithCancelCause(ctx)
	ends := make(chan os.Signal, 2)
	for _, s := range []os.Signal{syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP} {
		if !signal.Ignored(s) {
			signal.Notify(ends, s)
		}
	}
	pipes := make(chan os.Signal, 1)
	signal.Notify(pipes, syscall.SIGPIPE)
	done := make(chan struct{})
	go func() {
		for heard := 0; ; heard++ {
			select {
			case <-done:
				return
			case s := <-ends:
				n := s.(syscall.Signal)
				if heard > 0 {
					quit(statusSignal + int(n))
				}
				cancel(&signalError{n})
			}
		}
	}()
	return ctx, func() {
		signal.Stop(ends)
		signal.Stop(pipes)
		close(done)
		cancel(nil)
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
