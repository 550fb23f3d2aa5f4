package api

import (
	"time"

	"tranca"
)

// Narrowing is the JSON form of a [tranca.Narrowing]. Times are in
// milliseconds, sizes in bytes; 0 or absent leaves the policy's value.
type Narrowing struct {
	Floor      string            `json:"floor,omitempty"`
	Backend    string            `json:"backend,omitempty"`
	WallMS     int64             `json:"wall_ms,omitempty"`
	CPUTimeMS  int64             `json:"cpu_time_ms,omitempty"`
	MilliCPUs  int64             `json:"milli_cpus,omitempty"`
	Memory     int64             `json:"memory_bytes,omitempty"`
	Processes  int64             `json:"processes,omitempty"`
	OpenFiles  int64             `json:"open_files,omitempty"`
	FileSize   int64             `json:"file_size_bytes,omitempty"`
	DiskSize   int64             `json:"disk_bytes,omitempty"`
	DiskInodes int64             `json:"disk_inodes,omitempty"`
	Output     int64             `json:"output_bytes,omitempty"`
	DropMounts []string          `json:"drop_mounts,omitempty"`
	ReadOnly   []string          `json:"read_only,omitempty"`
	Env        map[string]string `json:"env,omitempty"`
	// EnvBase64 has those variables whose value is no valid UTF-8.
	EnvBase64 map[string][]byte `json:"env_base64,omitempty"`
	Workdir   string            `json:"workdir,omitempty"`
}

// NarrowingOf returns the JSON form of n.
func NarrowingOf(n tranca.Narrowing) Narrowing {
	out := Narrowing{
		Backend: n.Backend, WallMS: milliseconds(n.Wall), CPUTimeMS: milliseconds(n.CPUTime),
		MilliCPUs: n.MilliCPUs, Memory: n.Memory, Processes: n.Processes, OpenFiles: n.OpenFiles,
		FileSize: n.FileSize, DiskSize: n.DiskSize, DiskInodes: n.DiskInodes, Output: n.Output,
		DropMounts: n.DropMounts, ReadOnly: n.ReadOnly, Workdir: n.Workdir,
	}
	out.Env, out.EnvBase64 = splitEnv(n.Env)
	if n.Floor != 0 {
		out.Floor = n.Floor.String()
	}
	return out
}

// milliseconds rounds up, so that what is asked for never becomes nothing.
func milliseconds(d time.Duration) int64 {
	return int64((d + time.Millisecond - 1) / time.Millisecond)
}

// Narrowing returns the narrowing. The error wraps [tranca.ErrInvalid].
func (n Narrowing) Narrowing() (tranca.Narrowing, error) {
	out := tranca.Narrowing{
		Backend: n.Backend, MilliCPUs: n.MilliCPUs, Memory: n.Memory, Processes: n.Processes,
		OpenFiles: n.OpenFiles, FileSize: n.FileSize, DiskSize: n.DiskSize, DiskInodes: n.DiskInodes,
		Output: n.Output, DropMounts: n.DropMounts, ReadOnly: n.ReadOnly, Workdir: n.Workdir,
	}
	var err error
	if out.Env, err = joinEnv(n.Env, n.EnvBase64); err != nil {
		return tranca.Narrowing{}, err
	}
	if n.Floor != "" {
		if out.Floor, err = tranca.ParseLevel(n.Floor); err != nil {
			return tranca.Narrowing{}, err
		}
	}
	if out.Wall, err = Duration("narrow.wall_ms", n.WallMS); err != nil {
		return tranca.Narrowing{}, err
	}
	out.CPUTime, err = Duration("narrow.cpu_time_ms", n.CPUTimeMS)
	return out, err
}

// RunRequest is the body of a run, in a fresh sandbox or in one that lives.
// Exactly one of Code and Command is set.
type RunRequest struct {
	Code     string   `json:"code,omitempty"`
	Language string   `json:"language,omitempty"`
	Command  []string `json:"command,omitempty"`
	Args     []string `json:"args,omitempty"`
	// CodeBytes says that so many bytes of code follow the request, byte for
	// byte, in a body of type [TypeFrames].
	CodeBytes int64 `json:"code_bytes,omitempty"`
	// NoStdin says that no standard input follows, in a body of type
	// [TypeFrames].
	NoStdin bool `json:"no_stdin,omitempty"`
	// CommandBase64 and ArgsBase64 stand in the place of Command and Args where
	// one of these is no valid UTF-8.
	CommandBase64 [][]byte `json:"command_base64,omitempty"`
	ArgsBase64    [][]byte `json:"args_base64,omitempty"`
	// Stdin is text, StdinBase64 bytes; at most one is set.
	Stdin       string `json:"stdin,omitempty"`
	StdinBase64 []byte `json:"stdin_base64,omitempty"`
	// Profile is only for a fresh sandbox.
	Profile string    `json:"profile,omitempty"`
	Narrow  Narrowing `json:"narrow,omitzero"`
}

// CreateRequest is the body of a creation.
type CreateRequest struct {
	Profile string `json:"profile,omitempty"`
	// TTLMS and IdleTimeoutMS are in milliseconds; 0 is the server's default.
	TTLMS         int64             `json:"ttl_ms,omitempty"`
	IdleTimeoutMS int64             `json:"idle_timeout_ms,omitempty"`
	Metadata      map[string]string `json:"metadata,omitempty"`
	Narrow        Narrowing         `json:"narrow,omitzero"`
}

// KeepAliveRequest sets the end of a sandbox to so long after now.
type KeepAliveRequest struct {
	TTLMS int64 `json:"ttl_ms,omitempty"`
}

// SandboxList is one page of sandboxes, oldest first.
type SandboxList struct {
	Sandboxes []tranca.SandboxInfo `json:"sandboxes"`
	// Next is the cursor of the next page, empty on the last one.
	Next string `json:"next,omitempty"`
}

// EnvironmentRequest changes what programs started later find in their
// environment.
type EnvironmentRequest struct {
	Set   map[string]string `json:"set,omitempty"`
	Unset []string          `json:"unset,omitempty"`
}

// StartRequest is the body of a start.
type StartRequest struct {
	Args []string          `json:"args"`
	Env  map[string]string `json:"env,omitempty"`
	Dir  string            `json:"dir,omitempty"`
	Tag  string            `json:"tag,omitempty"`
	// Terminal gives it a terminal of this size.
	Terminal *tranca.TerminalSize `json:"terminal,omitempty"`
	// Stdin keeps its standard input open for later writes. With a terminal
	// that is always so.
	Stdin bool `json:"stdin,omitempty"`
	// WallMS ends it after so many milliseconds; 0 lets it live as long as its
	// sandbox.
	WallMS int64 `json:"wall_ms,omitempty"`
}

// ChangeList is what was written to a sandbox's mounts of mode cow so far, sorted
// by path.
type ChangeList struct {
	Changes []tranca.Change `json:"changes"`
	// Notes say what could not be seen.
	Notes []string `json:"notes"`
}

// ProcessList is what was started in a sandbox, oldest first.
type ProcessList struct {
	Processes []tranca.ProcessInfo `json:"processes"`
}

// SignalRequest sends a signal, to the process or to its process group.
type SignalRequest struct {
	Signal int  `json:"signal"`
	Group  bool `json:"group,omitempty"`
}

// InputAnswer says how many bytes a process's standard input took.
type InputAnswer struct {
	Written int64 `json:"written"`
}

// FileInfo is the JSON form of a [tranca.FileInfo]. A path or name that isn't
// valid UTF-8 stands readable in path and byte for byte in path_base64.
type FileInfo struct {
	Name       string          `json:"name"`
	Path       string          `json:"path"`
	PathBase64 []byte          `json:"path_base64,omitempty"`
	Type       tranca.FileType `json:"type"`
	Size       int64           `json:"size"`
	// Mode is the permission bits in octal: "0644".
	Mode       string    `json:"mode"`
	UID        uint32    `json:"uid"`
	GID        uint32    `json:"gid"`
	Modified   time.Time `json:"modified"`
	LinkTarget string    `json:"link_target,omitempty"`
}

// FileList is a folder, in lexical order, parents first.
type FileList struct {
	Files []FileInfo `json:"files"`
}

// WriteAnswer says how many bytes an upload has written.
type WriteAnswer struct {
	Written int64 `json:"written"`
}

// PathRequest names a folder to make.
type PathRequest struct {
	Path string `json:"path"`
}

// MoveRequest renames.
type MoveRequest struct {
	From string `json:"from"`
	To   string `json:"to"`
}

// Info is what the server says of itself.
type Info struct {
	Version   string        `json:"version"`
	Languages []string      `json:"languages"`
	Profiles  []ProfileInfo `json:"profiles"`
}

// ProfileInfo is one of the operator's policies as a request may name it.
type ProfileInfo struct {
	Name   string `json:"name"`
	Digest string `json:"digest"`
	Limits Limits `json:"limits"`
}

// Limits is the JSON form of [tranca.Limits].
type Limits struct {
	WallMS         int64  `json:"wall_ms"`
	CPUTimeMS      int64  `json:"cpu_time_ms"`
	MilliCPUs      int64  `json:"milli_cpus"`
	Memory         int64  `json:"memory_bytes"`
	Processes      int64  `json:"processes"`
	OpenFiles      int64  `json:"open_files"`
	FileSize       int64  `json:"file_size_bytes"`
	DiskSize       int64  `json:"disk_bytes"`
	DiskInodes     int64  `json:"disk_inodes"`
	DiskBacking    string `json:"disk_backing"`
	Output         int64  `json:"output_bytes"`
	OutputOnExceed string `json:"output_on_exceed"`
}

// LimitsOf returns the JSON form of l.
func LimitsOf(l tranca.Limits) Limits {
	return Limits{
		WallMS: milliseconds(l.Wall), CPUTimeMS: milliseconds(l.CPUTime), MilliCPUs: l.MilliCPUs,
		Memory: l.Memory, Processes: l.Processes, OpenFiles: l.OpenFiles, FileSize: l.FileSize,
		DiskSize: l.Disk.Size, DiskInodes: l.Disk.Inodes, DiskBacking: string(l.Disk.Backing),
		Output: l.Output.Size, OutputOnExceed: string(l.Output.OnExceed),
	}
}

// Limits returns the limits.
func (l Limits) Limits() tranca.Limits {
	return tranca.Limits{
		Wall: time.Duration(l.WallMS) * time.Millisecond, CPUTime: time.Duration(l.CPUTimeMS) * time.Millisecond,
		MilliCPUs: l.MilliCPUs, Memory: l.Memory, Processes: l.Processes, OpenFiles: l.OpenFiles, FileSize: l.FileSize,
		Disk:   tranca.Disk{Size: l.DiskSize, Inodes: l.DiskInodes, Backing: tranca.Backing(l.DiskBacking)},
		Output: tranca.Output{Size: l.Output, OnExceed: tranca.OnExceed(l.OutputOnExceed)},
	}
}
