package tranca

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"
)

// AgentView is what an agent is told of a run: what it can act on, and nothing
// of what stands behind the boundary. It names no backend, level, mechanism,
// policy file or id, so that an agent can't choose its attack by it.
type AgentView struct {
	// Stdout and Stderr are text: bytes that are not UTF-8 are replaced.
	Stdout string `json:"stdout"`
	Stderr string `json:"stderr"`
	// Code is the exit code, or -1 where the program didn't end by itself.
	Code int `json:"code"`
	// Ended says in words how it ended.
	Ended string `json:"ended"`
	// Success says that it ended by itself with code 0.
	Success bool `json:"success"`
	// StdoutTruncated and StderrTruncated say that more was written.
	StdoutTruncated bool `json:"stdout_truncated"`
	StderrTruncated bool `json:"stderr_truncated"`
	// Limits says in words which limits refused something.
	Limits []string `json:"limits"`
	// Denials are refused acts, each with its rule.
	Denials []Denial `json:"denials"`
	// Changes are the paths in shared folders that differ after the run.
	Changes []Change `json:"changes"`
}

// AgentView returns the part of the result that an agent may see. Its lists
// are never nil.
func (r *Result) AgentView() AgentView {
	v := AgentView{
		Stdout:          strings.ToValidUTF8(string(r.Stdout), "\uFFFD"),
		Stderr:          strings.ToValidUTF8(string(r.Stderr), "\uFFFD"),
		Code:            -1,
		Ended:           r.ended(),
		Success:         r.Exit.Success(),
		StdoutTruncated: r.StdoutTruncated,
		StderrTruncated: r.StderrTruncated,
		Limits:          []string{},
		Denials:         present(slices.Clone(r.Denials)),
		Changes:         present(slices.Clone(r.Changes)),
	}
	if r.Exit.Reason == EndExited {
		v.Code = r.Exit.Code
	}
	for _, h := range r.LimitsHit {
		v.Limits = append(v.Limits, r.hit(h))
	}
	return v
}

// ended says how the run ended, so that a model knows what to change.
func (r *Result) ended() string {
	l := r.Limits
	switch r.Exit.Reason {
	case EndExited:
		if r.Exit.Code == 0 {
			return "it ended normally"
		}
		return "it ended by itself with exit code " + strconv.Itoa(r.Exit.Code)
	case EndSignaled:
		return "it was ended by signal " + signalWords(r.Exit.Signal)
	case EndWall:
		return fmt.Sprintf("it ran longer than %sof wall-clock time and was stopped", seconds(l.Wall))
	case EndCPU:
		return fmt.Sprintf("it used more than %sof CPU time and was stopped", seconds(l.CPUTime))
	case EndMemory:
		words := fmt.Sprintf("it needed more than %sof memory and was stopped", size(l.Memory))
		if l.Disk.Backing == BackingMemory {
			words += "; files in its own folders count as memory too"
		}
		return words
	case EndOutput:
		return fmt.Sprintf("it wrote more than %sto one output stream and was stopped", size(l.Output.Size))
	case EndClosed:
		return "it was cancelled before it ended"
	case EndError:
		return "it could not be run to its end, for no fault of the program; running it again may work"
	}
	return "it is not known how it ended"
}

// hit says what a limit refused.
func (r *Result) hit(h LimitHit) string {
	l := r.Limits
	switch h {
	case HitPIDs:
		return "no more than " + count(l.Processes) + "processes and threads at once: starting another was refused"
	case HitDisk:
		return "no more than " + size(l.Disk.Size) + "of files of its own: writing more was refused"
	case HitInodes:
		return "no more than " + count(l.Disk.Inodes) + "files and folders of its own: making another was refused"
	case HitFiles:
		return "no more than " + count(l.OpenFiles) + "open files in one process: opening another was refused"
	case HitFileSize:
		return "no file larger than " + size(l.FileSize) + "in size: writing more was refused"
	case HitOutput:
		return "no more than " + size(l.Output.Size) + "of each output stream is kept: the rest was dropped"
	}
	return "a limit was reached"
}

// seconds, size and count return a bound with a blank after it, or words in
// its place where the result came by JSON, which carries no limits.
func seconds(d time.Duration) string {
	if d <= 0 {
		return "the allowed amount "
	}
	return strconv.FormatFloat(d.Seconds(), 'f', -1, 64) + " s "
}

func size(n int64) string {
	if n <= 0 {
		return "the allowed amount "
	}
	for _, u := range []struct {
		shift uint
		name  string
	}{{30, "GiB"}, {20, "MiB"}, {10, "KiB"}} {
		if n >= 1<<u.shift && n%(1<<u.shift) == 0 {
			return strconv.FormatInt(n>>u.shift, 10) + " " + u.name + " "
		}
	}
	return strconv.FormatInt(n, 10) + " bytes "
}

func count(n int64) string {
	if n <= 0 {
		return "the allowed number of "
	}
	return strconv.FormatInt(n, 10) + " "
}

var signalNames = map[Signal]string{
	1: "SIGHUP", 2: "SIGINT", 3: "SIGQUIT", 4: "SIGILL, an illegal instruction",
	5: "SIGTRAP", 6: "SIGABRT, it aborted itself", 7: "SIGBUS, a bad memory access",
	8: "SIGFPE, a wrong arithmetic operation", 9: "SIGKILL", 10: "SIGUSR1",
	11: "SIGSEGV, a bad memory access", 12: "SIGUSR2",
	13: "SIGPIPE, it wrote to something that nobody reads", 14: "SIGALRM", 15: "SIGTERM",
	24: "SIGXCPU", 25: "SIGXFSZ, it wrote past the largest size of a file",
	31: "SIGSYS, a system call that is not allowed",
}

func signalWords(s Signal) string {
	if name, ok := signalNames[s]; ok {
		return fmt.Sprintf("%d (%s)", int(s), name)
	}
	return strconv.Itoa(int(s))
}
