package confine

import (
	"fmt"
	"os"
	"runtime"
	"strconv"

	"golang.org/x/sys/unix"

	"tranca"
	"tranca/internal/guest/image"
	"tranca/internal/linux/forkexec"
)

// Namespaces are those that every sandbox has for itself. The cgroup namespace
// comes later, inside, when there is a cgroup to be its root.
const Namespaces = unix.CLONE_NEWUSER | unix.CLONE_NEWNS | unix.CLONE_NEWPID |
	unix.CLONE_NEWNET | unix.CLONE_NEWIPC | unix.CLONE_NEWUTS

// bootCaps are what the agent needs to build the sandbox, in its own user
// namespace only. Package boot drops all but three of them.
const bootCaps = 1<<unix.CAP_SYS_ADMIN | 1<<unix.CAP_SETUID | 1<<unix.CAP_SETGID |
	1<<unix.CAP_SETPCAP | 1<<unix.CAP_KILL | 1<<unix.CAP_NET_ADMIN | 1<<unix.CAP_CHOWN |
	1<<unix.CAP_DAC_OVERRIDE | 1<<unix.CAP_DAC_READ_SEARCH | 1<<unix.CAP_FOWNER |
	1<<unix.CAP_SYS_PTRACE // to join the namespaces of a child by its descriptor

// AgentEnv is the whole environment of the agent: nothing of the host's. One
// processor is enough for it, and spares each start the others' caches. Garbage
// is collected before agentMemory would end it.
var AgentEnv = []string{"GOMAXPROCS=1", "GOMEMLIMIT=44MiB"}

// Spawner forks all agents from one thread that lives as long as the backend.
// The kernel's parent death signal watches the thread that forked, not the
// process: a goroutine's thread could end at any time and take sandboxes with
// it.
type Spawner struct {
	jobs chan func()
}

// NewSpawner starts the thread.
func NewSpawner() *Spawner {
	s := &Spawner{jobs: make(chan func())}
	go func() {
		runtime.LockOSThread()
		// This thread's children start without supplementary groups, where it
		// may give them up; the agent looks for itself.
		_, _, _ = unix.RawSyscall(unix.SYS_SETGROUPS, 0, 0, 0)
		for f := range s.jobs {
			f()
		}
		// Not unlocked: the thread ends here, and with it what it forked.
	}()
	return s
}

// Spawn forks by a script.
func (s *Spawner) Spawn(script *forkexec.Script) (c forkexec.Child, err error) {
	done := make(chan struct{})
	s.jobs <- func() {
		c, err = script.Spawn()
		close(done)
	}
	<-done
	return c, err
}

// For is Spawn or, where a network namespace was made ahead, SpawnIn into that;
// the plan then asks for none.
func (s *Spawner) For(a *Allotment, pl *Plan) func(*forkexec.Script) (forkexec.Child, error) {
	if a.Network == nil || pl.Spaces&unix.CLONE_NEWNET == 0 {
		return s.Spawn
	}
	pl.Spaces &^= unix.CLONE_NEWNET
	return func(script *forkexec.Script) (forkexec.Child, error) { return s.SpawnIn(a.Network, script) }
}

// SpawnIn is Spawn into a network namespace. A thread that can't come back
// from there would put other sandboxes into it, so that is the end.
func (s *Spawner) SpawnIn(network *os.File, script *forkexec.Script) (c forkexec.Child, err error) {
	done := make(chan struct{})
	s.jobs <- func() {
		defer close(done)
		own, openErr := os.Open("/proc/thread-self/ns/net")
		if err = openErr; err != nil {
			return
		}
		defer own.Close()
		if err = os.NewSyscallError("setns network", unix.Setns(int(network.Fd()), unix.CLONE_NEWNET)); err != nil {
			return
		}
		c, err = script.Spawn()
		if back := unix.Setns(int(own.Fd()), unix.CLONE_NEWNET); back != nil {
			panic("tranca: can't leave a sandbox's network namespace: " + back.Error())
		}
	}
	<-done
	return c, err
}

// Close ends the thread, and with it whatever it forked that still lives.
func (s *Spawner) Close() { close(s.jobs) }

// AgentImage is the agent's binary in a sealed file that has no name, so that
// nobody, inside or outside, can change what later sandboxes start from.
func AgentImage() (*os.File, error) {
	flags := unix.MFD_CLOEXEC | unix.MFD_ALLOW_SEALING
	fd, err := unix.MemfdCreate("init", flags|unix.MFD_EXEC)
	if err == unix.EINVAL { // before Linux 6.3 every such file is executable
		fd, err = unix.MemfdCreate("init", flags)
	}
	if err != nil {
		return nil, fmt.Errorf("%w: guest agent image: memfd_create: %w", tranca.ErrUnavailable, err)
	}
	f := os.NewFile(uintptr(fd), "init")
	if err := image.WriteTo(f); err != nil {
		f.Close()
		return nil, fmt.Errorf("guest agent image: %w", err)
	}
	if err := unix.Fchmod(fd, 0o555); err != nil {
		f.Close()
		return nil, fmt.Errorf("%w: guest agent image: fchmod: %w", tranca.ErrUnavailable, err)
	}
	seals := unix.F_SEAL_SEAL | unix.F_SEAL_WRITE | unix.F_SEAL_GROW | unix.F_SEAL_SHRINK
	if _, err := unix.FcntlInt(f.Fd(), unix.F_ADD_SEALS, seals); err != nil {
		f.Close()
		return nil, fmt.Errorf("%w: seal guest agent image: %w", tranca.ErrUnavailable, err)
	}
	return f, nil
}

// IDMap is one line of a uid_map: length 1 each.
type IDMap struct{ Inside, Outside uint32 }

func formatMaps(maps []IDMap) string {
	var s string
	for _, m := range maps {
		s += strconv.FormatUint(uint64(m.Inside), 10) + " " + strconv.FormatUint(uint64(m.Outside), 10) + " 1\n"
	}
	return s
}

// WriteMaps maps users and groups of a child that this process may map itself.
func WriteMaps(pid int, uids, gids []IDMap, setgroups bool) error {
	dir := "/proc/" + strconv.Itoa(pid)
	if !setgroups {
		if err := writeOnce(dir+"/setgroups", "deny"); err != nil {
			return err
		}
	}
	if err := writeOnce(dir+"/gid_map", formatMaps(gids)); err != nil {
		return err
	}
	return writeOnce(dir+"/uid_map", formatMaps(uids))
}

func writeOnce(path, content string) error {
	fd, err := unix.Open(path, unix.O_WRONLY|unix.O_CLOEXEC, 0)
	if err != nil {
		return &os.PathError{Op: "open", Path: path, Err: err}
	}
	defer unix.Close(fd)
	if _, err := unix.Write(fd, []byte(content)); err != nil {
		return &os.PathError{Op: "write", Path: path, Err: err}
	}
	return nil
}
