//go:build unix

package cli

import (
	"os"
	"os/signal"
	"syscall"
)

// terminalChanges tells when the terminal may have another size or mode: it was
// resized, or this process goes on after it was stopped.
func terminalChanges() (changed <-chan os.Signal, stop func()) {
	ch := make(chan os.Signal, 1)
	signal.Notify(ch, syscall.SIGWINCH, syscall.SIGCONT)
	return ch, func() { signal.Stop(ch) }
}
