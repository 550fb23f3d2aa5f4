//go:build !unix

package cli

import (
	"os"
	"time"
)

// terminalChanges says to look for another size each so often, where no signal
// tells.
func terminalChanges() (changed <-chan os.Signal, stop func()) {
	ch, done := make(chan os.Signal), make(chan struct{})
	go func() {
		t := time.NewTicker(500 * time.Millisecond)
		defer t.Stop()
		for {
			select {
			case <-done:
				return
			case <-t.C:
			}
			select {
			case <-done:
				return
			case ch <- os.Interrupt:
			}
		}
	}()
	return ch, func() { close(done) }
}
