package process

import (
	"context"
	"sync"
	"testing"
	"time"

	"tranca"
)

// TestCountersWhileClosing: what is asked of a sandbox that is being destroyed
// meets none of its descriptors after they were closed. The race detector sees
// it.
func TestCountersWhileClosing(t *testing.T) {
	b := newBackend(t)
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	sb, err := b.Create(ctx, tranca.Spec{ID: tranca.NewID(), Policy: testPolicy(b)})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := sb.Start(ctx, tranca.Command{Args: []string{"/bin/sleep", "60"}}); err != nil {
		t.Fatal(err)
	}
	over := make(chan struct{})
	var asking sync.WaitGroup
	for _, ask := range []func(){
		func() { _, _ = sb.Usage(ctx) }, // either answer is right
		func() { _ = sb.Kill(ctx) },
	} {
		asking.Go(func() {
			for {
				select {
				case <-over:
					return
				default:
					ask()
				}
			}
		})
	}
	closeBox(t, sb)
	// Without a control group there never were any: -1.
	if u, err := sb.Usage(ctx); err == nil && u.CPU >= 0 {
		t.Errorf("a sandbox that is gone has counters: %+v", u)
	}
	if err := sb.Kill(ctx); err != nil {
		t.Errorf("a sandbox that is gone can't be killed: %v", err)
	}
	close(over)
	asking.Wait()
}
