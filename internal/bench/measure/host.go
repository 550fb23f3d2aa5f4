package measure

import (
	"os"
	"runtime"
	"strconv"
	"strings"

	"tranca/internal/bench"
	"tranca/internal/hostsetup"
)

// Host reads what figures mean nothing without. python is the interpreter's
// path. What can't be read is left empty.
func Host(python string) bench.Host {
	h := bench.Host{
		System: hostsetup.ReadDistribution("/").Name, Kernel: firstLine("/proc/sys/kernel/osrelease"),
		Arch: runtime.GOARCH, CPU: field("/proc/cpuinfo", "model name"), CPUs: runtime.NumCPU(),
		UserID: os.Geteuid(), Cgroup: 1, Python: python,
	}
	kib, _, _ := strings.Cut(field("/proc/meminfo", "MemTotal"), " ")
	if n, err := strconv.ParseInt(kib, 10, 64); err == nil {
		h.Memory = n << 10
	}
	if firstLine("/sys/fs/cgroup/cgroup.controllers") != "" {
		h.Cgroup = 2
	}
	load, _, _ := strings.Cut(firstLine("/proc/loadavg"), " ")
	h.LoadBefore, _ = strconv.ParseFloat(load, 64)
	return h
}

func firstLine(path string) string {
	text, err := os.ReadFile(path)
	if err != nil {
		return ""
	}
	line, _, _ := strings.Cut(string(text), "\n")
	return line
}

// field returns the value of the first line "name : value".
func field(path, name string) string {
	text, err := os.ReadFile(path)
	if err != nil {
		return ""
	}
	for line := range strings.Lines(string(text)) {
		if key, value, ok := strings.Cut(line, ":"); ok && strings.TrimSpace(key) == name {
			return strings.TrimSpace(value)
		}
	}
	return ""
}
