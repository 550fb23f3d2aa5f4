package attempt

import (
	"crypto/sha256"
	"fmt"
	"runtime"
	"sync/atomic"
	"time"

	"golang.org/x/sys/unix"
)

// limit has this process killed when its time is over.
func (it *interp) limit() {
	left := max(time.Until(it.until).Milliseconds(), 1)
	if killAt(left) != nil {
		time.AfterFunc(time.Until(it.until), func() { _ = unix.Kill(unix.Getpid(), unix.SIGKILL) })
	}
}

// gate is a pipe on whose reading end processes or threads wait until it is
// opened, or its maker dies.
type gate struct{ wait, hold int }

func newGate() (gate, error) {
	var p [2]int
	err := unix.Pipe2(p[:], unix.O_CLOEXEC)
	return gate{p[0], p[1]}, err
}

func (g gate) open() {
	unix.Close(g.hold)
	unix.Close(g.wait)
}

// pass is what a child does that waits at the gate: it may not hold it itself.
func (g gate) pass(calls []call) {
	calls[0] = call{trap: unix.SYS_CLOSE, args: [6]uintptr{uintptr(g.hold)}}
	last := &calls[len(calls)-1]
	*last = call{trap: unix.SYS_READ, args: [6]uintptr{uintptr(g.wait), 0, 1}}
}

// doForks makes children that all wait, whether or not all could be made.
func doForks(_ *interp, s *Step) (string, error) {
	g, err := newGate()
	if err != nil {
		return "", err
	}
	calls := make([]call, 2)
	g.pass(calls)
	pids, err := many(s.Count, calls)
	sleep(s.For.Duration())
	g.open()
	for _, pid := range pids {
		wait(pid)
	}
	return fmt.Sprint(len(pids)), err
}

// many forks so many children, or as many as it can.
func many(count int, calls []call) ([]int, error) {
	pids := make([]int, 0, count)
	for range count {
		pid, err := forked(calls)
		if err != nil {
			return pids, err
		}
		pids = append(pids, pid)
	}
	return pids, nil
}

// doZombies leaves children that have ended unreaped.
func doZombies(_ *interp, s *Step) (string, error) {
	pids, err := many(s.Count, nil)
	for _, pid := range pids {
		for unix.Waitid(unix.P_PID, pid, nil, unix.WEXITED|unix.WNOWAIT, nil) == unix.EINTR {
		}
	}
	sleep(s.For.Duration())
	for _, pid := range pids {
		wait(pid)
	}
	return fmt.Sprint(len(pids)), err
}

func doThreads(_ *interp, s *Step) (string, error) {
	made, err := holdThreads(s.Count, s.For.Duration())
	return fmt.Sprint(made), err
}

func holdThreads(count int, d time.Duration) (int, error) {
	g, err := newGate()
	if err != nil {
		return 0, err
	}
	made, gone, err := threads(count, g.wait)
	if gone != nil {
		sleep(d)
	}
	unix.Close(g.hold)
	if gone != nil {
		gone()
	}
	unix.Close(g.wait)
	return made, err
}

// awaitZero waits until the kernel has cleared all words.
func awaitZero(words []uint32) {
	for i := range words {
		for atomic.LoadUint32(&words[i]) != 0 {
			sleep(100 * time.Microsecond)
		}
	}
}

func doFds(_ *interp, s *Step) (string, error) {
	fds := make([]int, 0, s.Count)
	var err error
	for len(fds) < s.Count {
		var fd int
		// An open file of its own each, not a copy of one.
		if fd, err = unix.Open("/", unix.O_PATH|unix.O_CLOEXEC, 0); err != nil {
			break
		}
		fds = append(fds, fd)
	}
	for _, fd := range fds {
		unix.Close(fd)
	}
	return fmt.Sprint(len(fds)), err
}

// doPipes fills pipes, each as large as it may be, until they hold so much.
func doPipes(_ *interp, s *Step) (string, error) {
	var ends []int
	defer func() {
		for _, fd := range ends {
			unix.Close(fd)
		}
	}()
	piece := make([]byte, 64<<10)
	held := int64(0)
	for held < int64(s.Size) {
		var p [2]int
		if err := unix.Pipe2(p[:], unix.O_CLOEXEC|unix.O_NONBLOCK); err != nil {
			return fmt.Sprint(held), err
		}
		ends = append(ends, p[0], p[1])
		_, _ = unix.FcntlInt(uintptr(p[1]), unix.F_SETPIPE_SZ, 1<<20) // else it stays small
		before := held
		for held < int64(s.Size) {
			n, err := unix.Write(p[1], piece[:min(int64(len(piece)), int64(s.Size)-held)])
			if err == unix.EINTR {
				continue
			}
			if err != nil || n <= 0 {
				break
			}
			held += int64(n)
		}
		if held == before {
			return fmt.Sprint(held), unix.EAGAIN
		}
	}
	return fmt.Sprint(held), nil
}

// doAlloc has children that each take so much, all at one moment.
func doAlloc(_ *interp, s *Step) (string, error) {
	g, err := newGate()
	if err != nil {
		return "", err
	}
	var told [2]int
	if err := unix.Pipe2(told[:], unix.O_CLOEXEC); err != nil {
		g.open()
		return "", err
	}
	size := uintptr(s.Size)
	flags := uintptr(unix.MAP_PRIVATE | unix.MAP_ANON)
	touch := size
	if s.NoTouch {
		flags |= unix.MAP_NORESERVE
		touch = 0
	}
	count := max(s.Count, 1)
	calls, one := make([]call, 5), []byte{1}
	g.pass(calls)
	calls[1] = call{trap: unix.SYS_MMAP, must: true,
		args: [6]uintptr{0, size, unix.PROT_READ | unix.PROT_WRITE, flags, ^uintptr(0), 0}}
	calls[2] = call{trap: trapTouch, args: [6]uintptr{touch}}
	calls[3] = call{trap: unix.SYS_WRITE, args: [6]uintptr{uintptr(told[1]), address(one), 1}}
	pids, err := many(count, calls)
	runtime.KeepAlive(one)
	unix.Close(told[1])
	held := 0
	for ; held < len(pids); held++ { // a byte of each, or the end of all that live
		if n, e := readByte(told[0]); e != nil || n == 0 {
			break
		}
	}
	unix.Close(told[0])
	g.open()
	for _, pid := range pids {
		if e := allocated(wait(pid)); err == nil {
			err = e
		}
	}
	return fmt.Sprint(held), err
}

// allocated is how the end of a child counts, whose code is an error number.
func allocated(status unix.WaitStatus) error {
	if status.Exited() && status.ExitStatus() != 0 {
		return unix.Errno(status.ExitStatus())
	}
	return ended(status)
}

func readByte(fd int) (int, error) {
	var b [1]byte
	for {
		n, err := unix.Read(fd, b[:])
		if err != unix.EINTR {
			return n, err
		}
	}
}

func doSpin(_ *interp, s *Step) (string, error) {
	return "", burn(max(s.Threads, 1), s.For, func() {
		for x := uint64(1); x < 1<<18; x++ {
			spun.Store(x)
		}
	})
}

// spun keeps a loop from being left out.
var spun atomic.Uint64

func doHash(_ *interp, s *Step) (string, error) {
	count := s.Threads
	if count == 0 {
		count = cpus()
	}
	return "", burn(count, s.For, func() {
		var block [4096]byte
		for range 64 {
			sum := sha256.Sum256(block[:])
			copy(block[:], sum[:])
		}
	})
}

// cpus is how many processors the process may use.
func cpus() int {
	var set unix.CPUSet
	if unix.SchedGetaffinity(0, &set) != nil {
		return 1
	}
	return max(set.Count(), 1)
}

// burn does the work on so many threads until the process has used so much CPU
// time for each, the runtime's own thread included: where a kernel in user space
// answers that one, it costs half as much as the work, and a limit counts it too.
// Such a kernel's clocks are estimates, more than what is used where the host is
// busy: what has to pass a limit needs several times of it.
func burn(count int, d Millis, work func()) error {
	// Where no more threads can be had, a thread that the runtime misses would end
	// the program: so as many are tried first.
	if _, err := holdThreads(count, 0); err != nil {
		return err
	}
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(max(count+1, runtime.GOMAXPROCS(0))))
	done := make(chan bool)
	end := cpuTime() + int64(count)*int64(d.Duration())
	for range count {
		go func() {
			runtime.LockOSThread()
			defer runtime.UnlockOSThread()
			for cpuTime() < end {
				work()
			}
			done <- true
		}()
	}
	for range count {
		<-done
	}
	return nil
}
