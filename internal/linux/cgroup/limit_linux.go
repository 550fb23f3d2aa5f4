package cgroup

import (
	"errors"
	"strconv"

	"golang.org/x/sys/unix"
)

// limit sets the code's limits that h carries.
func (g *Group) limit(h *hierarchy, p place, v2 bool) error {
	if err := limitMemoryPIDs(h, p, v2, g.limits.Memory, g.limits.Processes); err != nil {
		return err
	}
	if h.has(ctlCPU) && g.limits.MilliCPUs > 0 {
		return setQuota(p, v2, g.limits.MilliCPUs)
	}
	return nil
}

func limitMemoryPIDs(h *hierarchy, p place, v2 bool, memory, pids int64) error {
	if h.has(ctlMemory) && memory > 0 {
		if err := setMemory(p, v2, memory); err != nil {
			return err
		}
	}
	if h.has(ctlPIDs) && pids > 0 {
		return p.write("pids.max", strconv.FormatInt(pids, 10))
	}
	return nil
}

// setMemory bounds memory with swap shut off. Where the kernel has no swap
// accounting Find has made sure that there is no swap.
func setMemory(p place, v2 bool, bytes int64) error {
	n := strconv.FormatInt(bytes, 10)
	limit, swap, swapValue := "memory.limit_in_bytes", "memory.memsw.limit_in_bytes", n
	if v2 {
		limit, swap, swapValue = "memory.max", "memory.swap.max", "0"
		if err := p.write("memory.oom.group", "1"); err != nil {
			return err
		}
	}
	if err := p.write(limit, n); err != nil {
		return err
	}
	if err := p.write(swap, swapValue); err != nil && !errors.Is(err, unix.ENOENT) {
		return err
	}
	return nil
}

// setQuota bounds the share of CPUs; 0 lifts the bound.
func setQuota(p place, v2 bool, milli int64) error {
	// The kernel wants at least 1 ms in each 100 ms.
	quota := strconv.FormatInt(max(milli*100, 1000), 10)
	if v2 {
		if milli == 0 {
			quota = "max"
		}
		return p.write("cpu.max", quota+" "+period)
	}
	if milli == 0 {
		quota = "-1"
	}
	return p.write("cpu.cfs_quota_us", quota) // the period is 100 ms by default
}
