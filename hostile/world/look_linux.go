package world

import (
	"bytes"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// Finding is one thing that the host saw.
type Finding struct {
	// Oracle names what saw it: "secret", "changed", "planted", "reached",
	// "alive", "signalled", "user", "unfiltered"; or see [Finding.Saw].
	Oracle string `json:"oracle"`
	Text   string `json:"text"`
}

// The oracles that saw nothing where they had to, so that what they are about is
// not known: no process of the program, and none of a kernel that tranca makes.
const (
	Unseen       = "unseen"
	UnseenKernel = "unseen kernel"
)

// Saw reports whether something was seen that must not be.
func (f Finding) Saw() bool { return f.Oracle != Unseen && f.Oracle != UnseenKernel }

// Seen is what came out of the sandbox.
type Seen struct {
	// Output are the streams and the collected files, by what they are.
	Output map[string][]byte
	// Told are the paths that the result named as executable by the host.
	Told map[string]bool
}

// Look looks at everything once, when the sandbox is gone.
func (w *World) Look(s Seen) []Finding {
	found := w.survivors() // first: what lives on could change what is looked at
	for _, where := range slices.Sorted(maps.Keys(s.Output)) {
		found = append(found, w.leaks("in "+where, s.Output[where])...)
	}
	found = append(found, w.hits()...)
	found = append(found, w.changes()...)
	found = append(found, w.planted(s.Told)...)
	if w.victim != nil {
		found = append(found, w.victim.look()...)
	}
	return append(found, w.memoryLook()...)
}

// leaks tells of each secret in a text.
func (w *World) leaks(where string, data []byte) (found []Finding) {
	for _, name := range slices.Sorted(maps.Keys(w.secrets)) {
		if bytes.Contains(data, []byte(w.secrets[name])) {
			found = append(found, Finding{"secret", "that of " + name + " is " + where})
		}
	}
	return found
}

// patience is how long what is ending may take to be gone.
const patience = 2 * time.Second

// survivors tells of processes of the program that are alive.
func (w *World) survivors() (found []Finding) {
	var alive []int
	for end := time.Now().Add(patience); ; time.Sleep(20 * time.Millisecond) {
		if alive = w.Marked(); len(alive) == 0 || time.Now().After(end) || w.o.Stand {
			break
		}
	}
	for _, pid := range alive {
		found = append(found, Finding{"alive", fmt.Sprintf("process %d of the program after its end", pid)})
		_ = syscall.Kill(pid, syscall.SIGKILL)
	}
	return found
}

// StillWritten tells of files below the writable mount that change while nothing of
// the program should run any more.
func (w *World) StillWritten() (found []Finding) {
	root, ok := w.mounts["rw"]
	if !ok {
		return nil
	}
	before := times(root)
	time.Sleep(writesWithin)
	for path, at := range times(root) {
		if at != before[path] {
			found = append(found, Finding{"alive", "something still writes to " + filepath.Base(path) + " in the writable mount"})
		}
	}
	return found
}

// writesWithin is how often something that goes on writing is sure to write.
const writesWithin = 500 * time.Millisecond

// times are when the files below a folder were last changed.
func times(root string) map[string]time.Time {
	all := map[string]time.Time{}
	_ = filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return nil //nolint:nilerr // what goes away meanwhile is compared as that
		}
		if info, err := d.Info(); err == nil {
			all[path] = info.ModTime()
		}
		return nil
	})
	return all
}

// Marked returns the processes of the program that the host sees: their command
// line has the mark, or their name is the beginning of it. Zombies are no more.
func (w *World) Marked() (pids []int) {
	entries, err := os.ReadDir("/proc")
	if err != nil {
		return nil
	}
	for _, e := range entries {
		pid, err := strconv.Atoi(e.Name())
		if err != nil || pid == os.Getpid() || !w.marked(pid) {
			continue
		}
		pids = append(pids, pid)
	}
	return pids
}

func (w *World) marked(pid int) bool {
	args := arguments(pid)
	if len(args) > 1 && args[1] == w.Mark {
		return true
	}
	name, err := os.ReadFile(filepath.Join("/proc", strconv.Itoa(pid), "comm"))
	return err == nil && strings.TrimSpace(string(name)) == w.Mark[:15] && len(args) > 0
}

// arguments is the command line of a process; none where it has none, as a zombie
// has, or can't be read.
func arguments(pid int) []string {
	line, err := os.ReadFile(filepath.Join("/proc", strconv.Itoa(pid), "cmdline"))
	if err != nil || len(line) == 0 {
		return nil
	}
	return strings.Split(string(line), "\x00")
}
