//go:build linux

package forkexec

import (
	"errors"
	"io"
	"os"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"tranca/internal/require"
)

func wait(t *testing.T, pid int) unix.WaitStatus {
	t.Helper()
	var ws unix.WaitStatus
	for {
		_, err := unix.Wait4(pid, &ws, unix.WALL, nil)
		if err == unix.EINTR {
			continue
		}
		if err != nil {
			t.Fatal(err)
		}
		return ws
	}
}

func TestSpawnRunsWithItsFilesAndNothingElse(t *testing.T) {
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	null, err := os.Open("/dev/null")
	if err != nil {
		t.Fatal(err)
	}
	defer null.Close()
	// A descriptor without close-on-exec must not reach the program.
	leak, err := unix.FcntlInt(null.Fd(), unix.F_DUPFD, 100)
	if err != nil {
		t.Fatal(err)
	}
	defer unix.Close(leak)

	s := New(0).WithPIDFD()
	s.Setsid()
	s.Files([]int{int(null.Fd()), int(w.Fd()), int(w.Fd())})
	s.Rlimit(unix.RLIMIT_NOFILE, 64, 64)
	s.Umask(0o27)
	s.Chdir("/")
	s.Exec("/bin/sh", []string{"sh", "-c", `echo "$A $(pwd) $(umask) $(ulimit -n)"; ls /proc/$$/fd`}, []string{"A=b", "PATH=/usr/bin:/bin"})
	c, err := s.Spawn()
	w.Close()
	if err != nil {
		t.Fatal(err)
	}
	defer unix.Close(c.PIDFD)
	out, _ := io.ReadAll(r)
	if ws := wait(t, c.PID); ws.ExitStatus() != 0 {
		t.Errorf("status %v", ws)
	}
	lines := strings.Split(strings.TrimSpace(string(out)), "\n")
	if lines[0] != "b / 0027 64" {
		t.Errorf("first line %q", lines[0])
	}
	for _, fd := range lines[1:] {
		// dash keeps its script's descriptor 10 only when it reads a file.
		if fd != "0" && fd != "1" && fd != "2" {
			t.Errorf("descriptor %s reached the program", fd)
		}
	}
}

// A descriptor whose number is that of a place in the child must survive the
// placing, whether it is a program's file or the program itself.
func TestFilesInAnyOrder(t *testing.T) {
	sh, err := os.Open("/bin/sh")
	if err != nil {
		t.Fatal(err)
	}
	defer sh.Close()
	var files []*os.File
	var readers []*os.File
	for range 12 {
		r, w, err := os.Pipe()
		if err != nil {
			t.Fatal(err)
		}
		defer r.Close()
		defer w.Close()
		readers = append(readers, r)
		files = append(files, w)
	}
	// Places 0 to 11 in reverse: most numbers are both a source and a place.
	var fds []int
	for i := range files {
		fds = append(fds, int(files[len(files)-1-i].Fd()))
	}
	s := New(0)
	moved := s.Files(fds, int(sh.Fd()))
	s.ExecFD(moved[0], []string{"sh", "-c", "for i in 0 1 2 3 4 5 6 7 8 9; do eval \"echo $i >&$i\"; done"}, nil)
	c, err := s.Spawn()
	if err != nil {
		t.Fatal(err)
	}
	wait(t, c.PID)
	for i := range 10 {
		buf := make([]byte, 8)
		n, _ := readers[len(readers)-1-i].Read(buf)
		if got := string(buf[:n]); got != strconv.Itoa(i)+"\n" {
			t.Errorf("place %d wrote %q", i, got)
		}
	}
}

func TestSpawnNamesTheStepThatFailed(t *testing.T) {
	for _, tt := range []struct {
		name  string
		build func(*Script)
		step  string
		errno syscall.Errno
	}{
		{"exec", func(s *Script) { s.Exec("/no/such", []string{"x"}, nil) }, "exec /no/such", unix.ENOENT},
		{"chdir", func(s *Script) { s.Chdir("/no/such"); s.Exec("/bin/true", []string{"x"}, nil) }, "chdir /no/such", unix.ENOENT},
		{"join", func(s *Script) { s.Join(999); s.Exec("/bin/true", []string{"x"}, nil) }, "join cgroup", unix.EBADF},
	} {
		t.Run(tt.name, func(t *testing.T) {
			s := New(0)
			tt.build(s)
			_, err := s.Spawn()
			var e *Error
			if !errors.As(err, &e) || e.Step != tt.step || e.Errno != tt.errno {
				t.Fatalf("got %v, want step %q errno %v", err, tt.step, tt.errno)
			}
		})
	}
}

func TestNULIsRefusedBeforeTheFork(t *testing.T) {
	s := New(0)
	s.Exec("/bin/true", []string{"a\x00b"}, nil)
	if _, err := s.Spawn(); err == nil {
		t.Fatal("a NUL passed")
	}
}

func TestHoldIsAnInitThatReaps(t *testing.T) {
	require.Root(t)
	s := New(unix.CLONE_NEWPID).WithPIDFD()
	s.ReapOrphans()
	s.RecordPID()
	c, err := s.Hold()
	if err != nil {
		t.Fatal(err)
	}
	defer unix.Close(c.PIDFD)
	if err := unix.PidfdSendSignal(c.PIDFD, 0, nil, 0); err != nil {
		t.Errorf("the held child is not alive: %v", err)
	}
	if err := unix.PidfdSendSignal(c.PIDFD, unix.SIGKILL, nil, 0); err != nil {
		t.Error(err)
	}
	if ws := wait(t, c.PID); ws.Signal() != unix.SIGKILL {
		t.Errorf("status %v", ws)
	}
}

func TestOpenLeavesTheDescriptorToTheParent(t *testing.T) {
	require.Root(t)
	s := New(0)
	s.Unshare(unix.CLONE_NEWUTS)
	s.Open("/proc/self/ns/uts")
	s.Exit()
	c, err := s.Spawn()
	if err != nil {
		t.Fatal(err)
	}
	defer unix.Close(c.Opened)
	if ws := wait(t, c.PID); ws.ExitStatus() != 0 {
		t.Errorf("status %v", ws)
	}
	var theirs, ours unix.Stat_t
	if err := errors.Join(unix.Fstat(c.Opened, &theirs), unix.Stat("/proc/self/ns/uts", &ours)); err != nil {
		t.Fatal(err)
	}
	if theirs.Ino == ours.Ino {
		t.Error("it is the parent's own namespace")
	}
	flags, err := unix.FcntlInt(uintptr(c.Opened), unix.F_GETFD, 0)
	if err != nil || flags&unix.FD_CLOEXEC == 0 {
		t.Errorf("flags %#x, %v: later programs would have it", flags, err)
	}
}

func TestHoldReportsAFailure(t *testing.T) {
	s := New(0)
	s.Chdir("/no/such")
	_, err := s.Hold()
	var e *Error
	if !errors.As(err, &e) || e.Step != "chdir /no/such" {
		t.Fatalf("got %v", err)
	}
}

func BenchmarkSpawnTrue(b *testing.B) {
	for b.Loop() {
		s := New(0)
		s.Exec("/bin/true", []string{"true"}, nil)
		c, err := s.Spawn()
		if err != nil {
			b.Fatal(err)
		}
		unix.Wait4(c.PID, nil, 0, nil)
	}
}
