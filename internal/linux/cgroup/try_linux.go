package cgroup

import (
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// Values to write and read back. They stand for a moment only, on a folder
// without processes.
const (
	tryMemory = "67108864"
	tryPIDs   = "1000"
	tryCPU    = "50000"
	period    = "100000"
)

// of returns the feature that a controller stands for.
func (s *Support) of(controller string) *Feature {
	switch controller {
	case ctlMemory:
		return &s.Memory
	case ctlPIDs:
		return &s.PIDs
	case ctlCPU:
		return &s.CPU
	default:
		return &s.CPUTime
	}
}

// step writes a value, and wants to read it back.
type step struct{ file, value, want string }

// try tries one controller in a folder without processes, and leaves the
// folder without limits again.
func (f *finder) try(p place, controller string, v2 bool) Feature {
	var steps []step
	var mechanism string
	switch {
	case controller == ctlMemory:
		return f.tryMemory(p, v2)
	case controller == ctlPIDs:
		mechanism = "pids.max"
		steps = []step{{"pids.max", tryPIDs, tryPIDs}, {"pids.max", "max", "max"}}
	case controller == ctlCPU && v2:
		mechanism = "cpu.max"
		steps = []step{{"cpu.max", tryCPU + " " + period, tryCPU + " " + period}, {"cpu.max", "max " + period, "max " + period}}
	case controller == ctlCPU:
		mechanism = "cpu.cfs_quota_us"
		steps = []step{
			{"cpu.cfs_period_us", period, period},
			{"cpu.cfs_quota_us", tryCPU, tryCPU}, {"cpu.cfs_quota_us", "-1", "-1"},
		}
	default:
		return f.tryCPUTime(p, v2)
	}
	if err := runSteps(p, steps); err != nil {
		return f.explain(p.String(), v2, err)
	}
	return held(v2, mechanism)
}

func (f *finder) tryMemory(p place, v2 bool) Feature {
	limit, swap, zero, none := "memory.limit_in_bytes", "memory.memsw.limit_in_bytes", tryMemory, "-1"
	if v2 {
		limit, swap, zero, none = "memory.max", "memory.swap.max", "0", "max"
	}
	hasSwap := p.has(swap)
	if !hasSwap && f.swap {
		// Fail closed: the tree could grow into swap without a bound.
		return Feature{
			Missing: "the kernel doesn't account for swap, and swap is on: memory would not be bounded",
			Mend:    "boot with swapaccount=1 on the kernel's command line, or swapoff -a",
		}
	}
	mechanism := limit
	steps := []step{{limit, tryMemory, tryMemory}}
	undo := []step{{limit, none, ""}}
	if hasSwap {
		mechanism += " and " + swap
		steps = append(steps, step{swap, zero, zero})
		undo = append([]step{{swap, none, ""}}, undo...)
	}
	if v2 {
		steps = append(steps, step{"memory.oom.group", "1", "1"})
		undo = append(undo, step{"memory.oom.group", "0", "0"})
	}
	err := runSteps(p, steps)
	if err := errors.Join(err, runSteps(p, undo)); err != nil {
		return f.explain(p.String(), v2, err)
	}
	return held(v2, mechanism)
}

func (f *finder) tryCPUTime(p place, v2 bool) Feature {
	if _, err := cpuTime(p, v2); err != nil {
		return f.explain(p.String(), v2, err)
	}
	if v2 {
		return held(v2, "cpu.stat")
	}
	return held(v2, "cpuacct.usage")
}

func runSteps(p place, steps []step) error {
	for _, s := range steps {
		if err := p.write(s.file, s.value); err != nil {
			return err
		}
		if s.want == "" {
			continue
		}
		got, err := p.read(s.file)
		if err != nil {
			return err
		}
		if got = strings.TrimSpace(got); got != s.want {
			return p.fail("read back", s.file, fmt.Errorf("wrote %q and read %q", s.value, got))
		}
	}
	return nil
}

func held(v2 bool, what string) Feature {
	version := "v1"
	if v2 {
		version = "v2"
	}
	return Feature{Held: true, Mechanism: "cgroup " + version + " " + what}
}

// explain turns the error of a trial into what is missing, and a mend.
func (f *finder) explain(where string, v2 bool, err error) Feature {
	missing := Feature{Missing: strings.TrimPrefix(err.Error(), "cgroup: ")}
	switch {
	case errors.Is(err, unix.EROFS):
		missing.Missing = "the cgroup tree is mounted read-only: " + missing.Missing
		missing.Mend = "run the container with a writable cgroup tree of its own, or tranca outside of it"
	case errors.Is(err, unix.EACCES), errors.Is(err, unix.EPERM):
		missing.Missing = "this user may not make groups: " + missing.Missing
		missing.Mend = f.mendPermission(where, v2)
	case errors.Is(err, unix.EBUSY):
		missing.Missing = "other processes live in the only group that is delegated: " + missing.Missing
		missing.Mend = mendScope
	case errors.Is(err, unix.ENOENT):
		missing.Missing = "the kernel or the group above lacks it: " + missing.Missing
	case errors.Is(err, unix.EAGAIN), errors.Is(err, unix.ENOSPC):
		missing.Mend = "raise cgroup.max.descendants and cgroup.max.depth of the groups above"
	}
	return missing
}

const mendScope = "systemd-run --user --scope -p Delegate=yes tranca ..."

func (f *finder) mendPermission(where string, v2 bool) string {
	switch {
	case v2 && f.wsl:
		return mendWSL
	case v2:
		return mendScope
	case f.euid == 0:
		return "run tranca with the capability to write there, or outside of the container"
	default:
		return "as root: chown " + strconv.Itoa(f.euid) + " " + where
	}
}

const mendWSL = "set systemd=true under [boot] in /etc/wsl.conf, then wsl --shutdown"

func pidOfSelf() string { return strconv.Itoa(os.Getpid()) }
