package host

import (
	"bytes"
	"errors"
	"io"
	"os"
	"os/exec"
	"strings"
	"testing"

	"tranca"
	"tranca/internal/guest/agent"
	"tranca/internal/guest/message"
	"tranca/internal/require"
)

// console is a program at a terminal, with somebody who types.
type console struct {
	tranca.Process
	t   *testing.T
	out *lines
	in  *io.PipeWriter
}

var size = tranca.TerminalSize{Rows: 24, Columns: 80}

// openConsole starts a program at a terminal.
func openConsole(t *testing.T, sb tranca.Sandbox, cmd tranca.Command) *console {
	t.Helper()
	r, w := io.Pipe()
	t.Cleanup(func() { w.Close() })
	out := newLines()
	cmd.Stdin, cmd.Stdout = r, out
	if cmd.Terminal == nil {
		cmd.Terminal = &size
	}
	p, err := sb.Start(within(t), cmd)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if t.Failed() {
			t.Logf("who waits for what:\n%s", waiting())
		}
	})
	return &console{p, t, out, w}
}

// waiting lists the host's programs that are at a terminal: what the shell of a
// failed test waits for can't be told from what it wrote.
func waiting() string {
	all, err := exec.Command("ps", "-e", "-o", "pid,ppid,pgid,tpgid,stat,wchan:24,tty,args").Output()
	if err != nil {
		return err.Error()
	}
	var at []string
	for line := range strings.Lines(string(all)) {
		if f := strings.Fields(line); len(f) > 6 && f[6] != "?" {
			at = append(at, line)
		}
	}
	return strings.Join(at, "")
}

func (c *console) types(keys string) {
	c.t.Helper()
	if _, err := io.WriteString(c.in, keys); err != nil {
		c.t.Fatal(err)
	}
}

func (c *console) says(text string) { c.t.Helper(); c.out.await(c.t, text) }

func (c *console) resize(rows, columns uint16) error {
	return c.Process.(tranca.Resizer).Resize(within(c.t), tranca.TerminalSize{Rows: rows, Columns: columns})
}

func TestTerminalOfAShell(t *testing.T) {
	sb, _, _ := newSandbox(t, nil)
	c := openConsole(t, sb, tranca.Command{Args: []string{"sh", "-i"}, Env: map[string]string{"PS1": "@ "}})
	c.says("@ ")
	c.types("stty size; tty; echo term=$TERM\n")
	c.says("24 80\r\n")
	c.says("/dev/pts/")
	c.says("term=xterm-256color\r\n")
	if err := c.resize(50, 65535); err != nil {
		t.Fatal(err)
	}
	c.types("stty size; test -t 0 && test -t 1 && test -t 2 && echo all-''three\n")
	c.says("50 65535\r\n")
	c.says("all-three")
	// ^C reaches what is in the foreground, and the shell lives on.
	c.types("sh -c 'echo sleep\"\"ing; exec sleep 300'\n")
	c.says("sleeping")
	c.types("\x03")
	c.says("^C\r\n@ ")
	c.types("echo inter''rupted; exit 5\n")
	c.says("interrupted")
	if exit := wait(t, c); exit != exited(5) {
		t.Errorf("exit %v, output %q", exit, c.out)
	}
	if err := c.resize(1, 1); !errors.Is(err, tranca.ErrGone) {
		t.Errorf("resizing what has ended: %v", err)
	}
}

func TestTerminalOfPython(t *testing.T) {
	sb, _, _ := newSandbox(t, nil)
	c := openConsole(t, sb, tranca.Command{Args: []string{"python3", "-I", "-i", "-q"}})
	c.says(">>> ")
	c.types("6*7\n")
	c.says("42")
	c.types("import signal, os; _ = signal.signal(signal.SIGWINCH, lambda *a: os.write(1, b'wide %d %d' % os.get_terminal_size()))\n")
	c.types("print('hand' + 'ler')\n")
	c.says("handler")
	if err := c.resize(30, 100); err != nil {
		t.Fatal(err)
	}
	c.types("\n")
	c.says("wide 100 30")
	c.types("\x04") // the end of input, as a terminal knows it
	if exit := wait(t, c); exit != exited(0) {
		t.Errorf("exit %v, output %q", exit, c.out)
	}
}

// A program that fills the screen draws on it, obeys a key, and restores it.
func TestTerminalFullScreen(t *testing.T) {
	top := require.Program(t, "top")
	sb, _, _ := newSandbox(t, nil)
	c := openConsole(t, sb, tranca.Command{Args: []string{top, "-d", "600"}, Terminal: &tranca.TerminalSize{Rows: 40, Columns: 120}})
	c.says("PID")
	c.types("q")
	if exit := wait(t, c); exit != exited(0) {
		t.Errorf("exit %v", exit)
	}
	if !strings.Contains(c.out.String(), "\x1b[") {
		t.Errorf("it drew nothing: %q", c.out)
	}
}

func TestTerminalEnds(t *testing.T) {
	sb, _, _ := newSandbox(t, nil)
	terminal := func(cmd tranca.Command) outcome {
		cmd.Terminal = &size
		return runProgram(t, sb, cmd)
	}
	t.Run("nothing is lost at the end", func(t *testing.T) {
		got := terminal(tranca.Command{Args: []string{"python3", "-Ic", "import os\nos.write(1, b'x' * 3000 + b'!')\nos._exit(3)"}})
		if got.exit != exited(3) || got.stdout != strings.Repeat("x", 3000)+"!" || got.stderr != "" {
			t.Errorf("%v, %d bytes and %q", got.exit, len(got.stdout), got.stderr)
		}
	})
	t.Run("much output", func(t *testing.T) {
		got := terminal(tranca.Command{Args: []string{"sh", "-c", "seq 200000; echo end >&2"}})
		if got.exit != exited(0) || !strings.HasSuffix(got.stdout, "200000\r\nend\r\n") || strings.Count(got.stdout, "\n") != 200001 {
			t.Errorf("%v, %d lines", got.exit, strings.Count(got.stdout, "\n"))
		}
	})
	t.Run("the end of what is typed hangs nothing up", func(t *testing.T) {
		got := terminal(tranca.Command{Args: []string{"sh", "-c", "read x; echo got $x; sleep 0.3; exit 6"}, Stdin: strings.NewReader("line\n")})
		if got.exit != exited(6) || !strings.Contains(got.stdout, "got line") {
			t.Errorf("%+v", got)
		}
	})
	t.Run("no one types", func(t *testing.T) {
		got := terminal(tranca.Command{Args: []string{"sh", "-c", "test -t 0; exit $?"}})
		if got.exit != exited(0) {
			t.Errorf("%+v", got)
		}
	})
	t.Run("typing at what does not read", func(t *testing.T) {
		p, err := sb.Start(within(t), tranca.Command{
			Args: []string{"sh", "-c", "stty raw; sleep 0.5; exit 7"}, Terminal: &size, Stdin: io.LimitReader(zeros{}, 8<<20),
		})
		if err != nil {
			t.Fatal(err)
		}
		if exit := wait(t, p); exit != exited(7) {
			t.Errorf("exit %v", exit)
		}
	})
	t.Run("a descendant keeps the terminal", func(t *testing.T) {
		got := terminal(tranca.Command{Args: []string{"python3", "-Ic", `
import os, signal, time
signal.signal(signal.SIGHUP, signal.SIG_IGN)
r, w = os.pipe()
if os.fork() == 0:
    os.setsid()
    os.write(1, b"child")
    os.write(w, b"x")
    time.sleep(5) # nobody here kills what has a session of its own
    os._exit(0)
os.read(r, 1)
os._exit(4)`}})
		if got.exit != exited(4) || got.stdout != "child" {
			t.Errorf("%+v", got)
		}
		if err := sb.Kill(within(t)); err != nil {
			t.Fatal(err)
		}
	})
	t.Run("killed by a hangup of nobody", func(t *testing.T) {
		c := openConsole(t, sb, tranca.Command{Args: []string{"sh", "-c", "echo ready; exec sleep 300"}})
		c.says("ready")
		if err := c.SignalGroup(within(t), tranca.SIGHUP); err != nil {
			t.Fatal(err)
		}
		if exit := wait(t, c); exit != signaled(tranca.SIGHUP) {
			t.Errorf("exit %v", exit)
		}
	})
}

func TestTerminalEnvironment(t *testing.T) {
	for name, tt := range map[string]struct {
		base []string
		env  map[string]string
		want string
	}{
		"none":             {nil, nil, "xterm-256color"},
		"the command's":    {nil, map[string]string{"TERM": "vt100"}, "vt100"},
		"the sandbox's":    {[]string{"TERM=dumb"}, nil, "dumb"},
		"both":             {[]string{"TERM=dumb"}, map[string]string{"TERM": "vt100"}, "vt100"},
		"an empty one":     {nil, map[string]string{"TERM": ""}, "xterm-256color"},
		"without terminal": {nil, nil, ""},
	} {
		t.Run(name, func(t *testing.T) {
			sb, _, _ := newSandbox(t, func(c *agent.Config) { c.Env = append(c.Env, tt.base...) })
			cmd := tranca.Command{Args: []string{"sh", "-c", "printf %s \"$TERM\""}, Env: tt.env}
			if name != "without terminal" {
				cmd.Terminal = &size
			}
			if got := runProgram(t, sb, cmd); got.stdout != tt.want {
				t.Errorf("TERM is %q, want %q", got.stdout, tt.want)
			}
		})
	}
}

func TestTerminalRefusals(t *testing.T) {
	sb, _, _ := newSandbox(t, nil)
	for _, s := range []tranca.TerminalSize{{}, {Rows: 24}, {Columns: 80}} {
		if _, err := sb.Start(within(t), tranca.Command{Args: []string{"true"}, Terminal: &s}); !errors.Is(err, tranca.ErrInvalid) {
			t.Errorf("a terminal of %+v: %v", s, err)
		}
	}
	c := openConsole(t, sb, tranca.Command{Args: []string{"sh", "-c", "echo ready; exec sleep 300"}})
	c.says("ready")
	for _, rows := range []uint16{0, 24} {
		if err := c.resize(rows, 0); !errors.Is(err, tranca.ErrInvalid) {
			t.Errorf("a resize to %d by 0: %v", rows, err)
		}
	}
	plain, _ := start(t, sb, sleeper)
	r, ok := tranca.As[tranca.Resizer](plain)
	if !ok {
		t.Fatal("no Resizer")
	}
	if err := r.Resize(within(t), size); !errors.Is(err, tranca.ErrUnsupported) {
		t.Errorf("a resize without a terminal: %v", err)
	}
	if err := sb.Kill(within(t)); err != nil {
		t.Fatal(err)
	}
}

// What comes of a guest that has another output than it was started with.
func TestHostileTerminal(t *testing.T) {
	pty := func(s string) string {
		return event(message.ProcessEvent{Data: &message.DataEvent{PTY: []byte(s)}})
	}
	for name, tt := range map[string]struct {
		terminal *tranca.TerminalSize
		after    string
	}{
		"a terminal's output without one": {nil, msg(2, pty("x"))},
		"plain output of a terminal":      {&size, msg(2, output("x"))},
		"output of its stderr":            {&size, msg(3, pty("x"))},
		"two notices of an end":           {&size, strings.Repeat(msg(1, event(message.ProcessEvent{Ended: true})), 2)},
	} {
		t.Run(name, func(t *testing.T) {
			ours, theirs := socketPair(t)
			g := newGuest(t, theirs)
			sb := open(t, &fakeMachine{stream: ours, limit: make(chan tranca.Reason, 1)})
			defer sb.Close(within(t))
			go func() { <-g.opened; g.write(hello + msg(1, startEvent(7)) + tt.after) }()
			p, err := sb.Start(within(t), tranca.Command{Args: []string{"x"}, Terminal: tt.terminal})
			if err == nil {
				_, err = p.Wait(within(t))
			}
			if !errors.Is(err, tranca.ErrProtocol) {
				t.Errorf("got %v", err)
			}
		})
	}
}

// Where so many programs run that no threads are left for more, the rest are
// followed all the same.
func TestManyPrograms(t *testing.T) {
	sb, _, _ := newSandbox(t, nil)
	const many = 40
	type result struct {
		out  *bytes.Buffer
		proc tranca.Process
	}
	var all []result
	for i := range many {
		r := result{out: new(bytes.Buffer)}
		cmd := tranca.Command{Args: []string{"sh", "-c", "cat; echo err >&2; exit " + itoa(i)}, Stdin: strings.NewReader("in" + itoa(i)), Stdout: r.out}
		if i%2 == 0 {
			cmd = tranca.Command{Args: []string{"sleep", "300"}}
		}
		p, err := sb.Start(within(t), cmd)
		if err != nil {
			t.Fatal(err)
		}
		r.proc = p
		all = append(all, r)
	}
	for i, r := range all {
		if i%2 == 0 {
			if err := r.proc.Signal(within(t), tranca.SIGTERM); err != nil {
				t.Error(err)
			}
			if exit := wait(t, r.proc); exit != signaled(tranca.SIGTERM) {
				t.Errorf("program %d: %v", i, exit)
			}
			continue
		}
		if exit := wait(t, r.proc); exit != exited(i) || !strings.HasPrefix(r.out.String(), "in"+itoa(i)) {
			t.Errorf("program %d: %v, %q", i, exit, r.out)
		}
	}
}

// The descriptors of terminals go with their programs.
func TestTerminalsAreGivenBack(t *testing.T) {
	sb, _, _ := newSandbox(t, nil)
	count := func() int {
		entries, err := os.ReadDir("/proc/self/fd")
		if err != nil {
			t.Fatal(err)
		}
		return len(entries)
	}
	run := func() { runProgram(t, sb, tranca.Command{Args: []string{"true"}, Terminal: &size}) }
	run()
	before := count()
	for range 20 {
		run()
	}
	if after := count(); after > before+2 {
		t.Errorf("%d descriptors became %d", before, after)
	}
}
