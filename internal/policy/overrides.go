package policy

import (
	"fmt"
	"maps"
	"slices"
	"time"

	"tranca"
)

// Overrides are what the flags of a command line say. A nil pointer, map or
// slice is a flag that was not given.
//
// Where there is no policy file, the person at the command line is the
// operator and [Apply] makes flags the policy. Where there is one, flags are
// a request like any other: [Overrides.Narrowing].
type Overrides struct {
	Floor   *tranca.Level
	Backend *string
	Image   *string
	Runtime *string

	Wall    *time.Duration
	CPUTime *time.Duration
	// MilliCPUs is in thousandths of a CPU.
	MilliCPUs *int64
	// Memory, FileSize, DiskSize and Output are in bytes.
	Memory     *int64
	Processes  *int64
	OpenFiles  *int64
	FileSize   *int64
	DiskSize   *int64
	DiskInodes *int64
	Output     *int64

	// Mounts are added to the policy's.
	Mounts []tranca.Mount
	// Env is added to the policy's; here a flag also changes a value.
	Env     map[string]string
	Workdir *string
	// Waive is added to the policy's.
	Waive []tranca.Item
}

// Empty reports whether no flag was given.
func (o *Overrides) Empty() bool {
	for _, f := range table() {
		if f.over == nil {
			continue
		}
		if _, set := given(f.over(o)); set {
			return false
		}
	}
	return o.Floor == nil && o.Backend == nil && o.Image == nil && o.Runtime == nil && len(o.Mounts) == 0 &&
		len(o.Env) == 0 && o.Workdir == nil && len(o.Waive) == 0
}

// Apply returns the policy with what the flags say, which may be more than p
// gives, within the maxima of every policy. Use it only where no policy file
// is in force. Its Source is [SourceFlags] when any flag is set.
//
// Naming a backend without a floor lowers the floor to the backend's level: the
// name is the consent. Lowering the memory without a word about the disk
// lowers the disk to half of it. The error is an [Errors] whose paths are
// flags.
func Apply(p tranca.Policy, o Overrides) (tranca.Policy, error) {
	out := p.Clone()
	if o.Empty() {
		return out, nil
	}
	out.Source = SourceFlags
	for _, f := range table() {
		if f.over == nil {
			continue
		}
		if n, set := given(f.over(&o)); set {
			setNumber(f.ref(&out), n)
		}
	}
	if o.DiskSize == nil {
		fitDisk(&out)
	}
	applyPlace(&out, o)
	out.Mounts = append(out.Mounts, cloneMounts(o.Mounts)...)
	out.Env = joinEnv(out.Env, o.Env)
	for _, item := range o.Waive {
		if !slices.Contains(out.Waive, item) {
			out.Waive = append(out.Waive, item)
		}
	}
	found := append(checkFields(&out), checkTogether(&out)...)
	if len(found) > 0 {
		return tranca.Policy{}, byFlag(found)
	}
	return out, nil
}

// applyPlace sets where the code runs.
func applyPlace(out *tranca.Policy, o Overrides) {
	if o.Backend != nil {
		out.Backend = *o.Backend
		level, known := levels[*o.Backend]
		if *o.Backend == "container" {
			level, known = tranca.LevelContainer, true
		}
		if known && o.Floor == nil {
			out.Floor = min(out.Floor, level)
		}
	}
	if o.Floor != nil {
		out.Floor = *o.Floor
	}
	if o.Image != nil {
		out.Image = *o.Image
	}
	if o.Runtime != nil {
		out.Runtime = *o.Runtime
	}
	if o.Workdir != nil {
		out.Workdir = *o.Workdir
	}
}

// fitDisk lowers a space in memory to half of the memory.
func fitDisk(p *tranca.Policy) {
	if p.Limits.Disk.Backing == tranca.BackingMemory {
		p.Limits.Disk.Size = min(p.Limits.Disk.Size, p.Limits.Memory/2)
	}
}

// Narrowing returns what the flags ask of a policy from a file. Mounts and
// waivers can only widen, and another image or runtime is not less but other,
// so the error names their flag.
func (o Overrides) Narrowing() (tranca.Narrowing, error) {
	var n tranca.Narrowing
	if len(o.Mounts) > 0 {
		return n, onlyPolicy("--mount", "mounts")
	}
	if len(o.Waive) > 0 {
		return n, onlyPolicy("--waive", "waive")
	}
	if o.Image != nil {
		return n, onlyPolicy("--image", "image")
	}
	if o.Runtime != nil {
		return n, onlyPolicy("--runtime", "runtime")
	}
	for _, f := range table() {
		if f.over == nil {
			continue
		}
		v, set := given(f.over(&o))
		if !set {
			continue
		}
		// 0 in a narrowing means "not asked"; on a command line it is a limit
		// of nothing, and so an error as it is without a policy file.
		if v <= 0 {
			return tranca.Narrowing{}, f.checkBounds(f.flag, v)
		}
		setNumber(f.ask(&n), v)
	}
	if o.Floor != nil {
		n.Floor = *o.Floor
	}
	if o.Backend != nil {
		n.Backend = *o.Backend
	}
	if o.Workdir != nil {
		n.Workdir = *o.Workdir
	}
	n.Env = maps.Clone(o.Env)
	return n, nil
}

func onlyPolicy(flag, key string) error {
	return fmt.Errorf("%w: %s does not narrow what the code may do, and a policy file is in force, so flags can only do that: write it under %q in the policy", tranca.ErrRefused, flag, key)
}

// given reads a pointer from a field's over; a nil one is not set.
func given(ref any) (n int64, set bool) {
	switch v := ref.(type) {
	case *int64:
		if v != nil {
			return *v, true
		}
	case *time.Duration:
		if v != nil {
			return int64(*v), true
		}
	}
	return 0, false
}

// byFlag names errors by the flag that a person typed instead of the field.
func byFlag(found []*Error) Errors {
	flags := map[string]string{}
	for _, f := range table() {
		if f.flag != "" {
			flags[f.path] = f.flag
		}
	}
	var all Errors
	for _, e := range found[:min(len(found), MaxErrors)] {
		c := *e
		for _, end := range []int{len(e.Path), indexOf(e.Path, '['), indexOf(e.Path, '.')} {
			if flag, ok := flags[e.Path[:end]]; ok {
				c.Path = flag + e.Path[end:]
				break
			}
		}
		all = append(all, &c)
	}
	return all
}

// indexOf returns where c is first, or the length of s.
func indexOf(s string, c byte) int {
	for i := range len(s) {
		if s[i] == c {
			return i
		}
	}
	return len(s)
}

func cloneMounts(mounts []tranca.Mount) []tranca.Mount {
	return tranca.Policy{Mounts: mounts}.Clone().Mounts
}

// joinEnv returns a with b over it.
func joinEnv(a, b map[string]string) map[string]string {
	if len(b) == 0 {
		return a
	}
	out := make(map[string]string, len(a)+len(b))
	maps.Copy(out, a)
	maps.Copy(out, b)
	return out
}
