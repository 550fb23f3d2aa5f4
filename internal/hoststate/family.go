package hoststate

import (
	"os"
	"path/filepath"
	"strconv"
)

// Family returns a process and all that is below it, zombies left out: pids with
// their start times, by which a pid that was used again is told apart.
func Family(pid int) map[int]string {
	parents, starts := map[int]string{}, map[int]string{}
	each(func(n int, s stat) { parents[n], starts[n] = s.ppid, s.started })
	family := map[int]string{}
	for n := range parents {
		for at := n; at > 1; at, _ = strconv.Atoi(parents[at]) {
			if at == pid {
				family[n] = starts[n]
				break
			}
		}
	}
	return family
}

// InOtherPIDNamespaces returns the processes in other pid namespaces than this
// process's, as far as this user may see that, in the form of [Family].
func InOtherPIDNamespaces() map[int]string {
	own, err := os.Readlink("/proc/self/ns/pid")
	if err != nil {
		return nil
	}
	all := map[int]string{}
	each(func(n int, s stat) {
		ns, err := os.Readlink(filepath.Join("/proc", strconv.Itoa(n), "ns/pid"))
		if err == nil && ns != own {
			all[n] = s.started
		}
	})
	return all
}

// Alive returns those of a family that still run, zombies left out.
func Alive(family map[int]string) map[int]string {
	still := map[int]string{}
	for pid, started := range family {
		if s, ok := readStat(pid); ok && s.runs() && s.started == started {
			still[pid] = started
		}
	}
	return still
}

// each calls a function for each process that runs.
func each(do func(pid int, s stat)) {
	entries, _ := os.ReadDir("/proc")
	for _, e := range entries {
		pid, err := strconv.Atoi(e.Name())
		if err != nil {
			continue
		}
		if s, ok := readStat(pid); ok && s.runs() {
			do(pid, s)
		}
	}
}

// runs reports whether a process is neither a zombie nor dead.
func (s stat) runs() bool { return s.state != "Z" && s.state != "X" }
