package agent

import (
	"errors"
	"runtime"
	"strconv"
	"sync"
	"sync/atomic"

	"golang.org/x/sys/unix"

	"tranca/internal/guest/wire"
)

// The bounds on watches.
const (
	// maxWatches bounds the watches of the sandbox at one moment.
	maxWatches = 32
	// maxWatchFolders bounds the folders of one watch, maxAllFolders those of
	// all together: the kernel keeps some hundred bytes for each, and the agent
	// about as many.
	maxWatchFolders = 8192
	maxAllFolders   = 4 * maxWatchFolders
)

// watching is what the watches of an agent share.
//
// inotify takes a path and no descriptor, and the agent is not in the process
// namespace whose /proc it sees, so there is no path for a descriptor of its
// own. A name that was looked at before could lead elsewhere by the time it is
// watched. So one thread has a working directory of its own: it goes into the
// folder by descriptor and watches ".".
type watching struct {
	start   sync.Once
	failed  error
	tasks   chan func()
	running atomic.Int32
	folders atomic.Int32
}

// folder runs f on the thread of the watches, with the rights of the code's
// user.
func (a *agent) folder(f func() error) error {
	w := &a.watches
	w.start.Do(func() {
		w.tasks = make(chan func())
		ready := make(chan error)
		go w.serve(ready, a.sess.Done())
		w.failed = <-ready
	})
	if w.failed != nil {
		return w.failed
	}
	done := make(chan error, 1)
	select {
	case w.tasks <- func() { done <- a.id.do(f) }:
		return <-done
	case <-a.sess.Done():
		return &wire.Error{Code: wire.CodeCanceled, Message: "the agent ends"}
	}
}

// serve is the thread. It is never unlocked: the runtime ends it with the
// goroutine.
func (w *watching) serve(ready chan<- error, end <-chan struct{}) {
	runtime.LockOSThread()
	if err := unix.Unshare(unix.CLONE_FS); err != nil {
		ready <- errors.New("a working directory for the thread that watches: " + err.Error())
		return
	}
	ready <- nil
	for {
		select {
		case f := <-w.tasks:
			f()
		case <-end:
			return
		}
	}
}

// take counts n more, or refuses where there would be more than most.
func take(count *atomic.Int32, n, most int32) bool {
	if count.Add(n) > most {
		count.Add(-n)
		return false
	}
	return true
}

func tooMany(path string, n int, what string) error {
	return busy("watching " + strconv.Quote(path) + ": more than " + strconv.Itoa(n) + " " + what +
		" would be watched: watch a folder in it, or not all below it, or end another watch")
}
