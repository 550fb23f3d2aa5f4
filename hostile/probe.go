// Package hostile is the suite's probes: hostile programs as data, each with
// what it must not achieve. docs/PROBES.md describes their form; package suite
// runs them.
package hostile

import (
	"strings"

	"tranca"
	"tranca/hostile/attempt"
	"tranca/hostile/report"
)

// Probe is one hostile program. The fields are those of docs/PROBES.md.
type Probe struct {
	// ID is the name of the probe's folder.
	ID        string      `json:"-"`
	Try       string      `json:"try"`
	Why       string      `json:"why"`
	Guarantee tranca.Item `json:"guarantee"`
	Severity  Severity    `json:"severity"`
	Rows      []string    `json:"rows"`

	Attempt []attempt.Step `json:"attempt"`
	Again   []attempt.Step `json:"again"`
	Next    []attempt.Step `json:"next"`
	Beside  []attempt.Step `json:"beside"`
	Twin    []attempt.Step `json:"twin"`

	Limit   Limit     `json:"limit"`
	Ends    string    `json:"ends"`
	Policy  Policy    `json:"policy"`
	Collect []Collect `json:"collect"`

	KillSupervisor bool   `json:"kill_supervisor"`
	Kernel         bool   `json:"kernel"`
	Alone          bool   `json:"alone"`
	Python         *bool  `json:"python"`
	PythonWhy      string `json:"python_why"`

	Needs  []string          `json:"needs"`
	Expect map[string]Expect `json:"expect"`

	// Text is the file.
	Text string `json:"-"`
}

// Severity is what it would be if it escaped.
type Severity string

// Severities lists them, worst first.
func Severities() []Severity {
	return []Severity{
		"Escape", "HostLeak", "Exfil", "Lateral", "HostDoS", "PeerDoS",
		"InternalEsc", "InternalRead", "SelfDoS", "Integrity",
	}
}

// Limit is the limit that has to stop a probe, and that the result has to name.
type Limit string

// Reasons and hits by which a result names a limit: it ended the run, or it
// refused the program something.
var limits = map[Limit]struct {
	ends tranca.Reason
	hit  tranca.LimitHit
}{
	"wall": {ends: tranca.EndWall}, "cpu": {ends: tranca.EndCPU}, "memory": {ends: tranca.EndMemory},
	"output": {ends: tranca.EndOutput, hit: tranca.HitOutput},
	"pids":   {hit: tranca.HitPIDs}, "disk": {hit: tranca.HitDisk}, "inodes": {hit: tranca.HitInodes},
	"files": {hit: tranca.HitFiles}, "file_size": {hit: tranca.HitFileSize},
}

// Named reports whether a result names the limit.
func (l Limit) Named(end tranca.Reason, hits []tranca.LimitHit) bool {
	as := limits[l]
	if as.ends != "" && as.ends == end {
		return true
	}
	for _, h := range hits {
		if as.hit != "" && h == as.hit {
			return true
		}
	}
	return false
}

// Policy is what a probe's policy has other than the suite's own.
type Policy struct {
	Wall      string            `json:"wall"`
	CPUTime   string            `json:"cpu_time"`
	CPUs      string            `json:"cpus"`
	Memory    attempt.Bytes     `json:"memory"`
	Processes int64             `json:"processes"`
	OpenFiles int64             `json:"open_files"`
	FileSize  attempt.Bytes     `json:"file_size"`
	Disk      attempt.Bytes     `json:"disk"`
	Inodes    int64             `json:"inodes"`
	Output    attempt.Bytes     `json:"output"`
	OnOutput  string            `json:"on_output"`
	Env       map[string]string `json:"env"`
	Mounts    []string          `json:"mounts"`
}

// Collect is a path that the host reads through the file interface.
type Collect struct {
	Path   string `json:"path"`
	During bool   `json:"during"`
	List   bool   `json:"list"`
}

// Expect is a verdict that differs from what a backend's promise says.
type Expect struct {
	Verdict report.Verdict `json:"verdict"`
	Why     string         `json:"why"`
}

// Group is the group of the first row: "FS" of "FS-01".
func (p *Probe) Group() string {
	group, _, _ := strings.Cut(p.Rows[0], "-")
	return group
}

// SaidInPython reports whether the probe has a form in Python.
func (p *Probe) SaidInPython() bool { return p.Python == nil || *p.Python }
