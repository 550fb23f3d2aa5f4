package world

import (
	"sync"
	"time"
)

// Every does something again and again, with a pause before each, until stop, which
// returns when it is not being done any more.
func Every(pause time.Duration, do func()) (stop func()) {
	done := make(chan struct{})
	var wg sync.WaitGroup
	wg.Go(func() {
		for {
			select {
			case <-done:
				return
			case <-time.After(pause):
				do()
			}
		}
	})
	return func() {
		close(done)
		wg.Wait()
	}
}
