package cli

import (
	"fmt"

	"tranca"
	"tranca/internal/policy"
)

// endLines says in plain words what the person should know about how a run
// ended, and what to change. There is none for a run that ended by itself and
// hit nothing.
func endLines(s settled, res *tranca.Result) []string {
	var lines []string
	if line := endLine(s, res); line != "" {
		lines = append(lines, line)
	}
	for _, hit := range res.LimitsHit {
		if line := hitLine(s, res, hit); line != "" {
			lines = append(lines, line)
		}
	}
	return append(lines, res.Notes...)
}

func endLine(s settled, res *tranca.Result) string {
	l := res.Limits
	switch res.Exit.Reason {
	case tranca.EndWall:
		return fmt.Sprintf("stopped: it ran for longer than %s; %s", policy.FormatDuration(l.Wall), s.change("--timeout", "limits.wall"))
	case tranca.EndCPU:
		return fmt.Sprintf("stopped: it used more than %s of CPU time; %s", policy.FormatDuration(l.CPUTime), s.change("--cpu-time", "limits.cpu_time"))
	case tranca.EndMemory:
		return fmt.Sprintf("stopped: it needed more than %s of memory; %s", policy.FormatSize(l.Memory), s.change("--memory", "limits.memory"))
	case tranca.EndOutput:
		return fmt.Sprintf("stopped: it wrote more than %s; %s", policy.FormatSize(l.Output.Size), s.change("--output-limit", "limits.output.size"))
	case tranca.EndSignaled:
		return fmt.Sprintf("the program was ended by %s, which no limit sent", signalName(res.Exit.Signal))
	case tranca.EndClosed:
		return "stopped before its end; nothing of it is left"
	case tranca.EndError:
		return "the sandbox failed, and how the program ended is not known"
	}
	return ""
}

func hitLine(s settled, res *tranca.Result, hit tranca.LimitHit) string {
	l := res.Limits
	switch hit {
	case tranca.HitPIDs:
		return fmt.Sprintf("it was refused more than %d processes; %s", l.Processes, s.change("--pids", "limits.processes"))
	case tranca.HitDisk:
		return fmt.Sprintf("its space of %s was full; %s", policy.FormatSize(l.Disk.Size), s.change("--disk", "limits.disk.size"))
	case tranca.HitInodes:
		return fmt.Sprintf("it was refused more than %d files and folders; %s", l.Disk.Inodes, s.change("--inodes", "limits.disk.inodes"))
	case tranca.HitFiles:
		return fmt.Sprintf("it was refused more than %d open files; %s", l.OpenFiles, s.change("--open-files", "limits.open_files"))
	case tranca.HitFileSize:
		return fmt.Sprintf("it was refused a file larger than %s; %s", policy.FormatSize(l.FileSize), s.change("--file-size", "limits.file_size"))
	case tranca.HitOutput:
		if res.Exit.Reason == tranca.EndOutput {
			return ""
		}
		return fmt.Sprintf("%s was cut at %s; %s", cutStreams(res), policy.FormatSize(l.Output.Size), s.change("--output-limit", "limits.output.size"))
	}
	return "it hit the limit " + string(hit)
}

func cutStreams(res *tranca.Result) string {
	switch {
	case res.StdoutTruncated && res.StderrTruncated:
		return "the output on both streams"
	case res.StderrTruncated:
		return "standard error"
	}
	return "standard output"
}

// change says what gives the program more.
func (s settled) change(flag, item string) string {
	if s.fromFile {
		return fmt.Sprintf("more is for the operator to give: %s in %s", item, s.policy.Source)
	}
	return flag + " gives it more"
}
