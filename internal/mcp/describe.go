package mcp

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"tranca"
)

func describePython(p tranca.Policy) string {
	return "Run a Python 3 program and return what it printed. Print what you want to see: the value of a last expression is not shown.\n\n" + describePolicy(p)
}

func describeCommand(p tranca.Policy) string {
	return "Run a program with arguments and return what it printed.\n\n" + describePolicy(p)
}

func describeRead() string {
	return fmt.Sprintf("Read a file: text, or an image (PNG, JPEG, GIF, WebP) of up to %s. %s of text come at once, or what limit says, up to %s; the answer says where to go on. Other files come in base64, up to %s.",
		size(maxImage), size(defaultRead), size(maxRead), size(maxBase64))
}

func describeWrite(p tranca.Policy) string {
	return fmt.Sprintf("Make or replace a file, and the folders above it. At most %s at once.\n\n%s", size(maxWritten), describeFiles(p))
}

func describeEdit() string {
	return "Replace a stretch of text in a file. It must stand there exactly once, or replace_all be set. The answer shows what was changed."
}

func describeList() string {
	return fmt.Sprintf("List what is in a folder, parents first. At most %d entries are shown.", maxListed)
}

const describeStart = "Start a program that goes on when the call has ended, such as a server, until it ends by itself, by stop_process or with its session. Other programs of the session reach what it listens on at 127.0.0.1. Its input is empty. The time limit of runs does not hold for it; all others do, for all that runs in the session together, and one that ends programs ends all of them."

func describeOutput(p tranca.Policy) string {
	return fmt.Sprintf("Say whether a program of start_process still runs and give what it wrote, up to %s of each stream. The answer says from where to ask the next time. The last %s of each stream are kept.",
		size(maxOutput), size(p.Limits.Output.Size))
}

func describeCreate(p tranca.Policy) string {
	words := "Make a session: a place of its own whose files stay from call to call, until close_session or your client's end. Other tools take its name as their argument session. " +
		fmt.Sprintf("There can be %d at once.\n\nWhat code may do there: ", maxSessions)
	return words + describeLimits(p.Limits) + "\n" + describeFiles(p)
}

// describePolicy says what code may do. It names places inside only: where
// they are on the host is not for the agent.
func describePolicy(p tranca.Policy) string {
	lines := []string{
		describeLimits(p.Limits),
		describeFiles(p),
		"Network: none; connecting to anything outside fails.",
		fmt.Sprintf("Output: the first %s of each of standard output and standard error; %s.", size(p.Limits.Output.Size), beyondOutput(p)),
	}
	if p.KeepFiles {
		lines = append(lines, "Calls without a session share their files: what one call writes to its own folders, the next one finds. What a call leaves running ends with it; start_process starts what shall go on. A session has files of its own.")
	} else {
		lines = append(lines, "Without a session each call starts afresh: no file, variable or process of an earlier call is there. In a session the files stay. What a call leaves running ends with it; start_process starts what shall go on.")
	}
	lines = append(lines, fmt.Sprintf("Images: PNG, JPEG, GIF and WebP files that it writes into %s, which is there, come back as images: up to %d, together up to %s.",
		outFolder, maxShown, size(maxShownBytes)))
	return strings.Join(lines, "\n")
}

func describeLimits(l tranca.Limits) string {
	return fmt.Sprintf("Limits: %s of time, %s of CPU time on %s CPU, %s of memory, %d processes and threads, %d open files in each, %s for one file. Time, CPU time and memory end the run; the others refuse more.",
		duration(l.Wall), duration(l.CPUTime), cpus(l.MilliCPUs), size(l.Memory), l.Processes, l.OpenFiles, size(l.FileSize))
}

func beyondOutput(p tranca.Policy) string {
	if p.Limits.Output.OnExceed == tranca.ExceedKill {
		return "more ends the run"
	}
	return "more is dropped, and the result says so"
}

func describeFiles(p tranca.Policy) string {
	var b strings.Builder
	own := []string{"/work", "/tmp"}
	fmt.Fprintf(&b, "Files: it starts in %s; it may write to %s, %s and %d files together",
		quoted(p.Workdir), strings.Join(own, " and "), size(p.Limits.Disk.Size), p.Limits.Disk.Inodes)
	if p.Limits.Disk.Backing == tranca.BackingMemory {
		b.WriteString(", which counts as memory too")
	}
	b.WriteString(".")
	mounts := slices.Clone(p.Mounts)
	slices.SortFunc(mounts, func(a, b tranca.Mount) int { return strings.Compare(a.Target, b.Target) })
	for _, m := range mounts {
		b.WriteString(describeMount(&m))
	}
	b.WriteString(" Everything else is read-only or not there.")
	return b.String()
}

func describeMount(m *tranca.Mount) string {
	if !m.Writable && !m.Cow {
		return " " + quoted(m.Target) + " is shared and may be read."
	}
	words := " " + quoted(m.Target) + " is shared and may be written"
	if m.Cow {
		words = " " + quoted(m.Target) + " is a copy of a shared folder and may be written within the same bounds"
	}
	if len(m.Protect) > 0 {
		words += ", but for files that programs outside execute by themselves"
	}
	if m.Cow {
		words += "; the folder itself is changed only when a person takes the changes over"
	}
	return words + "."
}

// quoted makes a path of the policy fit for a sentence.
func quoted(path string) string {
	if strings.ContainsFunc(path, func(r rune) bool { return r <= ' ' || r == '"' || r > '~' }) {
		return strconv.Quote(path)
	}
	return path
}

// duration writes "30 seconds" or "500 milliseconds".
func duration(d time.Duration) string {
	if d < time.Second {
		return strconv.FormatFloat(float64(d)/float64(time.Millisecond), 'f', -1, 64) + " milliseconds"
	}
	if d == time.Second {
		return "1 second"
	}
	return strconv.FormatFloat(d.Seconds(), 'f', -1, 64) + " seconds"
}

func cpus(milli int64) string { return strconv.FormatFloat(float64(milli)/1000, 'f', -1, 64) }

// size writes "256 MiB", in the largest unit that divides it.
func size(n int64) string {
	units := []string{"bytes", "KiB", "MiB", "GiB", "TiB"}
	i := 0
	for n != 0 && n%1024 == 0 && i < len(units)-1 {
		n /= 1024
		i++
	}
	return strconv.FormatInt(n, 10) + " " + units[i]
}
