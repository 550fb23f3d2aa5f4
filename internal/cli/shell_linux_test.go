package cli_test

import (
	"strings"
	"syscall"
	"testing"
	"time"

	"tranca/client"
)

func TestAShellLikeAnyOther(t *testing.T) {
	s := serveReal(t)
	box := s.sandbox(t)
	d := atTerminal(t, s.env(), "shell", string(box.ID()))
	d.see("$ ")
	d.write("stty size; echo kind=$TERM; tty\r")
	d.see("24 80")
	d.see("kind=xterm-256color")
	d.see("/dev/pts/")
	if d.modes() == d.before {
		t.Error("the terminal is not in raw mode")
	}
	// Another size reaches the program.
	// One program: a shell's jobs hear of no key between two of them.
	d.write("sh -c 'while stty size; do sleep 0.1; done'\r")
	d.see("24 80")
	d.size(50, 120)
	d.see("50 120")
	// Keys that make signals go to the program.
	d.write("\x03")
	d.see("$ ")
	d.write("echo after=$((40+2))\r")
	d.see("after=42")
	d.write("exit 7\r")
	d.ends(7)
}

// running lists what was started and has not ended.
func running(t *testing.T, box *client.Sandbox) string {
	t.Helper()
	all, err := box.Processes(t.Context(), "")
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, p := range all {
		if p.Exit == nil {
			names = append(names, strings.Join(p.Args, " "))
		}
	}
	return strings.Join(names, ",")
}

// until waits for a state.
func (d *desk) until(is func() bool, what string) {
	d.t.Helper()
	for deadline := time.Now().Add(time.Minute); !is(); time.Sleep(10 * time.Millisecond) {
		if time.Now().After(deadline) {
			d.t.Fatalf("not so within a minute: %s; on the screen: %q", what, d.all())
		}
	}
}

func TestPythonsPrompt(t *testing.T) {
	s := serveReal(t)
	d := atTerminal(t, s.env(), "exec", "-it", string(s.sandbox(t).ID()), "--", "python3", "-i")
	d.see(">>> ")
	d.write("6*7\r")
	d.see("42")
	d.write("while True: pass\r\r")
	d.see("pass")
	d.see("... ")
	time.Sleep(100 * time.Millisecond) // the loop must have begun: nothing says so
	d.write("\x03")
	d.see("KeyboardInterrupt")
	d.see(">>> ")
	d.write("raise SystemExit(5)\r")
	d.ends(5)
}

func TestAFullScreenProgram(t *testing.T) {
	s := serveReal(t)
	box := s.sandbox(t)
	if _, err := box.Files().Write(t.Context(), "/work/text", strings.NewReader(strings.Repeat("line\n", 100)+"the last\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	d := atTerminal(t, s.env(), "exec", "-it", string(box.ID()), "--", "less", "/work/text")
	d.see("\x1b[?1049h") // the other screen
	d.see("line")
	d.write("G")
	d.see("the last")
	d.write("q")
	d.ends(0)
	d.see("\x1b[?1049l")
}

func TestWhatReachesBeyondTheScreenIsDropped(t *testing.T) {
	s := serveReal(t)
	id := string(s.sandbox(t).ID())
	hostile := `printf 'a\033]0;title\007\033]52;c;eA==\007\033[21t\005\033[?1049h\033[?25lb\n'`
	d := atTerminal(t, s.env(), "exec", "-t", id, "--", "sh", "-c", hostile)
	d.ends(0)
	d.see("a\x1b[?1049h\x1b[?25lb\r")
	// The modes that it left on are taken back.
	d.see("\x1b[?1049l\x1b[?25h")
	d = atTerminal(t, s.env(), "exec", "-t", "--unfiltered", id, "--", "sh", "-c", hostile)
	d.ends(0)
	d.see("a\x1b]0;title\a\x1b]52;c;eA==\a\x1b[21t\x05")
	// Without a terminal of its own nothing of it passes.
	d = atTerminal(t, s.env(), "exec", id, "--", "sh", "-c", hostile)
	d.ends(0)
	d.see("a^[]0;title^G")
}

func TestTheTerminalIsRestoredAfterASignal(t *testing.T) {
	for _, sig := range []syscall.Signal{syscall.SIGTERM, syscall.SIGHUP, syscall.SIGQUIT} {
		s := serveReal(t)
		box := s.sandbox(t)
		d := atTerminal(t, s.env(), "shell", string(box.ID()))
		d.see("$ ")
		if err := d.cmd.Process.Signal(sig); err != nil {
			t.Fatal(err)
		}
		d.ends(128 + int(sig))
		d.until(func() bool { return running(t, box) == "" }, "the shell has ended")
	}
}

func TestTheTerminalIsRestoredAfterTheServersDeath(t *testing.T) {
	s := serveReal(t)
	d := atTerminal(t, s.env(), "shell", string(s.sandbox(t).ID()))
	d.see("$ ")
	d.write("sleep 1000\r")
	d.see("sleep 1000")
	if err := s.cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	d.ends(126)
	d.see("tranca: ")
}

func TestLeavingAShellAndComingBack(t *testing.T) {
	s := serveReal(t)
	box := s.sandbox(t)
	d := atTerminal(t, s.env(), "shell", string(box.ID()))
	d.see("$ ")
	d.write("here=still\r~?")
	d.see("leave; the program goes on")
	d.write("\r~~.\r~.") // a tilde for the shell, then the sequence
	d.ends(0)
	d.see("go on: tranca shell " + string(box.ID()) + " --attach p1")
	d = atTerminal(t, s.env(), "shell", string(box.ID()), "--attach", "p1")
	d.write("echo $here there; exit 3\r")
	d.see("still there")
	d.ends(3)
}

func TestAShellInASandboxOfItsOwn(t *testing.T) {
	s := serveReal(t)
	listed := func() int {
		all, err := s.client(t).List(t.Context(), client.ListOptions{})
		if err != nil {
			t.Fatal(err)
		}
		return len(all)
	}
	d := atTerminal(t, s.env(), "shell")
	d.see("$ ")
	if n := listed(); n != 1 {
		t.Errorf("%d sandboxes", n)
	}
	d.write("exit\r")
	d.ends(0)
	if n := listed(); n != 0 {
		t.Errorf("%d sandboxes are left", n)
	}
	d = atTerminal(t, s.env(), "shell", "--keep")
	d.see("$ ")
	d.write("exit\r")
	d.ends(0)
	d.see("the sandbox is kept: i")
	if n := listed(); n != 1 {
		t.Errorf("%d sandboxes are kept", n)
	}
}

func TestASecondInterruptKills(t *testing.T) {
	s := serveReal(t)
	d := atTerminal(t, s.env(), "exec", string(s.sandbox(t).ID()), "--", "python3", "-c", `
import os, signal, time
signal.signal(signal.SIGINT, lambda *a: os.write(1, b"caught\n"))
print("begun", flush=True)
while True: time.sleep(0.05)`) // a long one may begin just after the signal
	d.see("begun")
	d.write("\x03")
	d.see("caught")
	d.write("\x03")
	d.ends(137)
	d.see("ended by SIGKILL")
}
