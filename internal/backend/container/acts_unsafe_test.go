package container_test

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"
)

// act is something that a hostile program tries. It returns nil where it came
// through.
type act func(argument string) error

// reached turns a call's error around: whatever the kernel says but "no such
// right" or "no such call" shows that the call came through to it.
func reached(errno syscall.Errno) error {
	switch errno {
	case unix.EPERM, unix.EACCES, unix.ENOSYS:
		return errno
	}
	return nil
}

func raw(trap uintptr, args ...uintptr) syscall.Errno {
	var a [6]uintptr
	copy(a[:], args)
	_, _, e := unix.RawSyscall6(trap, a[0], a[1], a[2], a[3], a[4], a[5])
	return e
}

const bad = ^uintptr(0) - 4095 // no address of anything

// cloneInto forks into new namespaces; the child ends at once.
func cloneInto(flags uintptr) error {
	pid, _, e := unix.RawSyscall6(unix.SYS_CLONE, flags|uintptr(unix.SIGCHLD), 0, 0, 0, 0, 0)
	if e != 0 {
		return e
	}
	if pid == 0 {
		for {
			unix.RawSyscall(unix.SYS_EXIT_GROUP, 0, 0, 0)
		}
	}
	_, err := unix.Wait4(int(pid), nil, 0, nil)
	return err
}

// sleeper is a process of the program's own, to be looked into.
func sleeper() (*exec.Cmd, error) {
	cmd := exec.Command("/proc/self/exe", "sleep=1m")
	cmd.Env = append(os.Environ(), probeVariable+"=inside")
	return cmd, cmd.Start()
}

func onSleeper(f func(pid int) error) error {
	cmd, err := sleeper()
	if err != nil {
		return err
	}
	defer func() { _ = cmd.Process.Kill(); _ = cmd.Wait() }()
	return f(cmd.Process.Pid)
}

// memory reads or writes a child's memory by another call than its own.
func memory(trap uintptr) error {
	return onSleeper(func(pid int) error {
		var here, there [8]byte
		mine := unix.Iovec{Base: &here[0], Len: 8}
		theirs := unix.Iovec{Base: &there[0], Len: 8}
		runtime.KeepAlive(&there)
		return reached(raw(trap, uintptr(pid), uintptr(unsafe.Pointer(&mine)), 1, uintptr(unsafe.Pointer(&theirs)), 1, 0))
	})
}

func text(s string) uintptr {
	b, _ := unix.BytePtrFromString(s)
	return uintptr(unsafe.Pointer(b))
}

// kernelActs ask for parts of the kernel that no program needs.
var kernelActs = map[string]act{
	"clone user":       func(string) error { return cloneInto(unix.CLONE_NEWUSER) },
	"clone user mount": func(string) error { return cloneInto(unix.CLONE_NEWUSER | unix.CLONE_NEWNS) },
	"clone user net":   func(string) error { return cloneInto(unix.CLONE_NEWUSER | unix.CLONE_NEWNET) },
	"clone upper bits": func(string) error { return cloneInto(1<<32 | unix.CLONE_NEWUSER) },
	"unshare":          func(string) error { return reached(raw(unix.SYS_UNSHARE, unix.CLONE_NEWUSER)) },
	"setns": func(string) error {
		fd, err := unix.Open("/proc/self/ns/uts", unix.O_RDONLY, 0)
		if err != nil {
			return err
		}
		return reached(raw(unix.SYS_SETNS, uintptr(fd), unix.CLONE_NEWUTS))
	},
	"setns user": func(string) error {
		fd, err := unix.Open("/proc/self/ns/user", unix.O_RDONLY, 0)
		if err != nil {
			return err
		}
		return reached(raw(unix.SYS_SETNS, uintptr(fd), unix.CLONE_NEWUSER)) // EINVAL: it is in it
	},
	"add_key": func(string) error {
		return reached(raw(unix.SYS_ADD_KEY, text("user"), text("tranca"), text("x"), 1, ^uintptr(1)))
	},
	"keyctl":            func(string) error { return reached(raw(unix.SYS_KEYCTL, 0, ^uintptr(1), 1)) },
	"request_key":       func(string) error { return reached(raw(unix.SYS_REQUEST_KEY, text("user"), text("tranca"), 0, 0)) },
	"userfaultfd":       func(string) error { return reached(raw(unix.SYS_USERFAULTFD, 1)) },
	"io_uring_setup":    func(string) error { return reached(raw(unix.SYS_IO_URING_SETUP, 4, bad)) },
	"io_uring_enter":    func(string) error { return reached(raw(unix.SYS_IO_URING_ENTER, ^uintptr(0))) },
	"io_uring_register": func(string) error { return reached(raw(unix.SYS_IO_URING_REGISTER, ^uintptr(0))) },
	"bpf":               func(string) error { return reached(raw(unix.SYS_BPF, 0, bad, 72)) },
	"perf_event_open":   func(string) error { return reached(raw(unix.SYS_PERF_EVENT_OPEN, bad, 0, ^uintptr(0), ^uintptr(0), 0)) },
	"ptrace": func(string) error {
		return onSleeper(func(pid int) error { return reached(raw(unix.SYS_PTRACE, unix.PTRACE_SEIZE, uintptr(pid))) })
	},
	"process_vm_readv":  func(string) error { return memory(unix.SYS_PROCESS_VM_READV) },
	"process_vm_writev": func(string) error { return memory(unix.SYS_PROCESS_VM_WRITEV) },
	"pidfd_getfd": func(string) error {
		return onSleeper(func(pid int) error {
			fd, err := unix.PidfdOpen(pid, 0)
			if err != nil {
				return err
			}
			return reached(raw(unix.SYS_PIDFD_GETFD, uintptr(fd), 0, 0))
		})
	},
	"init_module":       func(string) error { return reached(raw(unix.SYS_INIT_MODULE, bad, 1, bad)) },
	"kexec_load":        func(string) error { return reached(raw(unix.SYS_KEXEC_LOAD, 0, 0, 0, ^uintptr(0))) },
	"swapon":            func(string) error { return reached(raw(unix.SYS_SWAPON, bad, 0)) },
	"reboot":            func(string) error { return reached(raw(unix.SYS_REBOOT, 0, 0, 0, 0)) },
	"settimeofday":      func(string) error { return reached(raw(unix.SYS_SETTIMEOFDAY, bad, 0)) },
	"syslog":            func(string) error { return reached(raw(unix.SYS_SYSLOG, 10, 0, 0)) },
	"acct":              func(string) error { return reached(raw(unix.SYS_ACCT, bad)) },
	"quotactl":          func(string) error { return reached(raw(unix.SYS_QUOTACTL, ^uintptr(0), bad, 0, 0)) },
	"personality":       func(string) error { return reached(raw(unix.SYS_PERSONALITY, 0x0040000)) },
	"open_by_handle_at": func(string) error { return reached(raw(unix.SYS_OPEN_BY_HANDLE_AT, ^uintptr(0), bad, 0)) },
	"huge pages": func(string) error {
		_, err := unix.Mmap(-1, 0, 2<<20, unix.PROT_READ, unix.MAP_PRIVATE|unix.MAP_ANONYMOUS|unix.MAP_HUGETLB)
		return err
	},
	"real time": func(string) error {
		p := struct{ priority int32 }{1}
		return reached(raw(unix.SYS_SCHED_SETSCHEDULER, 0, unix.SCHED_FIFO, uintptr(unsafe.Pointer(&p))))
	},
	"negative nice": func(string) error { return unix.Setpriority(unix.PRIO_PROCESS, 0, -5) },
	"lower the OOM score": func(string) error {
		return os.WriteFile("/proc/self/oom_score_adj", []byte("-1"), 0)
	},
	"AF_PACKET":  socketAct(unix.AF_PACKET, unix.SOCK_RAW),
	"AF_NETLINK": socketAct(unix.AF_NETLINK, unix.SOCK_RAW),
	"AF_ALG":     socketAct(38, unix.SOCK_SEQPACKET),
	"AF_VSOCK":   socketAct(40, unix.SOCK_STREAM),
	"raw IP":     func(string) error { return socketOf(unix.AF_INET, unix.SOCK_RAW, unix.IPPROTO_ICMP) },
	"ping":       func(string) error { return socketOf(unix.AF_INET, unix.SOCK_DGRAM, unix.IPPROTO_ICMP) },
}

func socketAct(family, kind int) act {
	return func(string) error { return socketOf(family, kind, 0) }
}

// socketOf makes a socket.
func socketOf(family, kind, protocol int) error {
	fd, err := unix.Socket(family, kind, protocol)
	if err != nil {
		return err
	}
	return unix.Close(fd)
}

// mountActs change the tree.
var mountActs = map[string]act{
	"mount": func(string) error {
		return reached(raw(unix.SYS_MOUNT, text("tmpfs"), text("/tmp"), text("tmpfs"), 0, 0))
	},
	"remount": func(string) error {
		return reached(raw(unix.SYS_MOUNT, 0, text("/"), 0, unix.MS_REMOUNT|unix.MS_BIND, 0))
	},
	"umount":        func(string) error { return reached(raw(unix.SYS_UMOUNT2, text("/proc/kcore"), 0)) },
	"pivot_root":    func(string) error { return reached(raw(unix.SYS_PIVOT_ROOT, bad, bad)) },
	"fsopen":        func(string) error { return reached(raw(unix.SYS_FSOPEN, bad, 0)) },
	"move_mount":    func(string) error { return reached(raw(unix.SYS_MOVE_MOUNT, ^uintptr(0), bad, ^uintptr(0), bad, 0)) },
	"mount_setattr": func(string) error { return reached(raw(unix.SYS_MOUNT_SETATTR, ^uintptr(0), bad, 0, bad, 32)) },
	"chroot":        func(string) error { return reached(raw(unix.SYS_CHROOT, text("/work"))) },
	"mknod": func(string) error {
		path := fmt.Sprintf("/tmp/node-%d", os.Getpid())
		defer os.Remove(path)
		return unix.Mknod(path, unix.S_IFCHR|0o600, int(unix.Mkdev(1, 3)))
	},
}

// fileActs look for what is the host's.
var fileActs = map[string]act{
	"read":       func(path string) error { b, err := os.ReadFile(path); return something(len(b), err) },
	"open write": func(path string) error { return openFor(path, unix.O_WRONLY) },
	"open read":  func(path string) error { return openFor(path, unix.O_RDONLY) },
	"make file": func(dir string) error {
		path := filepath.Join(dir, "made")
		defer os.Remove(path)
		return os.WriteFile(path, nil, 0o600)
	},
	"rename":        func(path string) error { return os.Rename(path, path+".moved") },
	"dial unix":     func(path string) error { return dial("unix", path) },
	"dial abstract": func(name string) error { return dial("unix", "@"+name) },
	"dial tcp":      func(address string) error { return dial("tcp", address) },
	"see process": func(mark string) error {
		mark = strings.ToLower(mark) // or this process would be found
		lines, _ := filepath.Glob("/proc/[0-9]*/cmdline")
		for _, l := range lines {
			if b, err := os.ReadFile(l); err == nil && strings.Contains(string(b), mark) {
				return nil
			}
		}
		return errors.New("there is none")
	},
	"signal process": func(pid string) error {
		var n int
		if _, err := fmt.Sscan(pid, &n); err != nil {
			return err
		}
		return unix.Kill(n, 0)
	},
	"shared memory": func(key string) error {
		var n uintptr
		if _, err := fmt.Sscan(key, &n); err != nil {
			return err
		}
		if e := raw(unix.SYS_SHMGET, n, 4096, 0); e != 0 {
			return e
		}
		return nil
	},
	"make shared memory": func(key string) error {
		var n uintptr
		if _, err := fmt.Sscan(key, &n); err != nil {
			return err
		}
		if e := raw(unix.SYS_SHMGET, n, 4096, 0o1666); e != 0 {
			return e
		}
		return nil
	},
	"devices": func(string) error {
		known := map[string]bool{}
		for _, n := range strings.Fields("console core fd full mqueue null ptmx pts random shm stderr stdin stdout tty urandom zero") {
			known[n] = true
		}
		entries, err := os.ReadDir("/dev")
		if err != nil {
			return err
		}
		for _, e := range entries {
			if !known[e.Name()] {
				return nil // one more
			}
		}
		return errors.New("only the usual ones")
	},
	"group": func(string) error {
		var found []string
		_ = filepath.WalkDir("/sys/fs/cgroup", func(p string, d os.DirEntry, err error) error {
			if err == nil && !d.IsDir() {
				found = append(found, p)
			}
			return nil
		})
		if len(found) == 0 {
			return errors.New("no control group is in sight")
		}
		return nil
	},
	"end the first process": func(string) error {
		for _, s := range []unix.Signal{unix.SIGTERM, unix.SIGSEGV, unix.SIGSTOP, unix.SIGKILL} {
			_ = unix.Kill(1, s)
		}
		time.Sleep(100 * time.Millisecond)
		b, err := os.ReadFile("/proc/1/status")
		if err == nil && (strings.Contains(string(b), "State:\tZ") || strings.Contains(string(b), "State:\tT")) {
			return nil
		}
		return errors.New("it lives")
	},
	"capability": func(name string) error {
		return status(name, func(v string) bool { return strings.Trim(v, "0") != "" })
	},
	"new privileges": func(string) error { return status("NoNewPrivs", func(v string) bool { return v != "1" }) },
	"unfiltered":     func(string) error { return status("Seccomp", func(v string) bool { return v != "2" }) },
	"same user":      func(string) error { return sameUser() },
	"become root":    func(string) error { return unix.Setresuid(0, 0, 0) },
	"hard link":      func(path string) error { return os.Link(path, "/work/linked") },
	"variable":       func(name string) error { _, ok := os.LookupEnv(name); return there(ok) },
	"terminal":       func(string) error { return openFor("/dev/tty", unix.O_RDWR) },
	"list":           func(path string) error { e, err := os.ReadDir(path); return something(len(e), err) },
}

// something is nil where something was found.
func something(n int, err error) error {
	if err != nil {
		return err
	}
	return there(n > 0)
}

func there(ok bool) error {
	if !ok {
		return errors.New("it is not there")
	}
	return nil
}

func openFor(path string, flags int) error {
	fd, err := unix.Open(path, flags|unix.O_NONBLOCK|unix.O_NOCTTY, 0)
	if err != nil {
		return err
	}
	return unix.Close(fd)
}

// status looks at a field of the kernel's word on this process.
func status(name string, so func(string) bool) error {
	b, err := os.ReadFile("/proc/self/status")
	if err != nil {
		return err
	}
	for line := range strings.Lines(string(b)) {
		if v, ok := strings.CutPrefix(line, name+":"); ok {
			return there(so(strings.TrimSpace(v)))
		}
	}
	return errors.New("there is no such field")
}

// sameUser reports whether this user is the same outside of its namespace.
func sameUser() error {
	b, err := os.ReadFile("/proc/self/uid_map")
	if err != nil {
		return err
	}
	var inside, outside, count int
	for line := range strings.Lines(string(b)) {
		if _, err := fmt.Sscan(line, &inside, &outside, &count); err != nil {
			return err
		}
		if d := os.Getuid() - inside; d >= 0 && d < count && outside+d == os.Getuid() {
			return nil
		}
	}
	return errors.New("it is mapped")
}
