package cli

import (
	"context"
	"errors"
	"os"
	"syscall"
	"testing"
)

func TestTheFirstSignalCancelsAndTheSecondQuits(t *testing.T) {
	quit := make(chan int, 1)
	ctx, stop := interruptible(t.Context(), func(status int) { quit <- status })
	defer stop()
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
}
