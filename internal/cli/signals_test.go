package cli

import (
	"context"
	"errors"
	"os"
	"runtime"
	"syscall"
	"testing"
	"time"
)

func TestTheFirstSignalCancelsAndTheSecondQuits(t *testing.T) {
	quit := make(chan int, 1)
	ctx, stop := interruptible(t.Context(), func(status int) { quit <- status })
	send := func() {
		if err := syscall.Kill(os.Getpid(), syscall.SIGTERM); err != nil {
			t.Fatal(err)
		}
	}
	send()
	<-ctx.Done()
	var caught *signalError
	if !errors.As(context.Cause(ctx), &caught) || caught.signal != syscall.SIGTERM {
		t.Errorf("cause %v", context.Cause(ctx))
	}
	if status := errorStatus(context.Cause(ctx)); status != 143 {
		t.Errorf("status %d", status)
	}
	send()
	if status := <-quit; status != 143 {
		t.Errorf("quit with %d", status)
	}
	// The command has ended, its process has not: a signal is no other end of it.
	stop()
	send()
	if status := <-quit; status != 143 {
		t.Errorf("quit with %d after the command's end", status)
	}
}

// Where none has come, stop frees what interruptible holds.
func TestStopWithoutASignalFreesAll(t *testing.T) {
	before := runtime.NumGoroutine()
	_, stop := interruptible(t.Context(), func(int) {})
	stop()
	for end := time.Now().Add(time.Minute); runtime.NumGoroutine() > before; time.Sleep(time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("%d goroutines, of %d", runtime.NumGoroutine(), before)
		}
	}
}
