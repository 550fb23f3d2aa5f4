package tranca

import "fmt"

// Level is how strong a boundary is. Levels are ordered: a greater one is
// stronger. The zero value is no level at all and compares below all others.
type Level int

// The isolation levels, weakest first.
const (
	// LevelSubprocess is a child process with resource limits. It hides no
	// files, shares the host's processes and kernel, and is never chosen
	// unless it is named.
	LevelSubprocess Level = iota + 1
	// LevelProcess is a process in namespaces and cgroups of its own, with a
	// seccomp allowlist and Landlock, over the host's kernel.
	LevelProcess
	// LevelContainer is a container of an OCI engine, over the host's kernel.
	LevelContainer
	// LevelGVisor is a kernel in user space between the code and the host's.
	LevelGVisor
	// LevelMicroVM is a guest kernel behind hardware virtualization.
	LevelMicroVM
)

var levelNames = [...]string{"", "subprocess", "process", "container", "gvisor", "microvm"}

// Levels returns all levels, weakest first.
func Levels() []Level {
	return []Level{LevelSubprocess, LevelProcess, LevelContainer, LevelGVisor, LevelMicroVM}
}

// String returns the level's name in policies, flags and results, or
// "level(N)" for a value that is no level.
func (l Level) String() string {
	if l >= LevelSubprocess && l <= LevelMicroVM {
		return levelNames[l]
	}
	return fmt.Sprintf("level(%d)", int(l))
}

// ParseLevel returns the level with the given name. The error wraps
// [ErrInvalid].
func ParseLevel(name string) (Level, error) {
	for _, l := range Levels() {
		if l.String() == name {
			return l, nil
		}
	}
	return 0, fmt.Errorf("%w: isolation level %q: want subprocess, process, container, gvisor or microvm", ErrInvalid, name)
}

// MarshalText writes the level's name. A value that is no level is an error.
func (l Level) MarshalText() ([]byte, error) {
	if l < LevelSubprocess || l > LevelMicroVM {
		return nil, fmt.Errorf("%w: %s", ErrInvalid, l)
	}
	return []byte(l.String()), nil
}

// UnmarshalText reads what MarshalText writes.
func (l *Level) UnmarshalText(text []byte) error {
	v, err := ParseLevel(string(text))
	if err != nil {
		return err
	}
	*l = v
	return nil
}
