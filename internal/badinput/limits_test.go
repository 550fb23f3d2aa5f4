package badinput

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"runtime/debug"
	"strings"
	"testing"
	"time"

	"tranca"
	"tranca/local"
)

// TestLimitFlags: no flag takes a limit that is none.
func TestLimitFlags(t *testing.T) {
	nothingLeft(t)
	bad := map[string][]string{
		"--timeout":      {"0", "0s", "-1s", "9223372036854775808ns", "9223372036854775807ns", "5", "5x", "1e9s", "", "NaN", "inf"},
		"--cpu-time":     {"0s", "-1s", "1ns", "30MiB"},
		"--memory":       {"0", "0B", "-1MiB", "9223372036854775808B", "8388608TiB", "5", "5MB", "8EiB", "5s", "1.5.5GiB", "+Inf"},
		"--output-limit": {"0B", "-1B", "9223372036854775808B", "1 MiB"},
		"--disk":         {"0B", "-1B", "9223372036854775808B", "64M"},
		"--file-size":    {"0B", "-1B", "9223372036854775808B"},
		"--pids":         {"0", "-1", "9223372036854775808", "5x", "5.5", "64MiB"},
		"--open-files":   {"0", "-1", "9223372036854775808", "1"},
		"--inodes":       {"0", "-1", "9223372036854775808"},
		"--cpus":         {"0", "-1", "9223372036854775808", "1e3", "0.0001", "50%"},
	}
	for flag, values := range bad {
		for _, v := range values {
			row{
				name: flag + " " + v, args: []string{flag + "=" + v, "-c", "print('ran')"},
				status: 125, stderr: flag + ": ",
			}.run(t)
		}
	}
}

// TestLimitsInAPolicy: nor does a policy that is built in Go.
func TestLimitsInAPolicy(t *testing.T) {
	nothingLeft(t)
	for _, value := range []int64{0, -1, -1 << 63, 1<<63 - 1} {
		for _, field := range []string{
			"Wall", "CPUTime", "MilliCPUs", "Memory", "Processes", "OpenFiles", "FileSize",
			"Disk.Size", "Disk.Inodes", "Output.Size",
		} {
			p := local.DefaultPolicy()
			limit(&p.Limits, field).SetInt(value)
			l, err := local.New(local.WithPolicy(p))
			if !errors.Is(err, tranca.ErrInvalid) {
				t.Errorf("%s = %d: %v", field, value, err)
			}
			if l != nil {
				l.Close()
			}
		}
	}
}

func limit(l *tranca.Limits, path string) reflect.Value {
	v := reflect.ValueOf(l).Elem()
	for name := range strings.SplitSeq(path, ".") {
		v = v.FieldByName(name)
	}
	return v
}

// TestRequestsForMore: a request only narrows. What asks for more is refused
// and named, and a limit that is none is no way around that.
func TestRequestsForMore(t *testing.T) {
	nothingLeft(t)
	dir := t.TempDir()
	l := open(t, func(p *tranca.Policy) {
		p.Mounts = []tranca.Mount{{Source: dir, Target: "/m"}}
		p.Env = map[string]string{"SET": "by the operator"}
	})
	p := l.Policy().Limits
	for name, n := range map[string]tranca.Narrowing{
		"wall": {Wall: p.Wall + 1}, "CPU time": {CPUTime: p.CPUTime * 2}, "CPUs": {MilliCPUs: p.MilliCPUs + 1},
		"memory": {Memory: p.Memory + 1}, "processes": {Processes: p.Processes + 1},
		"open files": {OpenFiles: p.OpenFiles + 1}, "file size": {FileSize: p.FileSize + 1},
		"disk": {DiskSize: p.Disk.Size + 1}, "inodes": {DiskInodes: p.Disk.Inodes + 1}, "output": {Output: p.Output.Size + 1},
		"most": {Memory: 1<<63 - 1}, "negative wall": {Wall: -time.Second}, "negative memory": {Memory: -1},
		"least memory": {Memory: 1}, "negative output": {Output: -1 << 63}, "negative processes": {Processes: -1},
		"backend": {Backend: "subprocess"}, "level": {Floor: tranca.LevelMicroVM}, "no level": {Floor: 99},
		"variable": {Env: map[string]string{"SET": "by the request"}},
		"mount":    {DropMounts: []string{"/elsewhere"}}, "read-only": {ReadOnly: []string{"/elsewhere"}},
		"folder": {Workdir: "relative"}, "folder above": {Workdir: "/work/../.."},
	} {
		res, err := l.RunRequest(t.Context(), tranca.Request{Code: "print('ran')", Narrow: n})
		if !errors.Is(err, tranca.ErrRefused) && !errors.Is(err, tranca.ErrInvalid) {
			t.Errorf("%s: %+v, %v", name, res, err)
		}
	}
	works(t, runner{l})
}

// TestFlagsForMore: flags beside a policy file are such requests.
func TestFlagsForMore(t *testing.T) {
	nothingLeft(t)
	var waive []string
	for _, item := range lacking(t) {
		waive = append(waive, string(item))
	}
	text := fmt.Sprintf("version: 1\nfloor: process\nlimits: {wall: 5s, memory: 128MiB, disk: {size: 32MiB}}\nwaive: [%s]\n", strings.Join(waive, ", "))
	name := file(t, "policy.yaml", text)
	for _, flags := range [][]string{
		{"--timeout", "6s"}, {"--memory", "129MiB"}, {"--cpus", "2"}, {"--pids", "65"}, {"--disk", "33MiB"},
		{"--output-limit", "2MiB"}, {"--open-files", "257"}, {"--file-size", "65MiB"}, {"--cpu-time", "31s"},
		{"--mount", "/usr/share:/m"}, {"--waive", "landlock"}, {"--backend", "subprocess"}, {"--isolation", "subprocess"},
		{"--isolation", "microvm"},
	} {
		o := runTranca(t, nil, append([]string{"run", "--policy", name, "-c", "print('ran')"}, flags...)...)
		o.wants(t, 126, "refused, nothing was run")
		if o.stdout != "" {
			t.Errorf("%q: %q", flags, o.stdout)
		}
	}
	runTranca(t, nil, "run", "--policy", name, "--timeout", "4s", "--memory", "64MiB", "-c", "print(1)").wants(t, 0, "")
}

// TestPolicyFiles: what is no policy is an error soon, not the end of the
// memory or of the time, and nothing runs.
func TestPolicyFiles(t *testing.T) {
	nothingLeft(t)
	dir := t.TempDir()
	if err := os.Mkdir(filepath.Join(dir, "folder.yaml"), 0o755); err != nil {
		t.Fatal(err)
	}
	large, err := os.Create(filepath.Join(dir, "large.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	fmt.Fprintln(large, "version: 1")
	if err := large.Truncate(100 << 20); err != nil {
		t.Fatal(err)
	}
	large.Close()
	write := func(name, text string) string {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
		return path
	}
	nest := func(open, end string, n int) string { return strings.Repeat(open, n) + strings.Repeat(end, n) }
	for _, r := range []struct {
		path, words string
		status      int
	}{
		{filepath.Join(dir, "folder.yaml"), "is a folder", 125},
		{large.Name(), "at most 1048576", 125},
		{"/dev/zero", "is a device", 125},
		{"/dev/null", "is a device", 125},
		{filepath.Join(dir, "missing.yaml"), "no such file", 127},
		{filepath.Join(large.Name(), "below.yaml"), "not a directory", 127},
		{write("empty.yaml", ""), "empty", 125},
		{write("deep.json", `{"version":1,"limits":`+nest("[", "]", 400_000)+"}"), "", 125},
		{write("deep2.json", `{"version":1,"limits":`+nest(`{"a":`, "}", 17)+"}"), "", 125},
		{write("deep.yaml", "version: 1\nlimits: "+nest("[", "]", 40_000)), "nested deeper than 16", 125},
		{write("deep2.yaml", "version: 1\nlimits: "+nest("{a: ", "}", 1000)), "nested deeper than 16", 125},
		{write("deep3.yaml", "version: 1\nmounts:\n"+nest("- ", "", 1000)), "nested deeper than 16", 125},
		{write("deep4.yaml", "version: 1\n"+stairs(700)), "nested deeper than 16", 125},
		{write("wide.yaml", "version: 1\nwaive: ["+strings.Repeat("a,", 200_000)+"]"), "", 125},
		{write("bomb.yaml", "version: 1\na: &a [x]\nb: &b [*a, *a]\n"), "an anchor", 125},
		{write("nul.yaml", "version: 1\x00"), "a NUL byte", 125},
		{write("bytes.yaml", "version: 1\n# \xff"), "not valid UTF-8", 125},
		{write("zero.yaml", "version: 1\nlimits: {memory: 0B}"), "limits.memory", 125},
		{write("most.yaml", "version: 1\nlimits: {memory: 9223372036854775808B}"), "limits.memory", 125},
		{write("number.yaml", "version: 1\nlimits: {memory: 9223372036854775808}"), "limits.memory", 125},
		{write("negative.yaml", "version: 1\nlimits: {wall: -1s}"), "limits.wall", 125},
		{write("unit.yaml", "version: 1\nlimits: {wall: 5MiB}"), "limits.wall", 125},
	} {
		forgetPeak(t)
		o := runTranca(t, nil, "run", "--policy", r.path, "-c", "print('ran')")
		o.wants(t, r.status, r.words)
		if o.stdout != "" || o.took > 20*time.Second || o.memory > 400*mib || len(o.stderr) > 20_000 {
			t.Errorf("%s: took %s, %d bytes of memory, %d bytes of errors, stdout %.100q", r.path, o.took, o.memory, len(o.stderr), o.stdout)
		}
	}
}

// forgetPeak has this process give back what it doesn't need and forget how much
// it has had. A child that is forked as Go does it shares its parent's memory
// until it executes a program, and the kernel counts the parent's peak as its own.
func forgetPeak(t *testing.T) {
	t.Helper()
	debug.FreeOSMemory()
	if err := os.WriteFile("/proc/self/clear_refs", []byte("5"), 0); err != nil {
		t.Fatal(err)
	}
}

// stairs is a block map in which each line is in the one before.
func stairs(n int) string {
	var b strings.Builder
	for i := range n {
		b.WriteString(strings.Repeat(" ", i) + "a:\n")
	}
	return b.String()
}
