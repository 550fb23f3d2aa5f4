package hoststate

import (
	"fmt"
	"os"
	"strconv"
)

// Family returns a process and all that is below it, zombies left out: pids with
// their start times, by which a pid that was used again is told apart.
func Family(pid int) (map[int]string, error) {
	all, err := table()
	family := map[int]string{}
	for n, s := range all {
		for at := n; at > 1 && s.runs(); at, _ = strconv.Atoi(all[at].ppid) {
			if at == pid {
				family[n] = s.started
				break
			}
		}
	}
	return family, err
}

// InOtherPIDNamespaces returns the processes in other pid namespaces than this
// process's, as far as this user may see that, in the form of [Family].
func InOtherPIDNamespaces() (map[int]string, error) {
	own, err := os.Readlink("/proc/self/ns/pid")
	if err != nil {
		return nil, err
	}
	all, err := table()
	foreign := map[int]string{}
	for n, s := range all {
		ns, err := os.Readlink(fmt.Sprintf("/proc/%d/ns/pid", n))
		if err == nil && ns != own && s.runs() {
			foreign[n] = s.started
		}
	}
	return foreign, err
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

// runs reports whether a process is neither a zombie nor dead.
func (s stat) runs() bool { return s.state != "Z" && s.state != "X" }
