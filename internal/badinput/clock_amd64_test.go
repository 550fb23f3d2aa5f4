package badinput

import (
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// The wall clock of a host is everybody's, so no test sets it. Instead the
// command's own view of it jumps: it is traced, and each of its questions for
// CLOCK_REALTIME gets another answer. It asks the kernel because the page that
// answers without it is hidden from the command at its start.

// jumps are added to the wall clock, one after the other, at each question.
var jumps = []time.Duration{0, 10 * 365 * 24 * time.Hour, -20 * 365 * 24 * time.Hour, time.Hour, -time.Hour}

// tracer lets the wall clock of one process jump.
type tracer struct {
	leader int
	asked  int // questions that got another answer
}

// runWithJumps starts a command and follows it to its end.
func runWithJumps(t *testing.T, cmd *exec.Cmd) (asked int) {
	t.Helper()
	// All requests of one tracer come from one thread.
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	cmd.SysProcAttr = &syscall.SysProcAttr{Ptrace: true, Setpgid: true}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	late := time.AfterFunc(patience, func() { _ = unix.Kill(cmd.Process.Pid, unix.SIGKILL) })
	defer late.Stop()
	tr := &tracer{leader: cmd.Process.Pid}
	if err := tr.follow(); err != nil {
		t.Fatalf("trace: %v", err)
	}
	return tr.asked
}

// follow lets the process and its threads run until the process has ended.
// What it forks isn't followed.
func (tr *tracer) follow() error {
	var ws unix.WaitStatus
	if _, err := unix.Wait4(tr.leader, &ws, unix.WALL, nil); err != nil {
		return err
	}
	const options = unix.PTRACE_O_TRACECLONE | unix.PTRACE_O_TRACESYSGOOD | unix.PTRACE_O_EXITKILL
	if err := unix.PtraceSetOptions(tr.leader, options); err != nil {
		return err
	}
	if err := tr.hideVDSO(); err != nil {
		return err
	}
	for pid, sig := tr.leader, 0; ; {
		if err := unix.PtraceSyscall(pid, sig); err != nil && !errors.Is(err, unix.ESRCH) {
			return err
		}
		var err error
		if pid, err = unix.Wait4(-1, &ws, unix.WALL|unix.WNOTHREAD, nil); err != nil {
			return err
		}
		for ws.Exited() || ws.Signaled() {
			if pid == tr.leader {
				return nil
			}
			if pid, err = unix.Wait4(-1, &ws, unix.WALL|unix.WNOTHREAD, nil); err != nil {
				return err
			}
		}
		sig = tr.stopped(pid, ws)
	}
}

// stopped handles one stop and returns the signal to go on with.
func (tr *tracer) stopped(pid int, ws unix.WaitStatus) int {
	switch sig := ws.StopSignal(); {
	case sig == unix.SIGTRAP|0x80:
		tr.answer(pid)
		return 0
	case sig == unix.SIGTRAP, sig == unix.SIGSTOP:
		return 0 // a new thread
	default:
		return int(sig)
	}
}

// answer changes the time that the kernel has just told.
func (tr *tracer) answer(pid int) {
	var regs unix.PtraceRegs
	if unix.PtraceGetRegs(pid, &regs) != nil || regs.Orig_rax != unix.SYS_CLOCK_GETTIME ||
		regs.Rax != 0 || regs.Rdi != unix.CLOCK_REALTIME {
		return
	}
	var seconds [8]byte
	if _, err := unix.PtracePeekData(pid, uintptr(regs.Rsi), seconds[:]); err != nil {
		return
	}
	now := int64(binary.LittleEndian.Uint64(seconds[:])) + int64(jumps[tr.asked%len(jumps)]/time.Second)
	binary.LittleEndian.PutUint64(seconds[:], uint64(now))
	if _, err := unix.PtracePokeData(pid, uintptr(regs.Rsi), seconds[:]); err == nil {
		tr.asked++
	}
}

// hideVDSO takes the page with the kernel's own clock out of what the process
// is told at its start.
func (tr *tracer) hideVDSO() error {
	var regs unix.PtraceRegs
	if err := unix.PtraceGetRegs(tr.leader, &regs); err != nil {
		return err
	}
	at := uintptr(regs.Rsp)
	word := func() (uint64, error) {
		var b [8]byte
		_, err := unix.PtracePeekData(tr.leader, at, b[:])
		at += 8
		return binary.LittleEndian.Uint64(b[:]), err
	}
	if _, err := word(); err != nil { // argc
		return err
	}
	for range 2 { // arguments and environment, each to its NULL
		for {
			p, err := word()
			if err != nil {
				return err
			}
			if p == 0 {
				break
			}
		}
	}
	const sysinfoEHDR, ignore = 33, 1
	for {
		key, err := word()
		if err != nil || key == 0 {
			return err
		}
		if key == sysinfoEHDR {
			_, err := unix.PtracePokeData(tr.leader, at-8, []byte{ignore, 0, 0, 0, 0, 0, 0, 0})
			return err
		}
		at += 8
	}
}

// clockControl is a program that measures by the wall clock what it should
// measure by the other.
func clockControl() int {
	wall, other := time.Now().Round(0), time.Now()
	time.Sleep(50 * time.Millisecond)
	fmt.Println(time.Now().Round(0).Sub(wall), time.Since(other))
	return 0
}

// TestClockControl: the jumps are real to a program that looks at the clock.
func TestClockControl(t *testing.T) {
	cmd := exec.Command("/proc/self/exe")
	cmd.Env = append(os.Environ(), roleVariable+"=clock")
	var out strings.Builder
	cmd.Stdout = &out
	asked := runWithJumps(t, cmd)
	_ = cmd.Wait() // the tracer has reaped it
	var wall, other string
	if _, err := fmt.Sscan(out.String(), &wall, &other); err != nil {
		t.Fatalf("%q: %v", out.String(), err)
	}
	jumped, err1 := time.ParseDuration(wall)
	passed, err2 := time.ParseDuration(other)
	if err1 != nil || err2 != nil || jumped.Abs() < time.Hour-time.Minute || passed < 50*time.Millisecond || passed > time.Minute || asked == 0 {
		t.Errorf("wall clock %s, the other %s, %d questions", jumped, passed, asked)
	}
}

// TestClockJumps: neither does a limit come early or never, nor is a time in
// the result wrong, when the wall clock jumps by years in mid-run.
func TestClockJumps(t *testing.T) {
	nothingLeft(t)
	for name, r := range map[string]struct {
		code   string
		reason string
		least  time.Duration
	}{
		"limit": {"import time; time.sleep(600)", "limit:wall", 2 * time.Second},
		"end":   {"import time; time.sleep(.5); print(1)", "exited", 500 * time.Millisecond},
	} {
		c := prepare(t, runArgs(t, "--json", "--timeout", "2s", "-c", r.code)...)
		began := time.Now()
		asked := runWithJumps(t, c.cmd)
		took := time.Since(began)
		_ = c.cmd.Wait() // the tracer has reaped it
		var res struct {
			Exit  struct{ Reason string }
			Usage struct {
				WallMS int64 `json:"wall_ms"`
			}
		}
		if err := json.Unmarshal(c.stdout.Bytes(), &res); err != nil {
			t.Fatalf("%s: %v\n%s%s", name, err, c.stdout.String(), c.stderr.String())
		}
		said := time.Duration(res.Usage.WallMS+1) * time.Millisecond
		if res.Exit.Reason != r.reason || said < r.least || said > took || took > 30*time.Second {
			t.Errorf("%s: %s after %s, and it says %s", name, res.Exit.Reason, took, said)
		}
		if asked == 0 {
			t.Errorf("%s: it never asked for the time, so nothing jumped", name)
		}
	}
}
