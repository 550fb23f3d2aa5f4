package hostile

import (
	"errors"
	"fmt"
	"time"

	"tranca"
	"tranca/internal/policy"
)

// The suite's own limits: small, so that a probe has little to use up, and with
// room for the runtime of a static program.
func suiteLimits() tranca.Limits {
	return tranca.Limits{
		Wall: 10 * time.Second, CPUTime: 10 * time.Second, MilliCPUs: 1000,
		Memory: 256 << 20, Processes: 64, OpenFiles: 256, FileSize: 64 << 20,
		Disk:   tranca.Disk{Size: 64 << 20, Inodes: 4096, Backing: tranca.BackingMemory},
		Output: tranca.Output{Size: 1 << 20, OnExceed: tranca.ExceedTruncate},
	}
}

// Apply returns a policy for the probe: base with the suite's limits, what the
// probe says of its own, and the mounts.
func (p *Policy) Apply(base tranca.Policy, mounts []tranca.Mount) (tranca.Policy, error) {
	out := base.Clone()
	out.Limits = suiteLimits()
	out.Mounts = append(out.Mounts, mounts...)
	out.Env = p.Env
	out.Source = "hostile"
	l := &out.Limits
	errs := []error{
		set("wall", p.Wall, policy.ParseDuration, &l.Wall),
		set("cpu_time", p.CPUTime, policy.ParseDuration, &l.CPUTime),
		set("cpus", p.CPUs, policy.ParseCPUs, &l.MilliCPUs),
	}
	setNumber(p.Processes, &l.Processes)
	setNumber(p.OpenFiles, &l.OpenFiles)
	setNumber(p.Inodes, &l.Disk.Inodes)
	setNumber(int64(p.Memory), &l.Memory)
	setNumber(int64(p.FileSize), &l.FileSize)
	setNumber(int64(p.Disk), &l.Disk.Size)
	setNumber(int64(p.Output), &l.Output.Size)
	switch p.OnOutput {
	case "":
	case string(tranca.ExceedKill):
		l.Output.OnExceed = tranca.ExceedKill
	default:
		errs = append(errs, fmt.Errorf("policy.on_output: there is no %q: want kill", p.OnOutput))
	}
	return out, errors.Join(errs...)
}

func setNumber(from int64, to *int64) {
	if from != 0 {
		*to = from
	}
}

func set[T any](name, text string, parse func(string) (T, error), to *T) error {
	if text == "" {
		return nil
	}
	v, err := parse(text)
	if err != nil {
		return fmt.Errorf("policy.%s: %w", name, err)
	}
	*to = v
	return nil
}
