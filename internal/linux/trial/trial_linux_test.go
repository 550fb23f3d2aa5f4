package trial

import (
	"errors"
	"fmt"
	"os"
	"runtime"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"tranca/internal/linux/forkexec"
)

// all are the trials by name.
func all() map[string]func() (Result, error) {
	return map[string]func() (Result, error){
		"user namespace": UserNamespace, "io_uring": IOURing, "keyrings": Keyrings, "bpf": Programs,
		"userfaultfd": UserFaults, "perf": PerformanceEvents, "kvm": KVM,
		"ia32": IA32, "x32": X32,
	}
}

func descriptors(t *testing.T) int {
	t.Helper()
	list, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		t.Fatal(err)
	}
	return len(list)
}

// TestTrials: each gives an answer in its time, leaves neither child nor
// descriptor, and the same answer again.
func TestTrials(t *testing.T) {
	if r, w, err := os.Pipe(); err == nil { // the runtime's own poller has descriptors, from the first file on
		r.Close()
		w.Close()
	}
	for name, try := range all() {
		t.Run(name, func(t *testing.T) {
			before, began := descriptors(t), time.Now()
			first, err := try()
			if errors.Is(err, errors.ErrUnsupported) && runtime.GOARCH != "amd64" {
				return
			}
			if err != nil || first.Reached == (first.Refused != "") {
				t.Fatalf("%+v, %v", first, err)
			}
			if took := time.Since(began); took > kvmLimit+5*time.Second {
				t.Errorf("it took %v", took)
			}
			second, err := try()
			if err != nil || first.Reached != second.Reached {
				t.Errorf("%+v, then %+v, %v", first, second, err)
			}
			if after := descriptors(t); after != before {
				t.Errorf("%d descriptors, %d before", after, before)
			}
			if pid, err := unix.Wait4(-1, nil, unix.WNOHANG, nil); err != unix.ECHILD {
				t.Errorf("a child is left: %d, %v", pid, err)
			}
			t.Logf("%+v", first)
		})
	}
}

const kvmLimit = 2 * time.Second

// TestAgainstTheKernelsWord compares trials with what the kernel says of
// itself, where it does.
func TestAgainstTheKernelsWord(t *testing.T) {
	number := func(path string) (n int, ok bool) {
		text, err := os.ReadFile(path)
		if err != nil {
			return 0, false
		}
		_, err = fmt.Sscan(string(text), &n)
		return n, err == nil
	}
	for name, c := range map[string]struct {
		path    string
		reached func(n int) bool
	}{
		"bpf":         {"/proc/sys/kernel/unprivileged_bpf_disabled", func(n int) bool { return n == 0 }},
		"userfaultfd": {"/proc/sys/vm/unprivileged_userfaultfd", func(n int) bool { return n == 1 }},
		"io_uring":    {"/proc/sys/kernel/io_uring_disabled", func(n int) bool { return n == 0 }},
	} {
		n, ok := number(c.path)
		if !ok {
			continue
		}
		got, err := all()[name]()
		if err != nil || got.Reached != c.reached(n) {
			t.Errorf("%s: %+v, %v, and %s is %d", name, got, err, c.path, n)
		}
	}
}

// TestAFilterIsSeen: a trial under a filter is refused, whether the filter
// answers or kills.
func TestAFilterIsSeen(t *testing.T) {
	for name, action := range map[string]uint32{
		"answers": unix.SECCOMP_RET_ERRNO | uint32(unix.EPERM), "kills": unix.SECCOMP_RET_KILL_PROCESS,
	} {
		s := forkexec.New(0)
		s.NoNewPrivileges()
		s.Seccomp([]unix.SockFilter{
			{Code: unix.BPF_LD | unix.BPF_W | unix.BPF_ABS, K: 0},
			{Code: unix.BPF_JMP | unix.BPF_JEQ | unix.BPF_K, K: unix.SYS_IO_URING_SETUP, Jf: 1},
			{Code: unix.BPF_RET | unix.BPF_K, K: action},
			{Code: unix.BPF_RET | unix.BPF_K, K: unix.SECCOMP_RET_ALLOW},
		})
		s.Call("io_uring_setup", unix.SYS_IO_URING_SETUP, 4, s.Memory(make([]byte, 120)))
		if got, err := attempt(s, wait); err != nil || got.Reached || got.Refused == "" {
			t.Errorf("%s: %+v, %v", name, got, err)
		}
	}
}

// TestDeadline: a call that never returns ends with its child.
func TestDeadline(t *testing.T) {
	s := forkexec.New(0)
	s.Call("pause", unix.SYS_PPOLL, 0, 0, 0, 0, 0)
	began := time.Now()
	_, err := s.Try(100 * time.Millisecond)
	if !errors.Is(err, os.ErrDeadlineExceeded) || time.Since(began) > 5*time.Second {
		t.Errorf("%v after %v", err, time.Since(began))
	}
}

func TestWritable(t *testing.T) {
	if !Writable(t.TempDir()) || Writable("/proc/version") && os.Geteuid() != 0 || Writable("/no/such/file") {
		t.Error("wrong about what can be written to")
	}
}
