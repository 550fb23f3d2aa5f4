package badinput

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"runtime"
	"sync"
	"testing"
	"time"

	"tranca"
	"tranca/local"
)

// TestThousandsAtOnce: most are refused since the line is full, many are
// cancelled by their callers, and of the rest each gets its own answer.
func TestThousandsAtOnce(t *testing.T) {
	const callers, inFlight, queue = 3000, 4, 120
	nothingLeft(t)
	l := open(t, nil, local.WithMaxInFlight(inFlight), local.WithMaxQueue(queue))
	works(t, runner{l})
	var before, most runtime.MemStats
	runtime.GC() // of what other tests have left
	runtime.ReadMemStats(&before)
	stop := watchMemory(&most)
	var count struct {
		sync.Mutex
		right, busy, cancelled int
	}
	gate := make(chan struct{})
	var all sync.WaitGroup
	for i := range callers {
		all.Go(func() {
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			if i%3 == 0 {
				defer time.AfterFunc(time.Duration(rand.Int64N(int64(time.Second))), cancel).Stop()
			}
			<-gate
			res, err := l.Run(ctx, fmt.Sprintf("print(%d)", i))
			count.Lock()
			defer count.Unlock()
			switch {
			case err == nil && res.Exit.Success() && string(res.Stdout) == fmt.Sprintf("%d\n", i):
				count.right++
			case errors.Is(err, tranca.ErrBusy):
				count.busy++
			case ctx.Err() != nil && (errors.Is(err, context.Canceled) || err == nil && res.Exit.Reason == tranca.EndClosed):
				count.cancelled++
			default:
				t.Errorf("caller %d: %+v, %v", i, res, err)
			}
		})
	}
	close(gate)
	all.Wait()
	stop()
	if count.right+count.busy+count.cancelled != callers || count.right < inFlight || count.busy == 0 || count.cancelled == 0 {
		t.Errorf("%d right, %d refused, %d cancelled", count.right, count.busy, count.cancelled)
	}
	if grown := int64(most.HeapAlloc) - int64(before.HeapAlloc); grown > 128*mib {
		t.Errorf("%d MiB of heap", grown>>20)
	}
	works(t, runner{l})
}

// watchMemory keeps the highest use of memory until stop is called.
func watchMemory(most *runtime.MemStats) (stop func()) {
	end, done := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(done)
		for {
			var now runtime.MemStats
			runtime.ReadMemStats(&now)
			if now.HeapAlloc > most.HeapAlloc {
				*most = now
			}
			select {
			case <-end:
				return
			case <-time.After(50 * time.Millisecond):
			}
		}
	}()
	return func() { close(end); <-done }
}

// TestClosedWhileThousandsWait: they are all told, soon.
func TestClosedWhileThousandsWait(t *testing.T) {
	nothingLeft(t)
	l := open(t, nil, local.WithMaxInFlight(2), local.WithMaxQueue(3000))
	var all sync.WaitGroup
	for range 2000 {
		all.Go(func() {
			res, err := l.Run(t.Context(), sleeper)
			if !errors.Is(err, tranca.ErrClosed) && (err != nil || res.Exit.Reason != tranca.EndClosed) {
				t.Errorf("%+v, %v", res, err)
			}
		})
	}
	time.Sleep(300 * time.Millisecond)
	begin := time.Now()
	if err := l.Close(); err != nil {
		t.Error(err)
	}
	all.Wait()
	if took := time.Since(begin); took > 20*time.Second {
		t.Errorf("it took %s", took)
	}
}
