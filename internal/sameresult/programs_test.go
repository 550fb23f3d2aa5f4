//go:build linux

package sameresult

import (
	"bytes"
	"strings"
	"time"

	"tranca"
)

// program is one program, with how it is run.
type program struct {
	name string
	// code is Python, or of the language; command is run instead of code.
	code     string
	language string
	command  []string
	args     []string
	stdin    string
	narrow   tranca.Narrowing
	// policy changes the common policy.
	policy func(*tranca.Policy)
	// cancel ends the run from outside once it has written something.
	cancel bool
	// shared says how a folder of the host's is shown as /shared; empty is not
	// at all.
	shared string
	// trace says that the program writes a traceback, of which only the last
	// line is compared: the rest is the interpreter's.
	trace bool
}

const (
	memory = 128 << 20
	output = 32 << 10
	wall   = time.Second
)

func shell(code string) program { return program{code: code, language: "sh"} }

func (p program) called(name string) program {
	p.name = name
	return p
}

// programs returns all programs.
func programs() []program {
	var all []program
	for _, list := range [][]program{
		endings(), signals(), times(), memories(), counts(), spaces(), outputs(), inputs(), leftovers(), surroundings(), shares(),
	} {
		all = append(all, list...)
	}
	return all
}

// endings end by themselves.
func endings() []program {
	return []program{
		{name: "exit-0", code: "print('done')"},
		{name: "nothing", code: "# nothing"},
		{name: "exit-1", code: "import sys\nsys.exit(1)"},
		{name: "exit-2", code: "import sys\nprint('to stderr', file=sys.stderr)\nsys.exit(2)"},
		{name: "exit-137", code: "import sys\nsys.exit(137)"}, // no signal, and no limit
		{name: "exit-255", code: "import sys\nsys.exit(255)"},
		{name: "exit-259", code: "import sys\nsys.exit(259)"}, // the kernel keeps 8 bits
		{name: "exit-text", code: "import sys\nsys.exit('a reason')"},
		{name: "exit-at-once", code: "import os, sys\nsys.stdout.write('never flushed')\nos._exit(7)"},
		{name: "exception", code: "def f():\n    raise ValueError('bad value')\nf()", trace: true},
		{name: "syntax-error", code: "print('no')\nif True print(1)", trace: true},
		{name: "missing-module", code: "import no_such_module", trace: true},
		{name: "recursion", code: "def f(n):\n    return f(n + 1) + 1\nf(0)", trace: true},
		{name: "division", code: "1 / 0", trace: true},
		{name: "replaced", code: "import os\nos.execv('/bin/sh', ['sh', '-c', 'echo replaced; exit 9'])"},
		shell("no_such_command").called("shell-127"),
		shell("/etc/passwd").called("shell-126"),
		shell("echo one; exit 3; echo two").called("shell-3"),
		{name: "no-such-program", command: []string{"/no/such/program"}},
		{name: "not-a-program", command: []string{"/etc/passwd"}},
		{name: "command", command: []string{"/bin/echo", "-n", "a  b", ""}},
	}
}

// signals end by a signal that no limit sent.
func signals() []program {
	kill := func(name, signal string) program {
		return program{name: "signal-" + name, code: "import os, signal\nprint('before', flush=True)\nos.kill(os.getpid(), signal." + signal + ")\nsignal.pause()"}
	}
	return []program{
		kill("kill", "SIGKILL"), kill("segv", "SIGSEGV"), kill("term", "SIGTERM"), kill("hup", "SIGHUP"),
		kill("fpe", "SIGFPE"), kill("ill", "SIGILL"), kill("bus", "SIGBUS"), kill("usr1", "SIGUSR1"),
		{name: "signal-abort", code: "import os\nos.abort()"},
		shell("kill -PIPE $$").called("signal-pipe"),
		shell("kill -ALRM $$").called("signal-alrm"),
		{name: "signal-group", code: "import os, signal\nos.killpg(0, signal.SIGKILL)"},
		{name: "signal-of-child", code: "import os, signal\npid = os.fork()\nif pid == 0:\n    os.kill(os.getpid(), signal.SIGTERM)\n    signal.pause()\nprint(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]))"},
		{name: "signal-handled", code: "import os, signal\nsignal.signal(signal.SIGTERM, lambda *_: print('handled'))\nos.kill(os.getpid(), signal.SIGTERM)"},
	}
}

// times run longer than they may, or are cancelled.
func times() []program {
	short := tranca.Narrowing{Wall: wall}
	cpu := tranca.Narrowing{CPUTime: 500 * time.Millisecond}
	return []program{
		{name: "wall-sleep", code: "import time\nprint('asleep', flush=True)\ntime.sleep(60)", narrow: short},
		{name: "wall-deaf", code: "import signal, time\nfor n in range(1, 65):\n    try:\n        signal.signal(n, signal.SIG_IGN)\n    except (OSError, ValueError):\n        pass\ntime.sleep(60)", narrow: short},
		{name: "wall-child", code: "import os, time\nif os.fork() == 0:\n    time.sleep(60)\nos.wait()", narrow: short},
		{name: "cpu-one", code: "print('busy', flush=True)\nwhile True: pass", narrow: cpu},
		{name: "cpu-tree", code: "import os\nfor _ in range(4):\n    if os.fork() == 0:\n        while True: pass\nwhile True:\n    os.wait()", narrow: cpu},
		{name: "cpu-short-lived", code: "import os\nwhile True:\n    pid = os.fork()\n    if pid == 0:\n        sum(range(300000))\n        os._exit(0)\n    os.waitpid(pid, 0)", narrow: cpu},
		{name: "cancelled", code: "import time\nprint('waits', flush=True)\ntime.sleep(60)", cancel: true},
	}
}

// memories need more memory than there is.
func memories() []program {
	return []program{
		{name: "memory-one", code: "print('begins', flush=True)\nx = bytearray(300 << 20)\nprint(len(x))"},
		{name: "memory-tree", code: "import os, time\nfor _ in range(6):\n    if os.fork() == 0:\n        x = bytearray(60 << 20)\n        time.sleep(60)\nfor _ in range(6):\n    os.wait()\ntime.sleep(60)"},
		{name: "memory-slowly", code: "x = []\nwhile True:\n    x.append(b'x' * 65536)"},
		{name: "memory-untouched", code: "x = bytes(1 << 31)\nprint(len(x) >> 20, x[5])"},
		{name: "memory-files", policy: func(p *tranca.Policy) { p.Limits.FileSize = 256 << 20 },
			code: "import errno\ntry:\n    with open('/dev/shm/f', 'wb') as f:\n        while True:\n            f.write(b'x' * 65536)\nexcept OSError as e:\n    print(errno.errorcode[e.errno])"},
	}
}

// counts run into limits of processes and descriptors, and go on.
func counts() []program {
	return []program{
		{name: "processes", code: "import errno, os, signal\npids = []\ntry:\n    for _ in range(200):\n        pid = os.fork()\n        if pid == 0:\n            signal.pause()\n        pids.append(pid)\nexcept OSError as e:\n    print(errno.errorcode[e.errno])\nfor pid in pids:\n    os.kill(pid, signal.SIGKILL)\n    os.waitpid(pid, 0)\nprint('goes on', 10 < len(pids) < 40)"},
		{name: "threads", code: "import threading\nstop = threading.Event()\nthreads = []\ntry:\n    for _ in range(200):\n        t = threading.Thread(target=stop.wait)\n        t.start()\n        threads.append(t)\nexcept RuntimeError:\n    print('refused')\nstop.set()\nfor t in threads:\n    t.join()\nprint('goes on', 10 < len(threads) < 40)"},
		{name: "fork-bomb", code: "import os\nwhile True:\n    try:\n        os.fork()\n    except OSError:\n        pass", narrow: tranca.Narrowing{Wall: 2 * wall, CPUTime: 10 * time.Second}},
		{name: "descriptors", code: "import errno\nfiles = []\ntry:\n    while True:\n        files.append(open('/dev/null'))\nexcept OSError as e:\n    print(errno.errorcode[e.errno], len(files) < 64)"},
	}
}

// spaces fill the sandbox's own space.
func spaces() []program {
	return []program{
		{name: "disk-full", code: "import errno\nwritten = 0\ntry:\n    for i in range(100):\n        with open(f'/work/{i}', 'wb', buffering=0) as f:\n            for _ in range(16):\n                written += f.write(b'x' * 65536)\nexcept OSError as e:\n    print(errno.errorcode[e.errno], 3 << 20 < written <= 8 << 20)"},
		{name: "inodes-full", code: "import errno\ntry:\n    for i in range(5000):\n        open(f'/tmp/{i}', 'w').close()\nexcept OSError as e:\n    print(errno.errorcode[e.errno], i > 100)"},
		{name: "file-too-large", code: "import errno\ntry:\n    with open('/work/f', 'wb', buffering=0) as f:\n        while True:\n            f.write(b'x' * 65536)\nexcept OSError as e:\n    print(errno.errorcode[e.errno], f.closed)\nimport os\nprint(os.stat('/work/f').st_size)"},
		{name: "file-too-large-signal", code: "import signal\nsignal.signal(signal.SIGXFSZ, signal.SIG_DFL)\nwith open('/work/f', 'wb', buffering=0) as f:\n    while True:\n        f.write(b'x' * 65536)"},
		{name: "space-is-one", code: "import os\nopen('/tmp/a', 'wb').write(b'x' * (1 << 20))\nopen('/dev/shm/b', 'wb').write(b'x' * (1 << 20))\nopen('/work/c', 'wb').write(b'x' * (1 << 20))\nprint(sorted(os.listdir('/work')), os.stat('/dev/shm/b').st_size)"},
	}
}

// outputs write more than is kept, or what is no text.
func outputs() []program {
	kill := func(p *tranca.Policy) { p.Limits.Output.OnExceed = tranca.ExceedKill }
	return []program{
		{name: "output-cut", code: "import sys\nfor i in range(20000):\n    print(i)\nprint('end', file=sys.stderr)"},
		{name: "output-error-cut", code: "import sys\nsys.stderr.write('e' * 100000)\nprint('end')"},
		{name: "output-both-cut", code: "import sys\nfor _ in range(1000):\n    sys.stdout.write('o' * 100)\n    sys.stderr.write('e' * 100)"},
		{name: "output-one-line", code: "import sys\nsys.stdout.write('x' * (10 << 20))"},
		{name: "output-kill", code: "while True:\n    print('x' * 1000)", policy: kill},
		{name: "output-exact", code: "import sys\nsys.stdout.write('x' * 32768)", policy: kill},
		{name: "unicode", code: "print('é ∀ 🦊 \\u202e')"},
		{name: "invalid-utf8", code: "import sys\nsys.stdout.buffer.write(b'a\\xff\\xfeb\\xc3')"},
		{name: "cut-rune", code: "import sys\nsys.stdout.write('é' * 20000)", policy: func(p *tranca.Policy) { p.Limits.Output.Size = 1001 }},
		{name: "nul", code: "import sys\nsys.stdout.write('a\\0b\\r\\x1b[2J')"},
		{name: "closed-stdout", code: "import os\nos.close(1)\nos.close(2)\nos._exit(4)"},
	}
}

// inputs read what they are given, or don't.
func inputs() []program {
	return []program{
		{name: "stdin", code: "import sys\nprint(sys.stdin.read().upper())", stdin: "some words\nmore"},
		{name: "stdin-empty", code: "import sys\nprint(repr(sys.stdin.read()))"},
		{name: "stdin-unread", code: "print('did not read')", stdin: strings.Repeat("x", 1<<20)},
		{name: "stdin-large", code: "import sys\nprint(len(sys.stdin.buffer.read()))", stdin: strings.Repeat("y", 3<<20)},
		{name: "stdin-bytes", command: []string{"/bin/cat"}, stdin: string(everyByte())},
		{name: "stdin-closed", code: "import os\nos.close(0)\nprint('closed')", stdin: strings.Repeat("z", 1<<20)},
		{name: "arguments", code: "import sys\nprint(sys.argv[1:])", args: []string{"-c", "", "a b", "é", "--", "$HOME", "'"}},
		{name: "arguments-huge", code: "import sys\nprint(len(sys.argv), sum(map(len, sys.argv)))", args: manyArguments()},
	}
}

func everyByte() []byte {
	all := make([]byte, 256)
	for i := range all {
		all[i] = byte(i)
	}
	return bytes.Repeat(all, 4)
}

func manyArguments() []string {
	all := make([]string, 100)
	for i := range all {
		all[i] = strings.Repeat("a", 1000)
	}
	return all
}

// leftovers leave something running.
func leftovers() []program {
	return []program{
		shell("sleep 60 >/dev/null 2>&1 & echo left").called("left-background"),
		{name: "left-daemon", code: "import os, time\nif os.fork() == 0:\n    os.setsid()\n    if os.fork() == 0:\n        for fd in range(3):\n            os.close(fd)\n        time.sleep(60)\n    os._exit(0)\nos.wait()\nprint('left')"},
		{name: "left-stdout", code: "import os, time\nif os.fork() == 0:\n    time.sleep(60)\nprint('the child holds it open')"},
		{name: "left-writer", code: "import os, time\nif os.fork() == 0:\n    while True:\n        os.write(1, b'')\n        time.sleep(0.01)\nprint('once')"},
		{name: "left-stopped", code: "import os, signal\npid = os.fork()\nif pid == 0:\n    os.kill(os.getpid(), signal.SIGSTOP)\nos.waitpid(pid, os.WUNTRACED)\nprint('stopped')"},
		{name: "left-zombies", code: "import os\nfor _ in range(10):\n    if os.fork() == 0:\n        os._exit(0)\nprint('unreaped')"},
	}
}

// shares see a folder of the host's, which has the files old and gone, a hook
// and a secret.
func shares() []program {
	const look = "import os\ndef attempt(what, act):\n    try:\n        print(what, act())\n    except OSError:\n        print(what, 'refused')\n" +
		"def write(path, text):\n    with open(path, 'w') as f:\n        return f.write(text)\n" +
		"def read(path):\n    with open(path) as f:\n        return f.read()\n"
	const change = look +
		"attempt('new', lambda: write('/shared/new', 'new'))\nattempt('old', lambda: write('/shared/old', 'changed'))\n" +
		"attempt('gone', lambda: os.remove('/shared/gone'))\nattempt('hook', lambda: write('/shared/.git/hooks/pre-commit', 'evil'))\n" +
		"attempt('envrc', lambda: write('/shared/.envrc', 'evil'))\nattempt('folder', lambda: os.makedirs('/shared/a/b'))\n" +
		"attempt('secret', lambda: read('/shared/secret/key'))\nattempt('see', lambda: read('/shared/old'))\n"
	return []program{
		{name: "share-written", shared: "rw", code: change},
		{name: "share-read", shared: "ro", code: change},
		{name: "share-absent", shared: "", code: look + "attempt('see', lambda: read('/shared/old'))"},
	}
}

// surroundings print what is the same in every sandbox.
func surroundings() []program {
	return []program{
		{name: "environment", code: "import os\nfor k in sorted(os.environ):\n    if k != 'LC_CTYPE':\n        print(k, '=', os.environ[k] if k != 'PATH' else '')", policy: func(p *tranca.Policy) { p.Env = map[string]string{"GIVEN": "a b"} }},
		{name: "identity", code: "import os, socket\nprint(os.getuid(), os.getgid(), os.geteuid(), os.getgroups(), socket.gethostname(), os.getcwd())"},
		{name: "folders", code: "import os, stat\nfor d in ('/work', '/tmp', '/dev/shm'):\n    open(d + '/f', 'w').write('x')\n    print(d, open(d + '/f').read())\nfor d in ('/usr', '/etc', '/'):\n    try:\n        open(d + '/f', 'w')\n    except OSError:\n        print('not', d)"},
		{name: "loopback", code: "import socket, threading\nl = socket.create_server(('127.0.0.1', 0))\ndef serve():\n    c, _ = l.accept()\n    c.sendall(b'hello')\n    c.close()\nt = threading.Thread(target=serve)\nt.start()\nprint(socket.create_connection(l.getsockname()).recv(10))\nt.join()"},
		{name: "no-network", code: "import socket\ntry:\n    socket.create_connection(('192.0.2.1', 80), timeout=5)\nexcept OSError as e:\n    print('unreachable', isinstance(e, TimeoutError))"},
		{name: "no-privilege", code: "import os\nfor act in (lambda: os.setuid(0), lambda: os.chroot('/tmp'), lambda: os.mknod('/tmp/d', 0o20600, os.makedev(1, 1)), lambda: os.sethostname if False else os.nice(-5)):\n    try:\n        act()\n        print('done')\n    except OSError:\n        print('refused')"},
		{name: "own-processes", code: "import os\nprint(len([p for p in os.listdir('/proc') if p.isdigit()]) < 6)"},
	}
}
