package world

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"tranca"
	"tranca/internal/hoststate"
)

// outside is what the host sees of a process.
type outside struct {
	uid, filter string
	first, last time.Time
}

// WatchOutside watches what the host sees of the processes that run the program,
// until stop, where an item is about that: as which users of the host they run,
// and, where they are a kernel of its own, whether they have a filter for their
// system calls. What counts is how each was seen last: it begins with more. Of
// kernels it takes all below this process, so that no other sandbox may run.
func (w *World) WatchOutside(item tranca.Item, v View) (stop func() []Finding) {
	if item != tranca.ItemUser && (item != tranca.ItemSyscalls || v.Kernel == "") {
		return func() []Finding { return nil }
	}
	pids, every := w.Marked, 10*time.Millisecond
	if v.Kernel != "" {
		pids, every = func() []int { return ownKernels(v.Kernel) }, 50*time.Millisecond
	}
	seen := map[int]outside{}
	enough := Every(every, func() {
		for _, pid := range pids() {
			now, ok := look(pid)
			if !ok {
				continue
			}
			now.first = now.last
			if before, known := seen[pid]; known {
				now.first = before.first
			}
			seen[pid] = now
		}
	})
	return func() []Finding {
		enough()
		if v.Kernel == "" {
			return judge(item, seen, Unseen)
		}
		for pid, p := range seen {
			if p.last.Sub(p.first) < settlesBy {
				delete(seen, pid) // what only prepared it
			}
		}
		return judge(item, seen, UnseenKernel)
	}
}

// settlesBy is for how long a process has to be seen to be told from one that only
// prepares a sandbox.
const settlesBy = 300 * time.Millisecond

func judge(item tranca.Item, last map[int]outside, nothing string) (found []Finding) {
	if len(last) == 0 {
		return []Finding{{nothing, "no process of the program was seen on the host"}}
	}
	for pid, p := range last {
		switch {
		case item == tranca.ItemUser && (p.uid == "0" || p.uid == strconv.Itoa(os.Getuid())):
			found = append(found, Finding{"user", "the program runs as user " + p.uid + " of the host"})
		case item == tranca.ItemSyscalls && p.filter == "0":
			found = append(found, Finding{"unfiltered", fmt.Sprintf("process %d, which runs the program, may make every system call of the host", pid)})
		}
	}
	return found
}

// look reads what the host's kernel says of a process.
func look(pid int) (o outside, ok bool) {
	o.last = time.Now()
	text, err := os.ReadFile(filepath.Join("/proc", strconv.Itoa(pid), "status"))
	for line := range strings.Lines(string(text)) {
		name, value, _ := strings.Cut(line, ":")
		fields := strings.Fields(value)
		switch {
		case len(fields) == 0:
		case name == "Uid":
			o.uid = fields[1] // the effective one
		case name == "Seccomp":
			o.filter = fields[0]
		}
	}
	return o, err == nil && o.uid != "" && o.filter != ""
}

// ownKernels are the processes below this one whose command line begins so.
func ownKernels(name string) (pids []int) {
	family, err := hoststate.Family(os.Getpid())
	if err != nil {
		return nil
	}
	for pid := range family {
		if args := arguments(pid); len(args) > 0 && args[0] == name {
			pids = append(pids, pid)
		}
	}
	return pids
}
