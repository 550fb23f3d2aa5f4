package hoststate

import (
	"os"
	"slices"
	"strconv"
)

// Known are processes that there are, each with the time of its start, since a
// number is used again.
type Known map[int]string

// Running lists all processes of the host.
func Running() (Known, error) {
	all, err := table()
	known := Known{}
	for pid, s := range all {
		known[pid] = s.started
	}
	return known, err
}

// Since lists the processes that came since then and could belong to a sandbox.
// Those below this process are its own. Elsewhere are the ones in a namespace
// that isn't this process's, with the new ones above them, such as the shim that
// an engine starts for each container; they may be anybody's. Zombies hold
// nothing, and are left out.
func Since(before Known) (own, elsewhere []int, err error) {
	all, err := table()
	if err != nil {
		return nil, nil, err
	}
	fresh := func(pid int) bool {
		s, there := all[pid]
		return there && s.state != "Z" && pid != os.Getpid() && before[pid] != s.started
	}
	spaces := namespacesOf("self")
	found := map[int]bool{}
	for pid := range all {
		switch {
		case !fresh(pid):
			continue
		case below(all, pid):
			own = append(own, pid)
			continue
		case !foreign(spaces, pid):
			continue
		}
		for up := pid; fresh(up) && !found[up]; up = all[up].parent() {
			found[up] = true
		}
	}
	for pid := range found {
		elsewhere = append(elsewhere, pid)
	}
	return own, elsewhere, nil
}

func (s stat) parent() int {
	ppid, err := strconv.Atoi(s.ppid)
	if err != nil {
		return 0
	}
	return ppid
}

// below reports whether a process stands below this one.
func below(all map[int]stat, pid int) bool {
	for range len(all) {
		if pid == os.Getpid() {
			return true
		}
		s, there := all[pid]
		if !there {
			return false
		}
		pid = s.parent()
	}
	return false
}

func foreign(own map[string]string, pid int) bool {
	for kind, ns := range namespacesOf(strconv.Itoa(pid)) {
		if ns != own[kind] {
			return true
		}
	}
	return false
}

// Still returns those of the lines of [Left] that are there now.
func Still(lines []string, o Options) ([]string, error) {
	now, err := Take(o)
	if err != nil {
		return nil, err
	}
	there := map[string]bool{}
	for _, l := range Left(&State{}, now) {
		there[l] = true
	}
	return slices.DeleteFunc(slices.Clone(lines), func(l string) bool { return !there[l] }), nil
}
