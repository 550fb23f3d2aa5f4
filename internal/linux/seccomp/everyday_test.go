package seccomp

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"tranca/internal/require"
)

// runProgram runs a program under a filter and returns what it printed.
func runProgram(t *testing.T, filter, program string, args ...string) string {
	t.Helper()
	cmd := childCommand(t, filter, "exec", append([]string{program}, args...)...)
	home := t.TempDir()
	cmd.Env = append(cmd.Env, "HOME="+home, "GIT_CONFIG_NOSYSTEM=1", "LC_ALL=C")
	var out, errs bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &errs
	if err := cmd.Run(); err != nil {
		t.Fatalf("%s %q under filter %s: %v\n%s%s", program, args, filter, err, out.Bytes(), errs.Bytes())
	}
	return out.String()
}

// python is the system's, since a shim of a version manager could stand first
// on PATH.
func python(t *testing.T) string {
	t.Helper()
	const path = "/usr/bin/python3"
	_, err := os.Stat(path)
	require.Check(t, "python3", err == nil, path+" is not there")
	return path
}

// TestPython runs what ordinary Python programs do, under both profiles.
func TestPython(t *testing.T) {
	for _, tc := range []struct {
		filter string
		args   []string
		last   string
	}{
		{strict, nil, "ok name_lookup\n"},
		{open, []string{"unix"}, "ok unix sockets\n"},
	} {
		args := append([]string{"-I", filepath.Join("testdata", "everyday.py")}, tc.args...)
		if out := runProgram(t, tc.filter, python(t), args...); !strings.HasSuffix(out, tc.last) {
			t.Errorf("under filter %s the program ended with:\n%s", tc.filter, out)
		}
	}
}

// scripts are what other programs do, by the programs that they need.
var scripts = map[string]struct {
	needs  []string
	script string
	want   string
}{
	"coreutils": {nil, `
		cd "$HOME"; mkdir d; seq 1000 > d/a; cp -a d e; mv e f; ln -s d l; sort -rn d/a | head -1
		find . -type f | xargs wc -l | tail -1 | awk '{print $1}'; tar cf - d | tar tf - | wc -l
		date +%Y >/dev/null; stat d >/dev/null; df . >/dev/null; id -u >/dev/null; nice -n 5 true; timeout 60 true
		mkfifo p; (echo x > p &); cat p; touch -d @0 d/a; chmod 600 d/a; dd if=/dev/zero of=z bs=4k count=4 2>/dev/null
		rm -r d f l p z; ls -A | wc -l`, "1000\n2000\n2\nx\n0\n"},
	"git": {[]string{"git"}, `
		cd "$HOME"; git init -q r; cd r; git config user.email a@b; git config user.name n
		echo 1 > f; git add f; git commit -qm one; cd ..; git clone -q r s; cd s; git log --format=%s
		git gc -q; git status --short; git diff --stat`, "one\n"},
	"gcc": {[]string{"gcc"}, `
		cd "$HOME"; printf '#include <stdio.h>\nint main(){puts("compiled");}' > a.c; gcc -O1 a.c -o a; ./a`, "compiled\n"},
	"node": {[]string{"node"}, `node -e '
		const {execFileSync} = require("child_process"), net = require("net"), fs = require("fs");
		process.stdout.write(execFileSync("echo", ["child"]));
		fs.promises.readFile("/proc/self/status").then(() => {
			const s = net.createServer(c => c.end("served\n")).listen(0, "127.0.0.1", () =>
				net.connect(s.address().port).pipe(process.stdout).on("unpipe", () => s.close()));
		});'`, "child\nserved\n"},
	"perl":   {[]string{"perl"}, `perl -e 'print "perl ", fork() ? (wait() > 0 ? "ok" : "no") : exit(0), "\n"'`, "perl ok\n"},
	"status": {nil, `grep -E '^(NoNewPrivs|Seccomp):' /proc/self/status`, "NoNewPrivs:\t1\nSeccomp:\t2\n"},
}

func TestScripts(t *testing.T) {
	for name, tc := range scripts {
		t.Run(name, func(t *testing.T) {
			for _, program := range tc.needs {
				require.Program(t, program)
			}
			for _, filter := range []string{strict, open} {
				if got := runProgram(t, filter, "/bin/sh", "-ec", tc.script); got != tc.want {
					t.Errorf("under filter %s: got %q, want %q", filter, got, tc.want)
				}
			}
		})
	}
}
