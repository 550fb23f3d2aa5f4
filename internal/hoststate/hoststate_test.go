package hoststate

import (
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"tranca/internal/require"
)

func take(t *testing.T, o Options) *State {
	t.Helper()
	s, err := Take(o)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// wants fails unless what is left holds a line with the words, and then, when
// the thing is gone, no such line.
func wants(t *testing.T, before *State, o Options, words string, remove func()) {
	t.Helper()
	has := func() bool {
		return slices.ContainsFunc(Left(before, take(t, o)), func(l string) bool { return strings.Contains(l, words) })
	}
	if !has() {
		t.Errorf("%q isn't seen among %q", words, Left(before, take(t, o)))
	}
	remove()
	for range 100 {
		if !has() {
			return
		}
		time.Sleep(20 * time.Millisecond)
	}
	t.Errorf("%q is seen when it is gone", words)
}

func TestSeesFolders(t *testing.T) {
	o := Options{Folders: []string{t.TempDir()}}
	before := take(t, o)
	dir := filepath.Join(o.Folders[0], "x-tranca-1")
	if err := os.MkdirAll(filepath.Join(dir, "below"), 0o755); err != nil {
		t.Fatal(err)
	}
	wants(t, before, o, dir+"/below", func() { os.RemoveAll(dir) })
}

func TestSeesDescriptors(t *testing.T) {
	o := Options{Self: true}
	before := take(t, o)
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	wants(t, before, o, "descriptor ", func() { r.Close(); w.Close() })
}

func TestSeesAProgramByItsFile(t *testing.T) {
	sleep, err := filepath.EvalSymlinks(require.Program(t, "sleep"))
	if err != nil {
		t.Fatal(err)
	}
	o := Options{Programs: []string{sleep}}
	before := take(t, o)
	cmd := exec.Command(sleep, "60")
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	wants(t, before, o, "process ", func() { cmd.Process.Kill(); _ = cmd.Wait() })
}

func TestSeesNamespacesMountsAndTheirProcesses(t *testing.T) {
	require.Root(t)
	o := Default()
	before := take(t, o)
	cmd := exec.Command("sleep", "60")
	cmd.SysProcAttr = &syscall.SysProcAttr{Cloneflags: syscall.CLONE_NEWUTS | syscall.CLONE_NEWNET}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	end := func() { cmd.Process.Kill(); _ = cmd.Wait() }
	defer end()
	left := strings.Join(Left(before, take(t, o)), "\n")
	for _, word := range []string{"process ", "(sleep)", "namespace net:", "namespace uts:"} {
		if !strings.Contains(left, word) {
			t.Errorf("%q isn't seen among %s", word, left)
		}
	}
	dir := t.TempDir()
	if err := syscall.Mount("x", dir, "tmpfs", 0, ""); err != nil {
		t.Fatal(err)
	}
	wants(t, before, o, " "+dir+" ", func() {
		if err := syscall.Unmount(dir, 0); err != nil {
			t.Error(err)
		}
	})
}

func TestWaitCleanGivesUp(t *testing.T) {
	o := Options{Folders: []string{t.TempDir()}}
	before := take(t, o)
	if err := os.Mkdir(filepath.Join(o.Folders[0], "tranca"), 0o755); err != nil {
		t.Fatal(err)
	}
	left, err := WaitClean(before, o, 10*time.Millisecond)
	if err != nil || len(left) != 1 {
		t.Errorf("left %q, %v", left, err)
	}
}

func TestStatOfAnAwkwardName(t *testing.T) {
	s, ok := parseStat("12 (a) R (b c) S 7 " + strings.Repeat("0 ", 17) + "99 0 0")
	if !ok || s.comm != "(a) R (b c)" || s.state != "S" || s.ppid != "7" || s.started != "99" {
		t.Errorf("%+v, %v", s, ok)
	}
	if _, ok := parseStat("12 (kworker/0:0) I 2 0 0 0 -1 69238880 " + strings.Repeat("0 ", 30)); ok {
		t.Error("a thread of the kernel is taken")
	}
	if _, ok := parseStat("12 (a"); ok {
		t.Error("half a line is taken")
	}
}

func TestPrivateDirtyOfThisProcess(t *testing.T) {
	n, err := PrivateDirty(os.Getpid())
	if err != nil || n < 100<<10 || n > 1<<30 {
		t.Errorf("%d bytes, %v", n, err)
	}
}
