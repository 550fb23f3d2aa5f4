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
type outside struct{ uid, filter string }

// WatchOutside watches what the host sees of the processes that run the program,
// until stop, where an item is about that: as which users of the host they run,
// and, where they are a kernel of its own, whether they have a filter for their
// system calls. What counts is how each was seen last: it begins with more.
func (w *World) WatchOutside(item tranca.Item, v View) (stop func() []Finding) {
	if item != tranca.ItemUser && (item != tranca.ItemSyscalls || v.Kernel == "") {
		return func() []Finding { return nil }
	}
	pids := w.Marked
	if v.Kernel != "" {
		pids = func() []int { return ownKernels(v.Kernel) }
	}
	done, gone := make(chan struct{}), make(chan struct{})
	last, first := map[int]outside{}, map[int]time.Time{}
	go func() {
		defer close(gone)
		for {
			select {
			case <-done:
				return
			case <-time.After(10 * time.Millisecond):
			}
			for _, pid := range pids() {
				if seen, ok := look(pid); ok {
					last[pid] = seen
					if first[pid].IsZero() {
						first[pid] = time.Now()
					}
				}
			}
		}
	}()
	return func() []Finding {
		close(done)
		<-gone
		for pid, at := range first {
			if v.Kernel != "" && time.Since(at) < settlesBy {
				delete(last, pid) // that of a sandbox that just began
			}
		}
		return judge(item, last)
	}
}

// settlesBy is how long a kernel of a sandbox's own may take to give up what it
// began with.
const settlesBy = 500 * time.Millisecond

func judge(item tranca.Item, last map[int]outside) (found []Finding) {
	if len(last) == 0 {
		return []Finding{{Unseen, "no process of the program was seen on the host"}}
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
		line, err := os.ReadFile(filepath.Join("/proc", strconv.Itoa(pid), "cmdline"))
		if first, _, _ := strings.Cut(string(line), "\x00"); err == nil && first == name {
			pids = append(pids, pid)
		}
	}
	return pids
}
