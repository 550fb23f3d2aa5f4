package attempt_test

import (
	"bytes"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"tranca/hostile/attempt"
	"tranca/internal/require"
)

// each runs a test for both interpreters of the own user.
func each(t *testing.T, f func(t *testing.T, i interpreter)) {
	require.Program(t, "python3")
	for _, i := range both()[:2] {
		t.Run(i.name, func(t *testing.T) { f(t, i) })
	}
}

// run runs steps and returns what came out, and how it ended.
func run(t *testing.T, i interpreter, folder, steps string) (string, error) {
	t.Helper()
	cmd := i.command(t, folder, program(t, steps, folder))
	var out bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, os.Stderr
	err := cmd.Run()
	return out.String(), err
}

// TestExit: an end on purpose is told of before, and is the last line.
func TestExit(t *testing.T) {
	each(t, func(t *testing.T, i interpreter) {
		out, err := run(t, i, i.place(t), `{"do":"exit","code":7},{"do":"ignore"}`)
		var code *exec.ExitError
		if !errors.As(err, &code) || code.ExitCode() != 7 {
			t.Errorf("ended with %v", err)
		}
		if got := lines(t, out, "/x"); len(got) != 1 || short(got[0]) != "0  ok" {
			t.Errorf("lines %v", got)
		}
	})
}

func TestRaise(t *testing.T) {
	each(t, func(t *testing.T, i interpreter) {
		for _, sig := range []syscall.Signal{unix.SIGKILL, unix.SIGTERM, unix.SIGSEGV, unix.SIGINT, unix.SIGSYS, 40} {
			out, err := run(t, i, i.place(t), `{"do":"raise","signal":`+strconv.Itoa(int(sig))+`}`)
			var end *exec.ExitError
			if !errors.As(err, &end) || end.Sys().(syscall.WaitStatus).Signal() != sig {
				t.Errorf("%v: ended with %v", sig, err)
			}
			if got := lines(t, out, "/x"); len(got) != 1 {
				t.Errorf("lines %v", got)
			}
		}
	})
}

// TestDeafReader: a program whose output nobody reads does its steps all the
// same, and a line begins at the beginning of a line.
func TestDeafReader(t *testing.T) {
	each(t, func(t *testing.T, i interpreter) {
		folder := i.place(t)
		r, w, err := os.Pipe()
		if err != nil {
			t.Fatal(err)
		}
		r.Close()
		cmd := i.command(t, folder, program(t, `{"do":"print","data":"x"},{"do":"spawn","steps":[{"do":"print","data":"x"},
			{"do":"write","path":"{dir}/b"}]},{"do":"write","path":"{dir}/a"}`, folder))
		cmd.Stdout = w
		if err := cmd.Run(); err != nil {
			t.Error(err)
		}
		w.Close()
		for _, name := range []string{"a", "b"} {
			if _, err := os.Stat(filepath.Join(folder, name)); err != nil {
				t.Error(err)
			}
		}
	})
}

// TestLooseChildren: what a program leaves on purpose is alive when it has
// ended, can be found by the mark, and ends by itself.
func TestLooseChildren(t *testing.T) {
	each(t, func(t *testing.T, i interpreter) {
		const alive = 1500 * time.Millisecond
		folder := i.place(t)
		steps := `{"do":"spawn","no_wait":true,"session":true,"close":true,"steps":[
			{"do":"repeat","for":60000,"every":20,"steps":[{"do":"write","path":"{dir}/beat","data":"x","append":true}]}]}`
		p := program(t, steps, folder)
		i.change = func(script string) string {
			return strings.Replace(script, "LOOSE = 60.0", "LOOSE = 1.5", 1)
		}
		if i.name == "go" {
			p.Within = &attempt.Within{Until: time.Now().Add(alive).UnixMilli()}
		}
		cmd := i.command(t, folder, p)
		if err := cmd.Run(); err != nil {
			t.Fatal(err)
		}
		began := time.Now()
		t.Cleanup(func() {
			for _, pid := range marked(t, p.Mark) {
				_ = unix.Kill(pid, unix.SIGKILL)
			}
		})
		if !grows(t, filepath.Join(folder, "beat")) {
			t.Error("nothing lives on")
		}
		if got := marked(t, p.Mark); len(got) != 1 {
			t.Errorf("processes with the mark: %v, want one", got)
		}
		for time.Since(began) < 20*time.Second && len(marked(t, p.Mark)) > 0 {
			time.Sleep(50 * time.Millisecond)
		}
		if got := marked(t, p.Mark); len(got) != 0 {
			t.Errorf("alive after %v: %v", time.Since(began), got)
		}
	})
}

func grows(t *testing.T, name string) bool {
	t.Helper()
	var first int64 = -1
	for end := time.Now().Add(10 * time.Second); time.Now().Before(end); time.Sleep(10 * time.Millisecond) {
		info, err := os.Stat(name)
		if err != nil {
			continue
		}
		if first >= 0 && info.Size() > first {
			return true
		}
		first = info.Size()
	}
	return false
}

// marked returns the processes that carry the mark in their command line or, as
// far as that has room, their name.
func marked(t *testing.T, mark string) (pids []int) {
	t.Helper()
	names, err := filepath.Glob("/proc/[0-9]*")
	if err != nil {
		t.Fatal(err)
	}
	for _, folder := range names {
		line, _ := os.ReadFile(folder + "/cmdline")
		comm, _ := os.ReadFile(folder + "/comm")
		pid, _ := strconv.Atoi(filepath.Base(folder))
		if bytes.Contains(line, []byte("\x00"+mark+"\x00")) || strings.TrimSpace(string(comm)) == mark[:15] {
			pids = append(pids, pid)
		}
	}
	return pids
}

// TestOpenInput: a program is run although its input stays open, so that a
// sandbox that holds it is no hindrance. Python reads its script to the end.
func TestOpenInput(t *testing.T) {
	i := both()[0]
	folder := i.place(t)
	cmd := i.command(t, folder, program(t, `{"do":"ignore"}`, folder))
	text := cmd.Stdin
	cmd.Stdin = nil
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	var buf bytes.Buffer
	if _, err := buf.ReadFrom(text.(*bytes.Reader)); err != nil {
		t.Fatal(err)
	}
	if _, err := in.Write(buf.Bytes()); err != nil {
		t.Fatal(err)
	}
	if err := cmd.Wait(); err != nil {
		t.Error(err)
	}
}

// TestKilledChild: a child that dies while it allocates is told of by the
// signal, and the program goes on.
func TestKilledChild(t *testing.T) {
	each(t, func(t *testing.T, i interpreter) {
		var got []attempt.Line
		for range 10 { // until the kill comes before the child has all
			folder := i.place(t)
			cmd := i.command(t, folder, program(t, `{"do":"alloc","size":400000000},{"do":"ignore"}`, folder))
			var out bytes.Buffer
			cmd.Stdout = &out
			if err := cmd.Start(); err != nil {
				t.Fatal(err)
			}
			killed := false
			for end := time.Now().Add(10 * time.Second); !killed && time.Now().Before(end); {
				for _, pid := range childrenOf(cmd.Process.Pid) {
					killed = unix.Kill(pid, unix.SIGKILL) == nil
				}
			}
			if err := cmd.Wait(); err != nil {
				t.Fatalf("ended with %v", err)
			}
			got = lines(t, out.String(), folder)
			if len(got) == 3 && !got[0].OK {
				break
			}
		}
		if len(got) != 3 || short(got[0]) != "0  SIGKILL 0" || !got[1].OK {
			t.Errorf("lines %v", got)
		}
	})
}

func childrenOf(pid int) (pids []int) {
	text, _ := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/task/" + strconv.Itoa(pid) + "/children")
	for _, word := range strings.Fields(string(text)) {
		n, _ := strconv.Atoi(word)
		pids = append(pids, n)
	}
	return pids
}
