package badinput

import (
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// settleTime is what the kernel gets to free what was given up, where nothing
// may be left.
const settleTime = 2 * time.Second

// nothingLeft fails the test when, at its end and after all that it cleans up
// itself, there is something on the host that wasn't there now.
func nothingLeft(t testing.TB) {
	t.Helper()
	lacking(t) // the first look at the host opens what stays open
	before := state()
	t.Cleanup(func() {
		if !t.Failed() {
			checkLeft(t, before, settleTime)
		}
	})
}

// checkLeft waits until each thing that came since before is gone.
func checkLeft(t testing.TB, before map[string]bool, most time.Duration) {
	t.Helper()
	left := newSince(before, state())
	for end := time.Now().Add(most); len(left) > 0 && time.Now().Before(end); {
		time.Sleep(5 * time.Millisecond)
		left = newSince(before, state())
	}
	for _, name := range left {
		t.Errorf("left behind: %s", name)
	}
}

func newSince(before, now map[string]bool) []string {
	return slices.DeleteFunc(slices.Sorted(maps.Keys(now)), func(name string) bool { return before[name] })
}

// state names all that a sandbox could leave: processes below this one, control
// groups, files in the runtime folders and in the commands' temporary folder,
// descriptors and mounts of this process.
func state() map[string]bool {
	set := map[string]bool{}
	for pid, what := range descendants() {
		set[fmt.Sprintf("process %d %s", pid, what)] = true
	}
	ours := supervisors.seen()
	addTree(set, "control group", "/sys/fs/cgroup", func(p string) bool {
		_, rest, found := strings.Cut(p, "/tranca-")
		return found && len(rest) >= 16 && ours[rest[:16]]
	})
	for _, name := range []string{"run", "tmp", "home"} {
		dir := filepath.Join(scratch, name)
		// mount(8) keeps notes of its own in /run/mount.
		addTree(set, "file", dir, func(p string) bool { return p != dir && !strings.Contains(p, "/run/mount") })
	}
	entries, _ := os.ReadDir("/proc/self/fd")
	for _, e := range entries {
		if link, err := os.Readlink("/proc/self/fd/" + e.Name()); err == nil {
			set["descriptor "+e.Name()+" "+link] = true
		}
	}
	mounts, _ := os.ReadFile("/proc/self/mountinfo")
	for line := range strings.Lines(string(mounts)) {
		// Of the tests' container engines, see scripts/engines.sh, and of
		// sandboxes beside these, which have a runtime folder of their own.
		if strings.Contains(line, "-engines/") || strings.Contains(line, " /run/tranca/") {
			continue
		}
		set["mount "+strings.TrimSpace(line)] = true
	}
	return set
}

// supervisors are those that had a lock file in the runtime folder of the
// tests: only by that their control groups are told from those of others.
var supervisors watched

type watched struct {
	mu  sync.Mutex
	fd  int
	ids map[string]bool
}

func watchSupervisors(dir string) (err error) {
	supervisors.ids = map[string]bool{}
	if supervisors.fd, err = unix.InotifyInit1(unix.IN_NONBLOCK | unix.IN_CLOEXEC); err != nil {
		return err
	}
	_, err = unix.InotifyAddWatch(supervisors.fd, dir, unix.IN_CREATE)
	return err
}

// seen returns the ids of all that had a lock file here so far.
func (w *watched) seen() map[string]bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	buf := make([]byte, 64<<10)
	for {
		n, err := unix.Read(w.fd, buf)
		if n <= 0 || err != nil {
			return maps.Clone(w.ids)
		}
		for _, name := range lockFile.FindAllSubmatch(buf[:n], -1) {
			w.ids[string(name[1])] = true
		}
	}
}

// lockFile finds the names of lock files among the kernel's records.
var lockFile = regexp.MustCompile(`s-([0-9a-f]{16})\x00`)

func addTree(set map[string]bool, kind, root string, wanted func(string) bool) {
	_ = filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if err == nil && wanted(path) && (kind == "file" || d.IsDir()) {
			set[kind+" "+path] = true
		}
		return nil // what vanishes meanwhile isn't left
	})
}

// descendants lists the processes below this one. Zombies that only this
// process can reap, since it has inherited them, are reaped.
func descendants() map[int]string {
	names, children := processTable()
	below := map[int]string{}
	for next := []int{os.Getpid()}; len(next) > 0; next = next[1:] {
		for _, pid := range children[next[0]] {
			if next[0] == os.Getpid() && strings.Contains(names[pid], ") Z") {
				if n, _ := unix.Wait4(pid, nil, unix.WNOHANG|unix.WALL, nil); n == pid {
					continue
				}
			}
			below[pid] = names[pid]
			next = append(next, pid)
		}
	}
	return below
}

// processTable returns of each process its name and state, and its children.
func processTable() (names map[int]string, children map[int][]int) {
	names, children = map[int]string{}, map[int][]int{}
	entries, _ := os.ReadDir("/proc")
	for _, e := range entries {
		pid, err := strconv.Atoi(e.Name())
		if err != nil {
			continue
		}
		text, err := os.ReadFile("/proc/" + e.Name() + "/stat")
		if err != nil {
			continue
		}
		// The name may hold anything, so the last parenthesis ends it.
		at := strings.LastIndexByte(string(text), ')')
		fields := strings.Fields(string(text[at+1:]))
		ppid, _ := strconv.Atoi(fields[1])
		names[pid] = string(text[strings.IndexByte(string(text), '('):at+1]) + " " + fields[0]
		children[ppid] = append(children[ppid], pid)
	}
	return names, children
}

// TestStateSeesWhatIsLeft: the check is worth nothing if it sees nothing.
func TestStateSeesWhatIsLeft(t *testing.T) {
	before := state()
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	defer w.Close()
	file := filepath.Join(scratch, "tmp", "left")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	defer os.Remove(file)
	c := start(t, "version")
	c.signal(unix.SIGSTOP)
	left := strings.Join(newSince(before, state()), "\n")
	for _, want := range []string{"process " + strconv.Itoa(c.pid()), "descriptor ", "file " + file} {
		if !strings.Contains(left, want) {
			t.Errorf("%q is not among what is left:\n%s", want, left)
		}
	}
	c.signal(unix.SIGKILL)
	c.wait()
}
