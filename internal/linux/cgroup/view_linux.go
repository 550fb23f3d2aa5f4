package cgroup

import (
	"errors"
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"
)

// View is the groups of a process that somebody else has made, such as a
// container's: what they count and which limits they hold. Reading needs no
// right. Safe for concurrent use.
type View struct {
	group Group // never made, watched or destroyed: a reader of places
	cpu   *member
}

// ViewOf looks at the groups of a process. A controller that the process shares
// with the caller is none of its own, and left out; so is one that is mounted
// nowhere in sight.
func ViewOf(pid int) (*View, error) {
	text, err := os.ReadFile("/proc/self/mountinfo")
	if err != nil {
		return nil, fmt.Errorf("cgroup: %w", err)
	}
	mounts, err := parseMounts(string(text))
	if err != nil {
		return nil, err
	}
	theirs, err := readMemberships(strconv.Itoa(pid))
	if err != nil {
		return nil, err
	}
	ours, err := readMemberships("self")
	if err != nil {
		return nil, err
	}
	v := &View{}
	for controller, into := range map[string]**member{
		ctlMemory: &v.group.memory, ctlPIDs: &v.group.pids, ctlCPUAcct: &v.group.cpuTime, ctlCPU: &v.cpu,
	} {
		where, v2, ok := find(theirs, controller)
		if own, _, _ := find(ours, controller); !ok || within(own, where) {
			continue
		}
		if *into, err = reach(mounts, controller, where, v2); err != nil {
			return nil, errors.Join(err, v.Close())
		}
	}
	return v, nil
}

func readMemberships(who string) ([]membership, error) {
	text, err := os.ReadFile("/proc/" + who + "/cgroup")
	if err != nil {
		return nil, fmt.Errorf("cgroup: %w", err)
	}
	return parseMemberships(string(text))
}

// find returns the path in the hierarchy of a controller: that of version 1
// which has it, or else version 2.
func find(all []membership, controller string) (where string, v2, ok bool) {
	for _, m := range all {
		if slices.Contains(m.controllers, controller) {
			return m.path, false, true
		}
	}
	for _, m := range all {
		if m.v2() {
			return m.path, true, true
		}
	}
	return "", false, false
}

// reach opens the group for a controller, or gives nil where no mount shows it
// or its folder does not have that controller.
func reach(mounts []mount, controller, where string, v2 bool) (*member, error) {
	for _, m := range mounts {
		if m.v2 != v2 || !v2 && !slices.Contains(m.controllers, controller) {
			continue
		}
		name, ok := m.folder(where)
		if !ok {
			continue
		}
		dir, err := openFolder(name)
		if errors.Is(err, os.ErrNotExist) {
			continue
		}
		if err != nil {
			return nil, err
		}
		p := place{dir, "."}
		if v2 && !p.has(probeFiles[controller]) {
			return nil, dir.Close()
		}
		return &member{p, v2}, nil
	}
	return nil, nil
}

// probeFiles are those that a version 2 folder has only with the controller.
var probeFiles = map[string]string{
	ctlMemory: "memory.max", ctlPIDs: "pids.max", ctlCPU: "cpu.max", ctlCPUAcct: "cpu.stat",
}

// Counts says which of memory, processes and CPU time the groups count.
func (v *View) Counts() (memory, processes, cpuTime bool) {
	return v.group.memory != nil, v.group.pids != nil, v.group.cpuTime != nil
}

// Limits reads which limits the groups hold; 0 is none. Swap is "held" where
// none beside the memory can be used.
func (v *View) Limits() (l Limits, noSwap bool, err error) {
	if m := v.group.memory; m != nil {
		file := "memory.limit_in_bytes"
		if m.v2 {
			file = "memory.max"
		}
		if l.Memory, err = m.bound(file); err != nil {
			return l, false, err
		}
		if noSwap, err = m.noSwap(l.Memory); err != nil {
			return l, false, err
		}
	}
	if m := v.group.pids; m != nil {
		if l.Processes, err = m.bound("pids.max"); err != nil {
			return l, false, err
		}
	}
	if v.cpu != nil {
		l.MilliCPUs, err = v.cpu.quota()
	}
	return l, noSwap, err
}

// noLimit is where version 1's numbers begin that mean none.
const noLimit = 1 << 60

// bound reads a limit; 0 is none.
func (m *member) bound(file string) (int64, error) {
	text, err := m.read(file)
	if err != nil {
		return 0, err
	}
	text = strings.TrimSpace(text)
	if text == "max" {
		return 0, nil
	}
	n, err := strconv.ParseUint(text, 10, 64)
	if err != nil {
		return 0, fmt.Errorf("cgroup: %s: %w", file, err)
	}
	if n >= noLimit {
		return 0, nil
	}
	return int64(n), nil
}

// noSwap reports whether the group can't swap: by its own limit, or since the
// kernel accounts no swap.
func (m *member) noSwap(memory int64) (bool, error) {
	file := "memory.memsw.limit_in_bytes"
	if m.v2 {
		file = "memory.swap.max"
	}
	if !m.has(file) {
		return false, nil
	}
	n, err := m.bound(file)
	if err != nil {
		return false, err
	}
	if m.v2 {
		text, err := m.read(file)
		return strings.TrimSpace(text) == "0", err
	}
	return n != 0 && n == memory, nil
}

// quota reads the share of CPUs in thousandths; 0 is no bound.
func (m *member) quota() (int64, error) {
	if m.v2 {
		text, err := m.read("cpu.max")
		if err != nil {
			return 0, err
		}
		var quota, period int64
		if _, err := fmt.Sscan(text, &quota, &period); err != nil || period <= 0 {
			return 0, nil //nolint:nilerr // "max": none
		}
		return quota * 1000 / period, nil
	}
	quota, err := m.number("cpu.cfs_quota_us")
	if err != nil || quota <= 0 {
		return 0, err
	}
	period, err := m.number("cpu.cfs_period_us")
	if err != nil || period <= 0 {
		return 0, err
	}
	return quota * 1000 / period, nil
}

// Begin starts the counting anew, as [Group.Begin] does. Where something of an
// earlier run may live on, busy keeps [Stats.CPUSpent] going. A peak that can't
// be reset for want of rights is known only where it is passed.
func (v *View) Begin(busy bool) error {
	g := &v.group
	g.mu.Lock()
	defer g.mu.Unlock()
	b, err := g.current(busy)
	if err != nil {
		return err
	}
	if g.memory != nil {
		if err := beginPeak(g.memory, &b); err != nil {
			return err
		}
	}
	g.base = b
	return nil
}

// beginPeak resets the peak where it can, or else remembers it.
func beginPeak(m *member, b *baseline) (err error) {
	peak := "memory.peak"
	if !m.v2 {
		peak = "memory.max_usage_in_bytes"
		if m.write(peak, "0") == nil {
			return nil
		}
	}
	b.memPeak, err = m.optional(peak)
	return err
}

// Alone reports whether one process, with however many threads, is all that
// there is in the groups.
func (v *View) Alone() (bool, error) {
	m := v.group.pids
	if m == nil {
		m = v.group.memory
	}
	if m == nil {
		return false, nil
	}
	pids, unseen, err := m.pids()
	return len(pids) == 1 && !unseen, err
}

// Stats reads all counters.
func (v *View) Stats() (Stats, error) { return v.group.Stats() }

// Close lets go of the folders.
func (v *View) Close() error {
	v.group.mu.Lock()
	defer v.group.mu.Unlock()
	v.group.destroyed = true
	var errs []error
	for _, m := range []*member{v.group.memory, v.group.pids, v.group.cpuTime, v.cpu} {
		if m != nil {
			errs = append(errs, m.dir.Close())
		}
	}
	return errors.Join(errs...)
}
