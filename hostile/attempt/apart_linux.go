package attempt

import (
	"fmt"
	"runtime"
	"strings"

	"golang.org/x/sys/unix"
)

// kindFlags are the flags of unshare for kinds of namespaces.
func kindFlags(kinds string) (flags uintptr) {
	for _, kind := range strings.Split(kinds, "+") {
		switch kind {
		case "user":
			flags |= unix.CLONE_NEWUSER
		case "mount":
			flags |= unix.CLONE_NEWNS
		case "pid":
			flags |= unix.CLONE_NEWPID
		case "net":
			flags |= unix.CLONE_NEWNET
		case "ipc":
			flags |= unix.CLONE_NEWIPC
		case "uts":
			flags |= unix.CLONE_NEWUTS
		case "cgroup":
			flags |= unix.CLONE_NEWCGROUP
		case "time":
			flags |= unix.CLONE_NEWTIME
		}
	}
	return flags
}

// between are the processes that wait for a child in namespaces in its place,
// the nearest first.
type between struct {
	waits []*call
	close func()
}

// ended is how the child ended, from how the first between it and us did.
func (b *between) ended(status unix.WaitStatus) unix.WaitStatus {
	if b == nil {
		return status
	}
	for _, c := range b.waits {
		if status.Signaled() {
			break
		}
		status = unix.WaitStatus(c.r)
	}
	return status
}

func (b *between) free() {
	if b != nil {
		b.close()
	}
}

// startApart starts a program in new namespaces. A process of one thread, made
// for it, does what the kernel refuses to this one; it becomes the program, or
// a child of it does where the namespaces are those of its children: of pids and
// of time. In one of pids there is one more between, for the first process of
// one can't be killed from inside, not by its own timer either.
func startApart(kinds string, argv, env []string, files []uintptr) (c begun, err error) {
	var began [2]int // at its end when it is settled what came of it
	if err := unix.Pipe2(began[:], unix.O_CLOEXEC); err != nil {
		return c, err
	}
	defer func() { unix.Close(began[0]) }()
	list, waits, keep, err := apart(kinds, argv, env, uintptr(began[1]))
	if err == nil {
		var high []int
		high, err = highFiles(files)
		for i, fd := range high {
			defer unix.Close(fd)
			dup := call{trap: unix.SYS_DUP3, must: true, args: [6]uintptr{uintptr(fd), uintptr(i)}}
			list = append(list[:len(list)-1], dup, list[len(list)-1])
		}
	}
	if err != nil {
		unix.Close(began[1])
		return c, err
	}
	calls, free, err := sharedCalls(len(list))
	if err != nil {
		unix.Close(began[1])
		return c, err
	}
	copy(calls, list)
	c.between = &between{close: free}
	for _, i := range waits {
		c.between.waits = append(c.between.waits, &calls[i])
	}
	c.pid, err = forked(calls)
	unix.Close(began[1])
	runtime.KeepAlive(keep)
	if err == nil {
		_, _ = readByte(began[0])
		if err = failure(calls); err != nil {
			wait(c.pid)
		}
	}
	if err != nil {
		free()
		return begun{}, err
	}
	return c, nil
}

// failure is that of the call with which a child ended.
func failure(calls []call) error {
	for i := range calls {
		if calls[i].must && calls[i].done && calls[i].errno != 0 {
			return unix.Errno(calls[i].errno)
		}
	}
	return nil
}

// highFiles copies descriptors to numbers above those that they are to have.
func highFiles(files []uintptr) (high []int, err error) {
	for _, fd := range files {
		n, err := unix.FcntlInt(fd, unix.F_DUPFD_CLOEXEC, 16)
		if err != nil {
			for _, n := range high {
				unix.Close(n)
			}
			return nil, err
		}
		high = append(high, n)
	}
	return high, nil
}

// apart lists what the process does, the last being that it becomes the
// program; waits are the indices of those that wait. What the calls point to is
// alive as long as keep is.
func apart(kinds string, argv, env []string, began uintptr) (list []call, waits []int, keep []any, err error) {
	flags := kindFlags(kinds)
	become, keep, err := execCall(argv[0], argv, env)
	if err != nil {
		return nil, nil, nil, err
	}
	list = []call{{trap: unix.SYS_UNSHARE, must: true, args: [6]uintptr{flags}}}
	if flags&unix.CLONE_NEWUSER != 0 {
		// Where they can't be written the ids stay unmapped.
		for _, f := range [][2]string{
			{"/proc/self/setgroups", "deny"},
			{"/proc/self/uid_map", fmt.Sprintf("0 %d 1", unix.Geteuid())},
			{"/proc/self/gid_map", fmt.Sprintf("0 %d 1", unix.Getegid())},
		} {
			path, text := append([]byte(f[0]), 0), []byte(f[1])
			list = append(list, call{trap: unix.SYS_WRITE, args: [6]uintptr{0, address(text), uintptr(len(text))},
				opens: [6]opening{{path: address(path), flags: unix.O_WRONLY | unix.O_CLOEXEC}}})
			keep = append(keep, path, text)
		}
	}
	for _, kind := range []uintptr{unix.CLONE_NEWPID | unix.CLONE_NEWTIME, unix.CLONE_NEWPID} {
		if flags&kind != 0 {
			waits = append(waits, len(list))
			list = append(list, call{trap: trapWait, must: true, args: [6]uintptr{began}})
		}
	}
	return append(list, become), waits, keep, nil
}
