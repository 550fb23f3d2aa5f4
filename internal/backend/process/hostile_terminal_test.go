package process

import (
	"bytes"
	"os"
	"strconv"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"tranca"
)

// TestHostileOwnTerminal tries what a program can do that was given a terminal.
func TestHostileOwnTerminal(t *testing.T) {
	runRows(t, []row{ownTerminalRow(), terminalsRow()})
}

// ownTerminalRow types into its own terminal as if a person did, which is how a
// program gets commands into the shell that outlives it, and changes what the
// kernel makes of what is typed.
func ownTerminalRow() row {
	return row{
		id: "OUT-13", what: "push input into its own terminal, change its line discipline, take the console",
		scene: func(s *scene) {
			s.terminal = &tranca.TerminalSize{Rows: 24, Columns: 80}
			if text, err := os.ReadFile("/proc/sys/dev/tty/legacy_tiocsti"); err == nil && string(text) == "0\n" {
				s.blind["push"] = "this kernel refuses it to everybody"
				s.blind["push, with more bits"] = s.blind["push"]
			}
		},
		program: `
import termios
mode = termios.tcgetattr(0)
mode[3] &= ~termios.ECHO # or what is pushed mixes with what is told
termios.tcsetattr(0, termios.TCSANOW, mode)
attempt('push', lambda: fcntl.ioctl(0, 0x5412, b'x'))
attempt('push, with more bits', lambda: call('ioctl', 0, 0x7fff000000005412, b'x'))
attempt('line discipline', lambda: fcntl.ioctl(0, 0x5423, struct.pack('i', 0)))
attempt('paste', lambda: fcntl.ioctl(0, 0x541c, b'\x03'))
attempt('console', lambda: fcntl.ioctl(0, 0x541d))
twin('its terminal', lambda: expect('a name', os.ttyname(0).startswith('/dev/pts/') and os.ttyname(2) == os.ttyname(0)))
twin('its size', lambda: expect('24 by 80', os.get_terminal_size(1) == (80, 24)))
twin('it controls it', lambda: os.write(os.open('/dev/tty', os.O_RDWR), b'\r\n'))
twin('in the foreground', lambda: expect('itself', os.tcgetpgrp(0) == os.getpgrp()))
`,
		blind: map[string]string{
			"paste": "only a console knows it; " + ownRule, "console": "only root may; " + ownRule,
		},
		controls: []control{{what: "the filter", weaken: unfiltered}},
	}
}

// terminalsRow looks for the terminals of others and takes all that there are.
func terminalsRow() row {
	return row{
		id: "OUT-13", what: "write to the host's terminals, make terminals without end",
		scene: func(s *scene) {
			s.terminal = &tranca.TerminalSize{Rows: 24, Columns: 80}
			master, name := hostTerminal(s)
			s.vars["tty"], s.vars["all"] = name, strconv.Itoa(mostHostile)
			s.effect["write to the host's"] = func() bool { return wasTyped(master, s.mark) }
		},
		program: `
attempt('write to the host\'s', lambda: os.write(os.open(V['tty'], os.O_WRONLY | os.O_NOCTTY), (V['mark'] + '\n').encode()))
def many():
    held = []
    try:
        while len(held) < int(V['all']):
            held.append(os.open('/dev/ptmx', os.O_RDWR | os.O_NOCTTY))
    except OSError:
        pass
    n = len(held)
    for fd in held:
        os.close(fd)
    expect('more than %d' % n, n == int(V['all']))
    return n
attempt('without end', many)
twin('a pair of its own', lambda: os.write(os.openpty()[0], b'x'))
`,
		controls: []control{{what: "any boundary"}},
	}
}

// mostHostile is how many terminals the program asks for: more than a sandbox
// has, and less than a host has left.
const mostHostile = 100

// hostTerminal makes a terminal on the host and returns it and its path.
func hostTerminal(s *scene) (*os.File, string) {
	s.Helper()
	master, err := os.OpenFile("/dev/ptmx", os.O_RDWR|unix.O_NOCTTY|unix.O_NONBLOCK, 0)
	if err != nil {
		s.Fatal(err)
	}
	s.Cleanup(func() { master.Close() })
	conn, err := master.SyscallConn()
	if err != nil {
		s.Fatal(err)
	}
	var n int
	cerr := conn.Control(func(fd uintptr) {
		if err = unix.IoctlSetPointerInt(int(fd), unix.TIOCSPTLCK, 0); err == nil {
			n, err = unix.IoctlGetInt(int(fd), unix.TIOCGPTN)
		}
	})
	if err != nil || cerr != nil {
		s.Fatal(err, cerr)
	}
	name := "/dev/pts/" + strconv.Itoa(n)
	// Held open, or what is written to it could go with who wrote it.
	slave, err := os.OpenFile(name, os.O_RDWR|unix.O_NOCTTY, 0)
	if err != nil {
		s.Fatal(err)
	}
	s.Cleanup(func() { slave.Close() })
	return master, name
}

// wasTyped reports whether a text came out of a terminal.
func wasTyped(master *os.File, text string) bool {
	if err := master.SetReadDeadline(time.Now().Add(200 * time.Millisecond)); err != nil {
		return false
	}
	var got []byte
	b := make([]byte, 4096)
	for {
		n, err := master.Read(b)
		got = append(got, b[:n]...)
		if err != nil || bytes.Contains(got, []byte(text)) {
			return bytes.Contains(got, []byte(text))
		}
	}
}
