// Package backendtest is the conformance suite of [tranca.Backend]: each
// sentence of the contracts in package tranca that can be tried is a test.
//
//	func TestBackend(t *testing.T) {
//		backendtest.Run(t, func(t *testing.T) tranca.Backend {
//			return mine.New()
//		}, backendtest.Expect{})
//	}
//
// A backend that passes works with everything else in this module. It may
// promise less than all: [Expect] says what, and the report of its Probe must
// agree. What a backend must keep out (the host's files, the network, the
// kernel's surface) is tried by hostile programs elsewhere, not here.
//
// # Programs
//
// The suite runs small programs by name, such as "exit 3". They are in
// programs.py and run with python3, which it assumes inside, with sh. A
// backend that has neither gives Expect.Command.
//
// # Time
//
// No test measures speed. Deadlines only keep a hanging backend from hanging
// the suite; TRANCA_TEST_SCALE, a number, makes all of them that much longer.
package backendtest

import (
	_ "embed"
	"os"
	"slices"
	"strconv"
	"testing"
	"time"

	"tranca"
	"tranca/internal/policy"
)

//go:embed programs.py
var programs string

// Ability is something that a weaker backend may lack.
type Ability string

// The abilities.
const (
	// KillsTree: Kill and Close reach also descendants that left the process
	// group and session.
	KillsTree Ability = "kills-tree"
	// EndsByMemory: passing the memory limit is [tranca.EndMemory].
	EndsByMemory Ability = "ends-by-memory"
	// OutlivesMemory: the sandbox can be used again after a program has passed
	// the memory limit. Without it, it is [tranca.ErrGone] from then on.
	OutlivesMemory Ability = "outlives-memory"
	// BoundsTreeMemory: the memory limit holds for the tree.
	BoundsTreeMemory Ability = "bounds-tree-memory"
	// EndsByCPU: passing the CPU time limit is [tranca.EndCPU].
	EndsByCPU Ability = "ends-by-cpu"
	// BoundsTreeCPU: the CPU time limit holds for the tree.
	BoundsTreeCPU Ability = "bounds-tree-cpu"
	// BoundsProcesses: processes of the tree are bounded.
	BoundsProcesses Ability = "bounds-processes"
	// SeesProcessLimit: [tranca.HitPIDs] is told.
	SeesProcessLimit Ability = "sees-process-limit"
	// BoundsDisk: bytes of the sandbox's own space are bounded, and
	// [tranca.HitDisk] is told.
	BoundsDisk Ability = "bounds-disk"
	// BoundsInodes: inodes of that space are bounded, and [tranca.HitInodes]
	// is told.
	BoundsInodes Ability = "bounds-inodes"
	// BoundsFileSize: the size of one file is bounded.
	BoundsFileSize Ability = "bounds-file-size"
	// BoundsOpenFiles: the descriptors of a process are bounded.
	BoundsOpenFiles Ability = "bounds-open-files"
	// CountsUsage: CPU time, memory peak and process peak are counted.
	CountsUsage Ability = "counts-usage"
	// RunsSeveral: more than one program can run at a time.
	RunsSeveral Ability = "runs-several"
	// ListsHuge: a folder can hold more than 100,000 entries.
	ListsHuge Ability = "lists-huge"
	// HasTerminals: [tranca.Command.Terminal] and [tranca.Resizer]. Without it,
	// asking for a terminal is [tranca.ErrUnsupported].
	HasTerminals Ability = "has-terminals"
	// DialsPorts: the sandbox is a [tranca.PortDialer].
	DialsPorts Ability = "dials-ports"
	// ResumesWrites: its files are a [tranca.FileResumer].
	ResumesWrites Ability = "resumes-writes"
	// MakesLinks: its files are a [tranca.FileLinker].
	MakesLinks Ability = "makes-links"
	// OwnWorkdir: the code sees the policy's Workdir by its own name.
	OwnWorkdir Ability = "own-workdir"
)

// Expect says what a backend promises. The zero value promises everything.
type Expect struct {
	// Policy adjusts the default policy, with which sandboxes are made: a
	// floor, waivers.
	Policy func(*tranca.Policy)
	// Command makes the command that runs a program of programs.py; nil runs
	// it with python3.
	Command func(program string, args ...string) []string
	// Lacks lists what is not promised. A test that needs it isn't run.
	Lacks []Ability
	// Environment lists variables that the backend sets beyond those that the
	// contract names.
	Environment []string
	// Slow makes deadlines longer; 0 is 1.
	Slow float64
}

// Run runs the suite. makeBackend makes a backend for each test, which the
// suite closes; it may return the same one several times only if that one's
// Close is harmless.
func Run(t *testing.T, makeBackend func(t *testing.T) tranca.Backend, expect Expect) {
	t.Helper()
	for _, c := range allCases() {
		if slices.ContainsFunc(c.needs, func(a Ability) bool { return slices.Contains(expect.Lacks, a) }) {
			continue
		}
		t.Run(c.name, func(t *testing.T) {
			s := &suite{T: t, expect: expect, backend: makeBackend(t)}
			t.Cleanup(func() {
				if err := s.backend.Close(s.context()); err != nil {
					t.Errorf("closing the backend: %v", err)
				}
			})
			c.run(s)
		})
	}
}

// testCase is one test and what it needs of the backend.
type testCase struct {
	name  string
	run   func(*suite)
	needs []Ability
}

func allCases() []testCase {
	return slices.Concat(reportCases(), runningCases(), severalCases(), abilityCases(), streamCases(), fileCases(), watchCases(), limitCases(), lifeCases())
}

// suite is what a test works with.
type suite struct {
	*testing.T
	expect  Expect
	backend tranca.Backend
}

// scale returns a deadline for this host.
func (s *suite) scale(d time.Duration) time.Duration {
	factor := s.expect.Slow
	if factor <= 0 {
		factor = 1
	}
	if f, err := strconv.ParseFloat(os.Getenv("TRANCA_TEST_SCALE"), 64); err == nil && f > 0 {
		factor *= f
	}
	return time.Duration(float64(d) * factor)
}

// policy returns the policy of this run, with limits that are in nobody's way.
func (s *suite) policy() tranca.Policy {
	p := policy.Default()
	p.Limits.Wall, p.Limits.CPUTime = time.Hour, time.Hour
	if s.expect.Policy != nil {
		s.expect.Policy(&p)
	}
	return p
}

// command returns the command of a program.
func (s *suite) command(program string, args ...string) []string {
	if s.expect.Command != nil {
		return s.expect.Command(program, args...)
	}
	return append([]string{"/usr/bin/python3", "-I", "-c", programs, program}, args...)
}
