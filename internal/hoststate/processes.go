package hoststate

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
)

var kinds = []string{"cgroup", "ipc", "mnt", "net", "pid", "time", "user", "uts"}

// Sandboxed returns the processes that could belong to a sandbox, as
// [State].Processes names them, the zombies left out: their parent, which is
// process 1 where their supervisor is dead, reaps them when it likes.
func Sandboxed(programs []string) (map[string]bool, error) {
	procs, _, err := processes(programs)
	for name := range procs {
		if strings.Contains(name, " Z started ") {
			delete(procs, name)
		}
	}
	return procs, err
}

// processes lists those that could belong to a sandbox: in a namespace that
// isn't this process's, or running one of the programs. Others on the host
// come and go without tranca. Zombies count: somebody should have reaped them.
// The namespaces are those of all processes.
func processes(programs []string) (procs, spaces map[string]bool, err error) {
	all, err := table()
	if err != nil {
		return nil, nil, err
	}
	own := namespacesOf("self")
	procs, spaces = map[string]bool{}, map[string]bool{}
	for pid, stat := range all {
		if pid == os.Getpid() {
			continue
		}
		foreign := false
		for kind, ns := range namespacesOf(strconv.Itoa(pid)) {
			spaces[ns] = true
			foreign = foreign || ns != own[kind]
		}
		exe, err := os.Readlink(fmt.Sprintf("/proc/%d/exe", pid))
		if foreign || err == nil && slices.Contains(programs, strings.TrimSuffix(exe, " (deleted)")) {
			procs[fmt.Sprintf("%d %s %s started %s", pid, stat.comm, stat.state, stat.started)] = true
		}
	}
	return procs, spaces, nil
}

// table reads what /proc says of every process.
func table() (map[int]stat, error) {
	entries, err := os.ReadDir("/proc")
	if err != nil {
		return nil, err
	}
	all := make(map[int]stat, len(entries))
	for _, e := range entries {
		pid, err := strconv.Atoi(e.Name())
		if err != nil {
			continue
		}
		if s, ok := readStat(pid); ok {
			all[pid] = s
		}
	}
	return all, nil
}

// namespacesOf returns the namespaces of a process by kind; none if it has
// ended or may not be looked at.
func namespacesOf(pid string) map[string]string {
	all := map[string]string{}
	for _, kind := range kinds {
		if link, err := os.Readlink(filepath.Join("/proc", pid, "ns", kind)); err == nil {
			all[kind] = link
		}
	}
	return all
}

type stat struct{ comm, state, ppid, started string }

// readStat reads what /proc/PID/stat says. The name in it can hold anything,
// so what follows is looked for behind its last parenthesis.
func readStat(pid int) (stat, bool) {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return stat{}, false
	}
	return parseStat(string(text))
}

// parseStat reads a line of that file; ok is false where it is none, or is about a
// thread of the kernel's own, which comes and goes without anybody.
func parseStat(text string) (s stat, ok bool) {
	open, end := strings.IndexByte(text, '('), strings.LastIndexByte(text, ')')
	if open < 0 || end < open {
		return stat{}, false
	}
	fields := strings.Fields(text[end+1:])
	if len(fields) < 20 {
		return stat{}, false
	}
	flags, err := strconv.ParseUint(fields[6], 10, 64)
	const thread = 0x00200000 // PF_KTHREAD of the kernel's include/linux/sched.h
	return stat{text[open : end+1], fields[0], fields[1], fields[19]}, err != nil || flags&thread == 0
}

// PrivateDirty returns the bytes of memory that one process alone has written.
func PrivateDirty(pid int) (int64, error) {
	name := fmt.Sprintf("/proc/%d/smaps_rollup", pid)
	text, err := os.ReadFile(name)
	if err != nil {
		return 0, err
	}
	for line := range strings.Lines(string(text)) {
		if rest, ok := strings.CutPrefix(line, "Private_Dirty:"); ok {
			kib, err := strconv.ParseInt(strings.TrimSpace(strings.TrimSuffix(strings.TrimSpace(rest), "kB")), 10, 64)
			return kib << 10, err
		}
	}
	return 0, fmt.Errorf("%s has no Private_Dirty", name)
}
