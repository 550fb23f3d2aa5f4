package boot

import (
	"errors"
	"os"
	"runtime"
	"sync"
)

// maxTasks bounds what a boot message may ask for.
const maxTasks = 64

// holdTasks brings this process to so many threads. Go keeps a thread that it
// has once, and reaches for it before it makes another: so the number is the
// same from now on, and neither can a program that forks without end take the
// agent's next thread from it, nor use what the agent does not.
func holdTasks(n int) error {
	if n > maxTasks {
		return errors.New("too many threads asked for")
	}
	self, err := os.Open("/proc/self/task")
	if err != nil {
		return err
	}
	defer self.Close()
	release := make(chan struct{})
	var held sync.WaitGroup
	// A thread that is not free again yet is one that Go does not find.
	defer held.Wait()
	defer close(release)
	for range n {
		have, err := countTasks(self)
		if err != nil || have >= n {
			return err
		}
		started := make(chan struct{})
		held.Go(func() {
			runtime.LockOSThread()
			defer runtime.UnlockOSThread()
			close(started)
			<-release
		})
		<-started
	}
	return nil
}

func countTasks(dir *os.File) (int, error) {
	if _, err := dir.Seek(0, 0); err != nil {
		return 0, err
	}
	names, err := dir.Readdirnames(-1)
	return len(names), err
}
