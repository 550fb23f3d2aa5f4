package attempt

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"path/filepath"
	"runtime"
	"runtime/debug"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// longest is how long a program lives at most; those of its children that it
// doesn't wait for live loose long.
const (
	longest = 10 * time.Minute
	loose   = 60 * time.Second
)

// interp is one process of a program.
type interp struct {
	p   Program
	out io.Writer
	// partial says that what was written last may not have ended its line.
	partial bool
	// result is where the last line goes, to the parent; -1 without one.
	result int
	until  time.Time
	told   map[*Step]told
	doers  map[string]doer
	// number is that of the step that is done now.
	number int
	// exe is the program's own file.
	exe string
}

// told is what a step inside repeat brought when it was last told of.
type told struct {
	line  Line
	times int
}

// doer does one act and returns its value.
type doer func(it *interp, s *Step) (string, error)

// words is an outcome that has no error number.
type words string

func (w words) Error() string { return string(w) }

// doers has the interpreter's side of every act of [Acts].
func doers() map[string]doer {
	return map[string]doer{
		"read": doRead, "list": doList, "find": doFind, "write": doWrite, "open": doOpen,
		"stat": doStat, "readlink": doReadlink, "remove": doRemove, "mkdir": doMkdir,
		"mkfifo": doMkfifo, "rename": doRename, "link": doLink, "symlink": doSymlink,
		"truncate": doTruncate, "chmod": doChmod, "chown": doChown, "mknod": doMknod,
		"fill": doFill, "files": doFiles, "copyself": doCopyself, "swap": doSwap,
		"run": doRun, "spawn": doSpawn, "repeat": doRepeat,
		"forks": doForks, "threads": doThreads, "zombies": doZombies, "fds": doFds,
		"pipes": doPipes, "alloc": doAlloc, "spin": doSpin, "hash": doHash,
		"sleep": doSleep, "ignore": doIgnore, "kill": doKill, "exit": doExit,
		"raise": doRaise, "print": doPrint, "env": doEnv, "check": doCheck,
		"listen": doListen, "mmap": doMmap, "connect": doConnect, "resolve": doResolve, "echo": doEcho, "socket": doSocket,
		"addaddr": doAddaddr, "syscall": doSyscall, "ia32": doIA32, "shm": doShm,
	}
}

// Run does the steps of the program in order and tells of each on out. It is to
// be called once, from main, which returns its exit status: 0, whatever the
// steps achieved. It changes the whole process: what a step does to it, the
// later ones see.
func Run(p Program, out io.Writer) int {
	settle()
	if p.Within != nil {
		_ = os.Unsetenv(oneP)
		_ = unix.Dup3(errorFD, 2, 0)
		unix.Close(errorFD)
	}
	it := &interp{p: p, out: out, result: -1, told: map[*Step]told{}, doers: doers(), exe: own()}
	it.until = time.Now().Add(longest)
	w := p.Within
	if w == nil {
		it.limit()
		it.steps(p.Steps, 0, false)
		it.tell(Line{Step: -1, OK: true})
		return 0
	}
	it.result, it.number = resultFD, w.Step
	unix.CloseOnExec(it.result)
	if until := time.UnixMilli(w.Until); until.Before(it.until) {
		it.until = until
	}
	it.limit()
	if w.Session {
		return it.again()
	}
	if w.Close {
		for fd := range 3 {
			unix.Close(fd)
			// What is opened later doesn't become a standard stream.
			_, _ = unix.Open("/", unix.O_PATH|unix.O_CLOEXEC, 0)
		}
		it.out = io.Discard
	}
	if w.Single && len(p.Steps) == 1 {
		it.answer(it.do(&p.Steps[0]))
		return 0
	}
	it.steps(p.Steps, w.Step, true)
	it.answer(Line{Step: -1, OK: true})
	return 0
}

// settle makes the Go program behave like one without a runtime: acts happen on
// the first thread, which is the process to its children and to /proc, and no
// further thread is made at a moment when the kernel refuses one, which would
// end the program.
func settle() {
	runtime.LockOSThread()
	runtime.GOMAXPROCS(1)
	debug.SetGCPercent(-1)
	debug.SetMemoryLimit(96 << 20)
	signal.Ignore(unix.SIGPIPE)
	const spare = 2
	var started, ended [spare]chan bool
	for i := range spare {
		started[i], ended[i] = make(chan bool), make(chan bool)
		go func() {
			runtime.LockOSThread()
			close(started[i])
			<-ended[i]
			runtime.UnlockOSThread()
		}()
	}
	for i := range spare {
		<-started[i]
	}
	for i := range spare {
		close(ended[i])
	}
}

// steps does a list. Inside another step all bear that one's number.
func (it *interp) steps(list []Step, number int, inside bool) {
	for i := 0; i < len(list); {
		if !inside {
			number = i
		}
		aside := callsAside(list[i:])
		if len(aside) == 0 {
			it.step(&list[i], number, inside)
			i++
			continue
		}
		for j, line := range it.aside(aside) {
			if !inside {
				number = i + j
			}
			line.Step = number
			it.report(&aside[j], line, inside)
		}
		i += len(aside)
	}
}

// report tells of one step. Inside another one it is named always, and told of
// again only when it brought something else.
func (it *interp) report(s *Step, line Line, inside bool) {
	if !inside {
		it.tell(line)
		return
	}
	if line.As == "" {
		line.As = s.Do
	}
	last, again := it.told[s]
	if again && (last.line == line || last.times >= 1000) {
		return
	}
	it.told[s] = told{line, last.times + 1}
	it.tell(line)
}

// step does one step and tells of it. What may be the end of the program is
// told of before it happens.
func (it *interp) step(s *Step, number int, inside bool) {
	it.number = number
	if !s.Child && (s.Do == "exit" || s.Do == "raise") {
		it.report(s, it.line(s, "", nil), inside)
		it.do(s)
		return
	}
	it.report(s, it.do(s), inside)
}

// do does one step, in a process of its own if it says so.
func (it *interp) do(s *Step) Line {
	if s.Child {
		return it.child(s)
	}
	do := it.doers[s.Do]
	if do == nil {
		return it.line(s, "", words("no such act"))
	}
	value, err := do(it, s)
	return it.line(s, value, err)
}

// line is what a step brought.
func (it *interp) line(s *Step, value string, err error) Line {
	return Line{Step: it.number, As: s.As, OK: err == nil, Errno: errnoText(err), Value: quote([]byte(value))}
}

// tell writes a line, at once and at the beginning of a line.
func (it *interp) tell(l Line) {
	text, err := json.Marshal(l)
	if err != nil {
		return // a Line can always be marshalled
	}
	start := Prefix
	if it.partial {
		start = "\n" + Prefix
	}
	it.partial = false
	// A reader that is gone is no reason to end.
	_, _ = it.out.Write([]byte(start + string(text) + "\n"))
}

// answer hands the last line to the parent.
func (it *interp) answer(l Line) {
	text, err := json.Marshal(l)
	if err != nil || it.result < 0 {
		return
	}
	_ = writeAll(it.result, text) // a parent that is gone needs none
	unix.Close(it.result)
}

// errnoText names an error: by its number's name, or in words.
func errnoText(err error) string {
	var no syscall.Errno
	var w words
	switch {
	case err == nil:
		return ""
	case errors.As(err, &w):
		return string(w)
	case errors.As(err, &no):
		return errnoName(no)
	}
	return err.Error()
}

// errnoName is the number's name. Of two names for one number both interpreters
// take the same.
func errnoName(no syscall.Errno) string {
	switch no {
	case unix.EOPNOTSUPP:
		return "EOPNOTSUPP"
	case unix.EUCLEAN:
		return "EUCLEAN"
	}
	if name := unix.ErrnoName(no); name != "" {
		return name
	}
	return fmt.Sprintf("errno %d", int(no))
}

func writeAll(fd int, data []byte) error {
	for len(data) > 0 {
		n, err := unix.Write(fd, data)
		switch err {
		case nil:
			data = data[n:]
		case unix.EINTR:
		case unix.EAGAIN:
			wait := []unix.PollFd{{Fd: int32(fd), Events: unix.POLLOUT}}
			if _, err := unix.Poll(wait, -1); err != nil && err != unix.EINTR {
				return err
			}
		default:
			return err
		}
	}
	return nil
}

// own is the path of the program's own file, which a later step can't change by
// leaving the folder.
func own() string {
	if path, err := filepath.Abs(os.Args[0]); err == nil && unix.Access(path, unix.X_OK) == nil {
		return path
	}
	return "/proc/self/exe"
}
