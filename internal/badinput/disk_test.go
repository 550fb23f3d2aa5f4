package badinput

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"tranca/internal/require"
)

// inNewMounts runs the command in a mount namespace of its own, after a script
// that changes what is mounted there. That may hide the command's own file, so
// it is opened before.
func inNewMounts(t testing.TB, script string, args ...string) outcome {
	t.Helper()
	require.Root(t)
	c := prepare(t, args...)
	program := c.cmd.Path
	if target, err := os.Readlink(program); err == nil {
		program = target
	}
	c.cmd.Path = require.Program(t, "sh")
	c.cmd.Args = append([]string{"sh", "-ec", "exec 9<\"$0\"\n" + script + "\nexec /proc/self/fd/9 \"$@\"", program}, args...)
	c.cmd.Dir = "/"
	c.cmd.SysProcAttr.Unshareflags = syscall.CLONE_NEWNS
	c.cmd.Env = append(c.cmd.Env, "SCRATCH="+scratch)
	return c.start().wait()
}

// full makes a small file system on a folder and fills it.
func full(folder string) string {
	return "mount -t tmpfs -o size=64k none " + folder + "\ncat /dev/zero >" + folder + "/fill 2>/dev/null || true\n"
}

// TestFullDisk fills the places that tranca itself writes to, one by one. None
// of them is needed for a run, but for the locks of the runtime folder: there
// the error says so, and nothing runs.
func TestFullDisk(t *testing.T) {
	require.Root(t)
	nothingLeft(t)
	for _, r := range []struct {
		name, script string
		args         []string
		status       int
		words        string
	}{
		{"temporary folder", full("$TMPDIR"), []string{"--isolation", "process", "-c", "print(42)"}, 0, ""},
		{"/tmp and /var/tmp", full("/tmp") + full("/var/tmp"), []string{"--isolation", "process", "-c", "print(42)"}, 0, ""},
		{"/dev/shm", full("/dev/shm"), []string{"--isolation", "process", "-c", "print(42)"}, 0, ""},
		{"subprocess", full("$TMPDIR"), []string{"--backend", "subprocess", "--isolation", "subprocess", "-c", "print(42)"}, 0, ""},
		{"no inodes", "mount -t tmpfs -o size=1m,nr_inodes=1 none $TMPDIR\n", []string{"--backend", "subprocess", "--isolation", "subprocess", "-c", "print(42)"}, 126, "no space left"},
		{"runtime folder", full("/run"), []string{"--isolation", "process", "-c", "print(42)"}, 126, "no space left"},
		{"runtime folder without inodes", "mount -t tmpfs -o size=1m,nr_inodes=2 none /run\n", []string{"--isolation", "process", "-c", "print(42)"}, 126, "no space left"},
	} {
		t.Run(r.name, func(t *testing.T) {
			o := inNewMounts(t, r.script, append([]string{"run"}, r.args...)...)
			o.wants(t, r.status, r.words)
			if want := map[bool]string{true: "42\n"}[r.status == 0]; o.stdout != want {
				t.Errorf("stdout %q, want %q", o.stdout, want)
			}
		})
	}
}

// TestFullDiskOfAFileSpace: a space in a file takes its bytes from the disk
// when the sandbox is made, and so is refused at once where there are none.
func TestFullDiskOfAFileSpace(t *testing.T) {
	require.Root(t)
	nothingLeft(t)
	words := "67108864 bytes in /var/tmp: no space left on device"
	if _, err := exec.LookPath("mkfs.ext4"); err != nil {
		words = "mkfs.ext4 is not installed"
	}
	name := file(t, "policy.yaml", "version: 1\nfloor: process\nlimits: {disk: {backing: file, size: 64MiB}}\n")
	o := inNewMounts(t, full("/var/tmp"), "run", "--policy", name, "-c", "print(42)")
	o.wants(t, 126, words)
	if o.stdout != "" {
		t.Errorf("it ran: %q", o.stdout)
	}
}

// TestFullDiskInside: the program's own space is full. It is told, the rest
// goes on, and the result names the limit.
func TestFullDiskInside(t *testing.T) {
	nothingLeft(t)
	code := `
try:
    with open('/work/fill', 'wb') as f:
        while True: f.write(b'x' * 65536)
except OSError as e:
    print(e.errno)
import time; time.sleep(.5)
print('goes on')
`
	o := runCode(t, "--json", "--disk", "8MiB", "-c", code)
	o.wants(t, 0, "")
	var res struct {
		Stdout    string
		LimitsHit []string `json:"limits_hit"`
	}
	if err := json.Unmarshal([]byte(o.stdout), &res); err != nil {
		t.Fatal(err)
	}
	if res.Stdout != "28\ngoes on\n" || strings.Join(res.LimitsHit, " ") != "disk" {
		t.Errorf("%+v", res)
	}
	// Code goes to the program by its input, so it needs no room for itself.
	large := "#" + strings.Repeat("x", 4*mib) + "\nprint(42)"
	if o := runCode(t, "--disk", "1MiB", file(t, "large.py", large)); o.status != 0 || o.stdout != "42\n" {
		t.Errorf("code larger than the disk: %+v", o)
	}
}

// TestFullOutput writes the result to a device that is always full.
func TestFullOutput(t *testing.T) {
	nothingLeft(t)
	for _, args := range [][]string{{"-c", "print('x' * 100000)"}, {"--json", "-c", "1"}} {
		f, err := os.OpenFile("/dev/full", os.O_WRONLY, 0)
		if err != nil {
			t.Fatal(err)
		}
		c := prepare(t, runArgs(t, args...)...)
		c.cmd.Stdout = f
		c.start().wait().wants(t, 125, "no space left on device")
		f.Close()
	}
}

// TestNoTemporaryFolder hides /tmp, or names one that isn't there.
func TestNoTemporaryFolder(t *testing.T) {
	require.Root(t)
	nothingLeft(t)
	run := []string{"run", "--isolation", "process", "-c", "import tempfile; print(len(tempfile.mkdtemp()) > 0)"}
	for name, script := range map[string]string{
		"empty root":  "mount -t tmpfs -o mode=000 none /tmp; mount -t tmpfs -o mode=000 none /var/tmp\nunset TMPDIR",
		"read-only":   "mount -t tmpfs -o ro none /tmp; mount -t tmpfs -o ro none /var/tmp\nunset TMPDIR",
		"not there":   "export TMPDIR=/no/such/folder",
		"empty name":  "export TMPDIR=",
		"a file":      "export TMPDIR=/etc/passwd",
		"no HOME":     "unset HOME XDG_CONFIG_HOME XDG_RUNTIME_DIR",
		"environment": "unset HOME XDG_CONFIG_HOME XDG_RUNTIME_DIR TMPDIR LANG PATH",
	} {
		t.Run(name, func(t *testing.T) {
			o := inNewMounts(t, script, run...)
			o.wants(t, 0, "")
			if o.stdout != "True\n" {
				t.Errorf("stdout %q", o.stdout)
			}
			o = inNewMounts(t, script, "run", "--backend", "subprocess", "--isolation", "subprocess", "-c", "print(42)")
			if o.status != 0 && (o.status != 126 || !strings.Contains(o.stderr, "refused") && !strings.Contains(o.stderr, "temporary folder")) {
				t.Errorf("subprocess: status %d, %q", o.status, o.stderr)
			}
		})
	}
}

// TestNoRuntimeFolder: as another user than root, without a place for locks.
func TestNoRuntimeFolder(t *testing.T) {
	require.Unprivileged(t)
	lacking(t)
	dir := t.TempDir()
	others := filepath.Join(dir, "others")
	if err := os.Mkdir(others, 0o777); err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(others, 0o777); err != nil {
		t.Fatal(err)
	}
	for name, env := range map[string][]string{
		"nowhere":  {"XDG_RUNTIME_DIR=/no/such/folder", "TMPDIR=/no/such/folder"},
		"root's":   {"XDG_RUNTIME_DIR=/", "TMPDIR=/"},
		"a file":   {"XDG_RUNTIME_DIR=/etc/passwd", "TMPDIR=/etc/passwd"},
		"anyone's": {"XDG_RUNTIME_DIR=" + others, "TMPDIR=" + others},
	} {
		c := prepare(t, runArgs(t, "-c", "print(42)")...)
		c.cmd.Env = append(c.cmd.Env, env...)
		o := c.start().wait()
		o.wants(t, 126, "runtime folder")
		if o.stdout != "" {
			t.Errorf("%s: it ran", name)
		}
	}
}
