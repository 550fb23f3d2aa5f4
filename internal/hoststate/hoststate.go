// Package hoststate compares what sandboxes could leave on a host: processes,
// mounts, control groups, namespaces, folders, loop devices, descriptors. It
// reads /proc and /sys and believes nothing that tranca says of itself.
package hoststate

import (
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

// State is what there is, each kind as a set of names that stay the same for
// as long as the thing exists.
type State struct {
	Processes   map[string]bool
	Mounts      map[string]bool
	Cgroups     map[string]bool
	Namespaces  map[string]bool
	Folders     map[string]bool
	Loops       map[string]bool
	Descriptors map[string]bool
}

// Options say where to look.
type Options struct {
	// Folders are looked into for entries whose name has "tranca" in it, and
	// below those for everything.
	Folders []string
	// Programs are files. A process that runs one of them counts even if it
	// is in no namespace of its own; so does one whose file was deleted.
	Programs []string
	// Self counts the descriptors of this process.
	Self bool
}

// Default looks where tranca and its tests put things.
func Default() Options {
	folders := []string{"/tmp", "/var/tmp", "/run", "/dev/shm", "/var/lib"}
	if dir := os.Getenv("XDG_RUNTIME_DIR"); dir != "" {
		folders = append(folders, dir)
	}
	return Options{Folders: folders}
}

// Take reads the state.
func Take(o Options) (*State, error) {
	s := &State{Loops: loops()}
	var err error
	if s.Mounts, err = lines("/proc/self/mountinfo"); err != nil {
		return nil, err
	}
	if s.Processes, s.Namespaces, err = processes(o.Programs); err != nil {
		return nil, err
	}
	if s.Cgroups, err = cgroups(); err != nil {
		return nil, err
	}
	s.Folders = folders(o.Folders)
	s.Descriptors = map[string]bool{}
	if o.Self {
		if s.Descriptors, err = descriptors(); err != nil {
			return nil, err
		}
	}
	return s, nil
}

// Left returns a line for each thing that is in now and wasn't before.
func Left(before, now *State) []string {
	var left []string
	for _, k := range []struct {
		kind        string
		before, now map[string]bool
	}{
		{"process", before.Processes, now.Processes},
		{"mount", before.Mounts, now.Mounts},
		{"cgroup", before.Cgroups, now.Cgroups},
		{"namespace", before.Namespaces, now.Namespaces},
		{"folder or file", before.Folders, now.Folders},
		{"loop device", before.Loops, now.Loops},
		{"descriptor", before.Descriptors, now.Descriptors},
	} {
		for _, name := range slices.Sorted(maps.Keys(k.now)) {
			if !k.before[name] {
				left = append(left, k.kind+" "+name)
			}
		}
	}
	return left
}

// WaitClean takes the state until nothing is left of what came since before,
// or the time is over; then it returns what is left. The kernel frees some
// things after the call that ends them has returned.
func WaitClean(before *State, o Options, most time.Duration) ([]string, error) {
	return wait(most, func() ([]string, error) {
		now, err := Take(o)
		if err != nil {
			return nil, err
		}
		return Left(before, now), nil
	})
}

// WaitDead waits as [WaitClean] does, until none is alive of the processes that
// have come since before, which [Sandboxed] returned for the same programs.
func WaitDead(before map[string]bool, programs []string, most time.Duration) ([]string, error) {
	return wait(most, func() ([]string, error) {
		now, err := Sandboxed(programs)
		if err != nil {
			return nil, err
		}
		return Left(&State{Processes: before}, &State{Processes: now}), nil
	})
}

func wait(most time.Duration, look func() ([]string, error)) ([]string, error) {
	for deadline := time.Now().Add(most); ; time.Sleep(50 * time.Millisecond) {
		left, err := look()
		if err != nil || len(left) == 0 || time.Now().After(deadline) {
			return left, err
		}
	}
}

func lines(path string) (map[string]bool, error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	set := map[string]bool{}
	for line := range strings.Lines(string(text)) {
		set[strings.TrimSpace(line)] = true
	}
	return set, nil
}

// cgroups lists every folder of every hierarchy.
func cgroups() (map[string]bool, error) {
	set := map[string]bool{}
	err := filepath.WalkDir("/sys/fs/cgroup", func(path string, d fs.DirEntry, err error) error {
		if err == nil && d.IsDir() {
			set[path] = true
		}
		return nil // a group that vanishes meanwhile isn't left
	})
	return set, err
}

func folders(roots []string) map[string]bool {
	set := map[string]bool{}
	for _, root := range roots {
		found, err := filepath.Glob(filepath.Join(root, "*tranca*"))
		if err != nil {
			continue // the pattern is right: Glob has no other error
		}
		for _, top := range found {
			_ = filepath.WalkDir(top, func(path string, _ fs.DirEntry, err error) error {
				if err == nil {
					set[path] = true
				}
				return nil
			})
		}
	}
	return set
}

func loops() map[string]bool {
	set := map[string]bool{}
	files, _ := filepath.Glob("/sys/block/loop*/loop/backing_file")
	for _, name := range files {
		if file, err := os.ReadFile(name); err == nil {
			set[filepath.Base(filepath.Dir(filepath.Dir(name)))+" "+strings.TrimSpace(string(file))] = true
		}
	}
	return set
}

// descriptors names the descriptors of this process by number and kind, so
// that a new pipe under an old number isn't missed, and the numbers that a
// pipe's inode would add don't matter.
func descriptors() (map[string]bool, error) {
	entries, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		return nil, err
	}
	set := map[string]bool{}
	for _, e := range entries {
		link, err := os.Readlink("/proc/self/fd/" + e.Name())
		if err != nil || strings.HasPrefix(link, fmt.Sprintf("/proc/%d/fd", os.Getpid())) {
			continue // the descriptor that reads this folder
		}
		set[e.Name()+" "+link] = true
	}
	return set, nil
}
