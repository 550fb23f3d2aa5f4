package tranca

// Encoding says how bytes are written in a JSON string.
type Encoding string

// The encodings of output.
const (
	// EncodingUTF8: the bytes are valid UTF-8 and stand as they are.
	EncodingUTF8 Encoding = "utf-8"
	// EncodingBase64: standard base64 with padding.
	EncodingBase64 Encoding = "base64"
)

// Result is all that is known of one run: the operator's view. Its JSON form
// is stable; docs/ARCHITECTURE.md describes it.
type Result struct {
	ID        ID
	Backend   string
	Isolation Level
	// ImageDigest is the digest of the image that ran, empty for the host's
	// own tree.
	ImageDigest string
	Exit        Exit
	// Stdout and Stderr are what was kept of the output, byte for byte.
	Stdout, Stderr []byte
	// StdoutTruncated and StderrTruncated say that more was dropped.
	StdoutTruncated, StderrTruncated bool
	LimitsHit                        []LimitHit
	Usage                            RunUsage
	Enforcement                      []Enforcement
	Denials                          []Denial
	Changes                          []Change
	// ChangesState says what became of the changes to mounts of mode cow; empty
	// where there were none.
	ChangesState ChangesState
	Policy       PolicyRef
	// Limits were in force. They put numbers into the agent's view and are
	// not part of the JSON form, where the policy's digest stands for them.
	Limits Limits
	// Notes are for the operator: "files of an earlier run stay charged".
	Notes []string
}

// RunUsage is what one run used. -1 is not known.
type RunUsage struct {
	WallMS          int64 `json:"wall_ms"`
	CPUMS           int64 `json:"cpu_ms"` // what Limits.CPUTime counts of this run
	MemoryPeakBytes int64 `json:"memory_peak_bytes"`
	ProcessesPeak   int64 `json:"processes_peak"`
}

// ChangeKind is what happened to a path in a mount of mode rw or cow.
type ChangeKind string

// The kinds of change. What is of another type than before is modified.
const (
	ChangeCreated  ChangeKind = "created"
	ChangeModified ChangeKind = "modified"
	ChangeRemoved  ChangeKind = "removed"
)

// ChangesState says what became of what was written to mounts of mode cow.
type ChangesState string

// The states of such changes.
const (
	// ChangesKept: they are kept under the result's ID. The host's folders are
	// as they were.
	ChangesKept ChangesState = "kept"
	// ChangesApplied: they were written to the host's folders.
	ChangesApplied ChangesState = "applied"
	// ChangesLost: they could not be kept. A note says why.
	ChangesLost ChangesState = "lost"
)

// Change is one path in a mount of mode rw or cow that differs after the run.
type Change struct {
	// Path is the path inside the sandbox.
	Path string     `json:"path"`
	Kind ChangeKind `json:"kind"`
	// Size is in bytes; 0 for what is no regular file.
	Size int64 `json:"size"`
	// HostExecutable says that programs on the host may execute the file
	// without being asked: a git hook, an editor's task.
	HostExecutable bool `json:"host_executable,omitempty"`
}

// PolicyRef says which policy was in force.
type PolicyRef struct {
	// Source is a path, "flags" or "default".
	Source string `json:"source"`
	// Digest is "sha256:" and 64 hexadecimal digits over the effective,
	// narrowed policy in canonical form.
	Digest string `json:"digest"`
}
