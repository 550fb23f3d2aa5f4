package tranca

import (
	"maps"
	"slices"
	"time"
)

// Policy is what one sandbox may do. It is complete: every field has its
// effective value, so that nobody further down applies a default. Make one
// with package policy's Default or Parse, never by literal.
//
// A Policy is written by the operator. Treat it as immutable once it is given
// to an engine; Clone it to change it.
type Policy struct {
	// Floor is the lowest level that is accepted. Nothing runs below it.
	Floor Level
	// Backend names the backend; empty lets the engine choose the cheapest
	// usable one at or above Floor.
	Backend string
	// Image is the root tree: [ImageHost], or the name or digest of an image
	// in tranca's store.
	Image string
	// Runtime names the OCI runtime of the backend container: "runc", "crun",
	// "runsc", "kata" or another that the engine has. Empty takes the engine's
	// default. Its isolation level is found by a trial run.
	Runtime string
	// KnownVulnerabilities says what happens where a runtime or engine has a
	// version with a known hole.
	KnownVulnerabilities Vulnerabilities
	// Limits bound what one run may use.
	Limits Limits
	// Mounts are the host folders and files that the code may see.
	Mounts []Mount
	// Env is the whole environment of the code but for HOME, PATH, USER,
	// LOGNAME, LANG, PWD and TMPDIR, which tranca sets where Env does not.
	Env map[string]string
	// User is the user inside the sandbox.
	User User
	// Workdir is where the code starts: absolute, clean.
	Workdir string
	// Hostname is what the code finds as its host's name.
	Hostname string
	// Network is the reach of the network.
	Network Network
	// Chroot is a host folder that becomes the root of programs under the
	// backend subprocess, which needs root for it; empty for none.
	Chroot string
	// MinLandlockABI is the lowest Landlock ABI that is accepted, where the
	// backend uses Landlock. 0 accepts any that the host has, but not none.
	MinLandlockABI int
	// KeepFiles lets the calls of one agent session share a sandbox, and so
	// its files.
	KeepFiles bool
	// Waive lists items that need not be enforced. Each is in [Waivable].
	Waive []Item
	// Source says where the policy came from: a path, "flags", "default".
	Source string
}

// Vulnerabilities says what happens where a runtime or engine has a version
// with a known hole.
type Vulnerabilities string

// What happens where a version has a known hole.
const (
	// VulnerabilitiesWarn names the hole in the result's notes.
	VulnerabilitiesWarn Vulnerabilities = "warn"
	// VulnerabilitiesRefuse refuses the run.
	VulnerabilitiesRefuse Vulnerabilities = "refuse"
)

// Network is the reach of the network.
type Network string

// NetworkNone gives the code no network but its own loopback.
const NetworkNone Network = "none"

// Limits are the bounds of one run. Every field has an effective value within
// the maxima of package policy; there is no "unlimited".
type Limits struct {
	// Wall is the wall-clock time of one run.
	Wall time.Duration
	// CPUTime is the CPU time, user and system, of the whole tree.
	CPUTime time.Duration
	// MilliCPUs is the share of CPUs in thousandths: 500 is half a CPU.
	MilliCPUs int64
	// Memory is the bytes of the whole tree, its tmpfs included.
	Memory int64
	// Processes bounds processes and threads at one moment.
	Processes int64
	// OpenFiles bounds the descriptors of each process.
	OpenFiles int64
	// FileSize bounds the bytes of one file.
	FileSize int64
	// Disk bounds tranca's own writable space.
	Disk Disk
	// Output bounds each output stream.
	Output Output
}

// Disk bounds the sandbox's own writable space: /work, /tmp and /dev/shm
// together.
type Disk struct {
	// Size is in bytes.
	Size int64
	// Inodes counts files, folders and links.
	Inodes int64
	// Backing says what the space is made of.
	Backing Backing
}

// Backing says what the sandbox's own writable space is made of.
type Backing string

// The backings.
const (
	// BackingMemory is a tmpfs. What is in it counts as memory too.
	BackingMemory Backing = "memory"
	// BackingFile is a file system in a file on the host's disk.
	BackingFile Backing = "file"
)

// Output bounds the bytes kept of each of stdout and stderr.
type Output struct {
	// Size is in bytes, for each stream.
	Size int64
	// OnExceed says what happens to more.
	OnExceed OnExceed
}

// OnExceed says what happens to output beyond its bound.
type OnExceed string

// What happens to output beyond its bound.
const (
	// ExceedTruncate drops it; the program goes on and notices nothing.
	ExceedTruncate OnExceed = "truncate"
	// ExceedKill ends the run with [EndOutput].
	ExceedKill OnExceed = "kill"
)

// Mount makes one host file or folder visible.
type Mount struct {
	// Source is an absolute host path. No part of it is a symbolic link.
	Source string
	// Target is an absolute, clean path inside, not "/" and not within a
	// place that tranca makes itself.
	Target string
	// Writable lets the code write to the host's own files there.
	Writable bool
	// Cow shows the folder as if it were writable: what the code writes goes
	// to the sandbox's own bounded space, and the host's files stay as they
	// are until the operator applies the changes. It excludes Writable.
	Cow bool
	// DiskUnbounded says that the operator accepts a writable mount without a
	// bound on its bytes. Without it such a mount is refused where the host
	// has no quota for it.
	DiskUnbounded bool
	// Deny lists paths below Target, relative and clean, that stay hidden.
	// A denied path inside an allowed one is denied, and the reverse too.
	Deny []string
	// Protect lists base names or relative paths that a writable mount keeps
	// read-only because the host may execute them: ".git/hooks", ".envrc".
	Protect []string
}

// User is a user inside the sandbox. UID 0 belongs to the guest agent.
type User struct {
	Name string
	UID  uint32
	GID  uint32
}

// Clone returns a deep copy.
func (p Policy) Clone() Policy {
	p.Mounts = slices.Clone(p.Mounts)
	for i := range p.Mounts {
		p.Mounts[i].Deny = slices.Clone(p.Mounts[i].Deny)
		p.Mounts[i].Protect = slices.Clone(p.Mounts[i].Protect)
	}
	p.Env = maps.Clone(p.Env)
	p.Waive = slices.Clone(p.Waive)
	return p
}

// Waives reports whether the operator waived the item.
func (p *Policy) Waives(item Item) bool { return slices.Contains(p.Waive, item) }

// Narrowing is what a request may ask of a policy: less. The zero value asks
// for nothing. A field that asks for more than the policy gives never widens
// it: package policy reports it, and an engine refuses the request.
type Narrowing struct {
	// Floor raises the floor; 0 leaves it.
	Floor Level
	// Backend names the backend; it must be the policy's where the policy
	// names one.
	Backend string
	// Wall to Output lower a limit; 0 leaves it.
	Wall       time.Duration
	CPUTime    time.Duration
	MilliCPUs  int64
	Memory     int64
	Processes  int64
	OpenFiles  int64
	FileSize   int64
	DiskSize   int64
	DiskInodes int64
	Output     int64
	// DropMounts removes mounts by Target.
	DropMounts []string
	// ReadOnly makes mounts read-only by Target.
	ReadOnly []string
	// Env sets variables for the program alone. They widen nothing; names
	// that the policy sets cannot be changed.
	Env map[string]string
	// Workdir starts the program elsewhere inside the sandbox.
	Workdir string
}
