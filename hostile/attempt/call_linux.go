package attempt

import (
	"fmt"
	"os"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"
)

// alone lists the calls that are done in a process of one thread, made for them:
// the kernel refuses some to a process with more, and others make a process or
// become another program.
func alone(name string) bool {
	switch name {
	case "unshare", "setns", "clone", "clone3", "fork", "vfork", "execve", "execveat":
		return true
	}
	return false
}

// callsAside returns the calls at the beginning of a list that are done in such
// a process: one that has to be, and what follows it, for which its changes last.
func callsAside(list []Step) []Step {
	n := 0
	for n < len(list) && list[n].Do == "syscall" && !list[n].Child && (n > 0 || alone(list[0].Call)) {
		n++
	}
	return list[:n]
}

// arguments puts the arguments of calls where children can write to them.
type arguments struct {
	mem  []byte
	used int
	// buffers has, for each call, those whose content is told of.
	buffers [][][]byte
	calls   []call
	free    func()
}

// prepare makes calls of steps.
func (it *interp) prepare(steps []Step) (*arguments, error) {
	a := &arguments{buffers: make([][][]byte, len(steps))}
	size := 16
	for i := range steps {
		for _, text := range steps[i].Args {
			_, data, err := argument(text, 0)
			if err != nil {
				return nil, words(err.Error())
			}
			size += len(data) + 16
		}
	}
	var err error
	if a.mem, err = sharedBytes(size); err != nil {
		return nil, err
	}
	if a.calls, a.free, err = sharedCalls(len(steps)); err != nil {
		_ = unix.Munmap(a.mem)
		return nil, err
	}
	for i := range steps {
		if err := a.fill(i, &steps[i], it.p.Calls); err != nil {
			a.close()
			return nil, err
		}
	}
	return a, nil
}

func (a *arguments) close() {
	a.free()
	_ = unix.Munmap(a.mem)
}

func (a *arguments) fill(i int, s *Step, numbers map[string]int64) error {
	nr, ok := numbers[s.Call]
	if !ok {
		return words("the program has no number of the call " + s.Call)
	}
	c := &a.calls[i]
	c.trap = uintptr(nr)
	switch s.Call {
	case "clone", "clone3", "fork", "vfork":
		c.forks = true
	}
	for j, text := range s.Args[:min(len(s.Args), len(c.args))] {
		n, data, err := argument(text, os.Getpid())
		if err != nil {
			return words(err.Error())
		}
		c.args[j] = uintptr(n)
		if data == nil {
			continue
		}
		kind := kindOf(text)
		at := a.mem[a.used : a.used+len(data)]
		a.used += (len(data) + 15) &^ 7
		copy(at, data)
		if opened(kind) {
			c.opens[j] = opening{path: address(at), flags: openFlags(kind)}
			continue
		}
		c.args[j] = address(at)
		if kind == "buf:" {
			a.buffers[i] = append(a.buffers[i], at)
		}
	}
	return nil
}

// openFlags is how a descriptor is opened that is an argument.
func openFlags(kind string) uintptr {
	switch kind {
	case "fdw:":
		return unix.O_WRONLY | calm
	case "fdp:":
		return unix.O_PATH | unix.O_CLOEXEC
	}
	return unix.O_RDONLY | calm
}

// here makes the call in this process.
func (c *call) here() {
	for i, o := range c.opens {
		if o.path == 0 {
			continue
		}
		fd, _, errno := syscall.Syscall6(unix.SYS_OPENAT, atFDCWD, o.path, o.flags, 0, 0, 0)
		if errno != 0 {
			c.errno = uintptr(errno)
			return
		}
		defer unix.Close(int(fd))
		c.args[i] = fd
	}
	r, _, errno := syscall.Syscall6(c.trap, c.args[0], c.args[1], c.args[2], c.args[3], c.args[4], c.args[5])
	c.r, c.errno = r, uintptr(errno)
}

// brought is the value of a call: what it returned, and what is now in the
// buffers that it was given.
func (a *arguments) brought(i int) (string, error) {
	c := &a.calls[i]
	if c.errno != 0 {
		return "", syscall.Errno(c.errno)
	}
	text := fmt.Sprint(int64(c.r))
	for _, b := range a.buffers[i] {
		if data := strings.TrimRight(string(b), "\x00"); data != "" {
			text += " " + data
		}
	}
	return text, nil
}

// doSyscall calls in this process, where later steps see what it changed.
func doSyscall(it *interp, s *Step) (string, error) {
	if alone(s.Call) {
		l := it.aside([]Step{*s})[0]
		if !l.OK {
			return "", words(l.Errno)
		}
		return l.Value, nil
	}
	a, err := it.prepare([]Step{*s})
	if err != nil {
		return "", err
	}
	defer a.close()
	a.calls[0].here()
	return a.brought(0)
}

// aside does calls in a process of their own.
func (it *interp) aside(steps []Step) []Line {
	lines := make([]Line, len(steps))
	a, err := it.prepare(steps)
	if err == nil {
		defer a.close()
		var pid int
		if pid, err = forked(a.calls); err == nil {
			a.outcomes(it, steps, wait(pid), lines)
			return lines
		}
	}
	for i := range steps {
		lines[i] = it.line(&steps[i], "", err)
	}
	return lines
}

// outcomes tells of each call. The first one that is not done ended the child:
// by a signal, or it became another program.
func (a *arguments) outcomes(it *interp, steps []Step, status unix.WaitStatus, lines []Line) {
	var rest error
	for i := range steps {
		s := &steps[i]
		if a.calls[i].done {
			value, err := a.brought(i)
			lines[i] = it.line(s, value, err)
			continue
		}
		err := rest
		if rest == nil && status.Signaled() {
			err = ended(status)
		}
		lines[i] = it.line(s, "", err)
		rest = words(NotDone)
	}
}

func doIA32(_ *interp, s *Step) (string, error) {
	calls, free, err := sharedCalls(1)
	if err != nil {
		return "", err
	}
	defer free()
	c := &calls[0]
	c.trap, c.args[0] = trapInt80, uintptr(s.Number)
	for i, text := range s.Args[:min(len(s.Args), 2)] {
		n, err := number(text)
		if err != nil {
			return "", words(err.Error())
		}
		c.args[i+1] = uintptr(n)
	}
	pid, err := forked(calls)
	if err != nil {
		return "", err
	}
	status := wait(pid)
	switch {
	case !c.done:
		return "", ended(status)
	case c.errno != 0:
		return "", syscall.Errno(c.errno)
	}
	return fmt.Sprint(int32(c.r)), nil
}
