package attempt

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"os/signal"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

const (
	// resultFD is where a child hands its last line to its parent; errorFD is what
	// becomes its standard error.
	resultFD = 3
	errorFD  = 4
	// oneP is in the environment of a child until it is settled.
	oneP = "GOMAXPROCS"
	// unstarted is the status of a child, without a line, to whose runtime the
	// kernel refused a thread.
	unstarted = 2
)

// sleep waits on this thread, with no timer of the runtime.
func sleep(d time.Duration) {
	for end := time.Now().Add(d); ; {
		left := time.Until(end)
		if left <= 0 {
			return
		}
		ts := unix.NsecToTimespec(int64(left))
		_ = unix.Nanosleep(&ts, nil) // what is left of it is slept again
	}
}

// begun is a child that was started.
type begun struct {
	pid int
	// result is at its end when the child, or the one that it becomes, has ended.
	result int
	// between are those that wait for it in its place.
	between *between
}

// start runs the steps in a child.
func (it *interp) start(steps []Step, w Within) (begun, error) {
	var out [2]int
	if err := unix.Pipe2(out[:], unix.O_CLOEXEC); err != nil {
		return begun{}, err
	}
	c, err := it.startFor(out[1], steps, w)
	unix.Close(out[1])
	if err != nil {
		unix.Close(out[0])
		return begun{}, err
	}
	c.result = out[0]
	it.partial = true // whatever it writes
	return c, nil
}

// startFor is start with the descriptor to which the child's last line goes.
func (it *interp) startFor(result int, steps []Step, w Within) (c begun, err error) {
	kinds := ""
	if !w.Session {
		kinds, w.New = w.New, ""
	}
	w.Until = min(w.Until, it.until.UnixMilli())
	text, err := json.Marshal(Program{Steps: steps, Calls: it.p.Calls, Mark: it.p.Mark, Within: &w})
	if err != nil {
		return c, err
	}
	var in [2]int
	if err := unix.Pipe2(in[:], unix.O_CLOEXEC); err != nil {
		return c, err
	}
	// Until its runtime has what it needs, nobody hears of how it fails to get it.
	quiet, err := unix.Open("/dev/null", unix.O_WRONLY|unix.O_CLOEXEC, 0)
	if err != nil {
		quiet = 2
	}
	argv := []string{it.exe, it.p.Mark}
	// One P needs few threads, of which each counts against a bound on processes.
	env := append(syscall.Environ(), oneP+"=1")
	files := []uintptr{uintptr(in[0]), 1, uintptr(quiet), uintptr(result), 2}
	if kinds == "" {
		c.pid, err = syscall.ForkExec(it.exe, argv, &syscall.ProcAttr{Env: env, Files: files})
	} else {
		c, err = startApart(kinds, argv, env, files)
	}
	unix.Close(in[0])
	if quiet != 2 {
		unix.Close(quiet)
	}
	if err == nil {
		_ = writeAll(in[1], text) // what dies early tells so by its end
	}
	unix.Close(in[1])
	return c, err
}

// finish waits for a child and returns its last line.
func (c begun) finish() (last *Line, status unix.WaitStatus) {
	text := drain(c.result)
	status = c.between.ended(wait(c.pid))
	var l Line
	if json.Unmarshal(text, &l) == nil {
		last = &l
	}
	return last, status
}

// drain reads a descriptor to its end and closes it; what goes beyond a line's
// greatest length is thrown away.
func drain(fd int) []byte {
	defer unix.Close(fd)
	var text []byte
	buf := make([]byte, 32<<10)
	for {
		n, err := unix.Read(fd, buf)
		if err == unix.EINTR {
			continue
		}
		if err != nil || n <= 0 {
			return text
		}
		if len(text) < 8*MaxValue {
			text = append(text, buf[:n]...)
		}
	}
}

func wait(pid int) (status unix.WaitStatus) {
	for {
		if _, err := unix.Wait4(pid, &status, 0, nil); err != unix.EINTR {
			return status
		}
	}
}

// ended is how a child's end counts.
func ended(status unix.WaitStatus) error {
	switch {
	case status.Signaled():
		return words(signalName(status.Signal()))
	case status.ExitStatus() != 0:
		return words(fmt.Sprintf("exit %d", status.ExitStatus()))
	}
	return nil
}

func signalName(s syscall.Signal) string {
	if name := unix.SignalName(s); name != "" {
		return name
	}
	return fmt.Sprintf("signal %d", int(s))
}

// child does one step in a child, whose line it is, unless it died of it.
func (it *interp) child(s *Step) Line {
	alone := *s
	alone.Child = false
	c, err := it.start([]Step{alone}, Within{Step: it.number, Single: true, Until: it.until.UnixMilli()})
	if err != nil {
		return it.line(s, "", err)
	}
	last, status := c.finish()
	if last != nil && !status.Signaled() {
		last.Step = it.number
		return *last
	}
	err = ended(status)
	if last == nil && status.ExitStatus() == unstarted {
		err = unix.EAGAIN
	}
	if err == nil || s.Do == "exit" {
		return it.line(s, "", nil) // it ended as the step says
	}
	return it.line(s, "", err)
}

func doSpawn(it *interp, s *Step) (string, error) {
	w := Within{Step: it.number, Session: s.Session, Close: s.Close, New: s.New, Until: it.until.UnixMilli()}
	if s.NoWait || s.Session {
		w.Until = time.Now().Add(loose).UnixMilli()
	}
	var all []begun
	var failed error
	for range max(s.Count, 1) {
		c, err := it.start(s.Steps, w)
		if err != nil {
			failed = err
			break
		}
		all = append(all, c)
	}
	for _, c := range all {
		if err := c.outcome(s); failed == nil {
			failed = err
		}
	}
	return "", failed
}

// outcome waits for a child of spawn as the step says.
func (c begun) outcome(s *Step) error {
	defer c.between.free()
	// The one that makes a session ends at once. Where it failed, it alone had the
	// other end of the pipe.
	if s.NoWait && (!s.Session || ended(wait(c.pid)) == nil) {
		unix.Close(c.result)
		return nil
	}
	last, status := c.finish()
	err := ended(status)
	switch {
	case last == nil && status.ExitStatus() == unstarted:
		return unix.EAGAIN
	case last == nil && err == nil:
		return words(Died) // in its session, where only the pipe tells
	case last != nil && !last.OK:
		return words(last.Errno)
	}
	return err
}

// again is the child that makes a session, in which it starts one more, and
// ends, so that what it leaves has no parent here.
func (it *interp) again() int {
	_, err := unix.Setsid()
	if err == nil || err == unix.EPERM {
		w := *it.p.Within
		w.Session = false
		_, err = it.startFor(it.result, it.p.Steps, w)
	}
	if err != nil {
		it.answer(Line{Step: -1, Errno: errnoText(err)})
		return 1
	}
	return 0
}

func doRepeat(it *interp, s *Step) (string, error) {
	number := it.number
	end := time.Now().Add(s.For.Duration())
	for i := 0; s.Count == 0 || i < s.Count; i++ {
		if s.Count == 0 && !time.Now().Before(end) {
			break
		}
		it.steps(s.Steps, number, true)
		sleep(s.Every.Duration())
	}
	return "", nil
}

func doRun(_ *interp, s *Step) (string, error) {
	path, err := look(s.Args[0])
	if err != nil {
		return "", err
	}
	var out [2]int
	if err := unix.Pipe2(out[:], unix.O_CLOEXEC); err != nil {
		return "", err
	}
	in, err := unix.Open("/dev/null", unix.O_RDONLY|unix.O_CLOEXEC, 0)
	if err != nil {
		in = 0
	}
	pid, err := syscall.ForkExec(path, s.Args, &syscall.ProcAttr{
		Env: syscall.Environ(), Files: []uintptr{uintptr(in), uintptr(out[1]), uintptr(out[1])},
	})
	unix.Close(out[1])
	if in != 0 {
		unix.Close(in)
	}
	if err != nil {
		unix.Close(out[0])
		return "", err
	}
	text, status := follow(pid, out[0])
	return string(text), ended(status)
}

// follow reads what a program writes until it has ended, which it has to before
// long. What it left behind may hold the pipe open: nobody waits for that.
func follow(pid, fd int) (text []byte, status unix.WaitStatus) {
	defer unix.Close(fd)
	_ = unix.SetNonblock(fd, true)
	end := time.Now().Add(loose)
	buf := make([]byte, 32<<10)
	for over := false; ; {
		n, err := unix.Read(fd, buf)
		if n > 0 {
			if len(text) < MaxValue {
				text = append(text, buf[:n]...)
			}
			continue
		}
		if over {
			return text, status
		}
		if err == unix.EAGAIN {
			_, _ = unix.Poll([]unix.PollFd{{Fd: int32(fd), Events: unix.POLLIN}}, 20)
		} else {
			sleep(time.Millisecond)
		}
		if time.Now().After(end) {
			_ = unix.Kill(pid, unix.SIGKILL) // it is ours, and not waited for
		}
		who, err := unix.Wait4(pid, &status, unix.WNOHANG, nil)
		over = who == pid || err == unix.ECHILD
	}
}

// look finds a program by PATH, as a shell does.
func look(name string) (string, error) {
	if strings.Contains(name, "/") {
		return name, nil
	}
	for _, folder := range strings.Split(os.Getenv("PATH"), ":") {
		path := folder + "/" + name
		var st unix.Stat_t
		if folder != "" && unix.Stat(path, &st) == nil && st.Mode&unix.S_IFMT == unix.S_IFREG &&
			unix.Access(path, unix.X_OK) == nil {
			return path, nil
		}
	}
	return "", unix.ENOENT
}

func doSleep(_ *interp, s *Step) (string, error) {
	sleep(s.For.Duration())
	return "", nil
}

func doIgnore(*interp, *Step) (string, error) {
	for n := range syscall.Signal(65) {
		// To ignore the death of children would be to lose how they ended.
		if n != unix.SIGCHLD && n > 0 {
			signal.Ignore(n)
		}
	}
	return "", nil
}

func doKill(_ *interp, s *Step) (string, error) {
	pid := int64(os.Getpid())
	if s.PID != "self" {
		var err error
		if pid, err = number(s.PID); err != nil {
			return "", err
		}
	}
	return "", unix.Kill(int(pid), syscall.Signal(s.Signal))
}

func doExit(it *interp, s *Step) (string, error) {
	if it.result >= 0 {
		it.answer(it.line(s, "", nil))
	}
	os.Exit(s.Code)
	return "", nil
}

// doRaise lets the signal do what it does by default.
func doRaise(_ *interp, s *Step) (string, error) {
	sig := syscall.Signal(s.Signal)
	if err := byDefault(sig); err != nil && err != unix.EINVAL {
		return "", err
	}
	if err := unix.Tgkill(os.Getpid(), unix.Gettid(), sig); err != nil {
		return "", err
	}
	return "", nil
}

func doPrint(it *interp, s *Step) (string, error) {
	data, err := dataBytes(s.Data)
	if err != nil {
		return "", err
	}
	size := int64(s.Size)
	if size == 0 {
		size = int64(len(data))
	}
	piece := data
	if reps := min(size, 64<<10) / int64(len(data)); reps > 1 {
		piece = bytes.Repeat(data, int(reps))
	}
	out := it.out
	if s.Stream == "err" {
		out = os.Stderr
	} else {
		it.partial = true
	}
	for left := size; left > 0; {
		n, err := out.Write(piece[:min(left, int64(len(piece)))])
		if err != nil {
			return "", err
		}
		left -= int64(n)
	}
	return "", nil
}
