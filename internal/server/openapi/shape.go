package openapi

import (
	"reflect"

	"tranca"
	"tranca/internal/api"
)

// Result is all that is known of one run.
type Result struct {
	// The sandbox.
	ID string `json:"id"`
	// The name of the backend that made it; empty where none was reached.
	Backend string `json:"backend"`
	// The isolation level; empty where no sandbox was reached.
	Isolation string `json:"isolation"`
	// The digest of the image that ran; absent for the host's own tree.
	ImageDigest string `json:"image_digest,omitempty"`
	// How it ended.
	Exit tranca.Exit `json:"exit"`
	// What was kept of standard output, in the encoding that encoding.stdout
	// says.
	Stdout string `json:"stdout"`
	// What was kept of standard error, in the encoding that encoding.stderr
	// says.
	Stderr string `json:"stderr"`
	// How stdout and stderr are written.
	Encoding Encodings `json:"encoding"`
	// Whether more was written than was kept.
	Truncated Truncated `json:"truncated"`
	// Limits that refused something without ending the run.
	LimitsHit []tranca.LimitHit `json:"limits_hit"`
	// What the run used.
	Usage tranca.RunUsage `json:"usage"`
	// By which mechanism each item of the policy was enforced.
	Enforcement []tranca.Enforcement `json:"enforcement"`
	// Refused acts, each with its rule.
	Denials []tranca.Denial `json:"denials"`
	// Paths in mounts of mode rw or cow that differ after the run.
	Changes []Change `json:"changes"`
	// What became of the changes to mounts of mode cow; absent where there were
	// none.
	ChangesState tranca.ChangesState `json:"changes_state,omitempty"`
	// The policy that was in force, narrowed.
	Policy tranca.PolicyRef `json:"policy"`
	// For people.
	Notes []string `json:"notes"`
}

// Encodings say how the two outputs are written.
type Encodings struct {
	Stdout tranca.Encoding `json:"stdout"`
	Stderr tranca.Encoding `json:"stderr"`
}

// Truncated says of which output more was written than was kept.
type Truncated struct {
	Stdout bool `json:"stdout"`
	Stderr bool `json:"stderr"`
}

// Change is one path in a mount of mode rw or cow that differs after the run.
type Change struct {
	// The path inside the sandbox; where it is no valid UTF-8, readable.
	Path string `json:"path"`
	// The path byte for byte, where it is no valid UTF-8.
	PathBase64 []byte `json:"path_base64,omitempty"`
	// What happened to it.
	Kind tranca.ChangeKind `json:"kind"`
	// Its size in bytes; 0 for what is no regular file.
	Size int64 `json:"size"`
	// Programs on the host may execute it without being asked.
	HostExecutable bool `json:"host_executable,omitempty"`
}

// shapes are the types whose JSON form is not what their fields say.
var shapes = map[reflect.Type]reflect.Type{
	reflect.TypeFor[tranca.Result](): reflect.TypeFor[Result](),
	reflect.TypeFor[tranca.Change](): reflect.TypeFor[Change](),
}

func words[T ~string](all ...T) []any {
	var out []any
	for _, w := range all {
		out = append(out, string(w))
	}
	return out
}

func levels() []any {
	var out []any
	for _, l := range tranca.Levels() {
		out = append(out, l.String())
	}
	return out
}

// enums are the named types with a fixed set of words.
var enums = map[reflect.Type][]any{
	reflect.TypeFor[tranca.Level](): levels(),
	reflect.TypeFor[tranca.Reason](): words(tranca.EndExited, tranca.EndSignaled, tranca.EndWall, tranca.EndCPU,
		tranca.EndMemory, tranca.EndOutput, tranca.EndClosed, tranca.EndError),
	reflect.TypeFor[tranca.LimitHit](): words(tranca.HitPIDs, tranca.HitDisk, tranca.HitInodes, tranca.HitFiles,
		tranca.HitFileSize, tranca.HitOutput),
	reflect.TypeFor[tranca.Encoding]():     words(tranca.EncodingUTF8, tranca.EncodingBase64),
	reflect.TypeFor[tranca.Status]():       words(tranca.StatusEnforced, tranca.StatusWaived, tranca.StatusDeclared),
	reflect.TypeFor[tranca.ChangeKind]():   words(tranca.ChangeCreated, tranca.ChangeModified, tranca.ChangeRemoved),
	reflect.TypeFor[tranca.ChangesState](): words(tranca.ChangesKept, tranca.ChangesApplied, tranca.ChangesLost),
	reflect.TypeFor[tranca.FileType]():     words(tranca.FileRegular, tranca.FileDirectory, tranca.FileSymlink, tranca.FileOther),
	reflect.TypeFor[tranca.FileEventKind](): words(tranca.FileCreated, tranca.FileWritten, tranca.FileRemoved,
		tranca.FileRenamed, tranca.FileChmod, tranca.FileOverflow),
	reflect.TypeFor[tranca.Item](): words(tranca.Items()...),
	reflect.TypeFor[api.Code]():    words(api.Codes()...),
	reflect.TypeFor[api.EventType](): words(api.EventStarted, api.EventStdout, api.EventStderr, api.EventDropped,
		api.EventResult, api.EventProcess, api.EventExit, api.EventWatching, api.EventFile, api.EventError, api.EventKeepAlive),
}

// requests are the types of bodies that are sent: they have no other fields
// than these.
var requests = []reflect.Type{
	reflect.TypeFor[api.RunRequest](), reflect.TypeFor[api.Narrowing](), reflect.TypeFor[api.CreateRequest](),
	reflect.TypeFor[api.KeepAliveRequest](), reflect.TypeFor[api.EnvironmentRequest](),
	reflect.TypeFor[api.StartRequest](), reflect.TypeFor[api.SignalRequest](), reflect.TypeFor[tranca.TerminalSize](),
	reflect.TypeFor[api.PathRequest](), reflect.TypeFor[api.MoveRequest](),
}

const maxMS = int64(1<<63-1) / 1_000_000

// bounds are what the types do not say of their fields.
var bounds = map[string]object{
	"Narrowing.floor":               {"enum": levels()},
	"Narrowing.wall_ms":             {"minimum": 0, "maximum": maxMS},
	"Narrowing.cpu_time_ms":         {"minimum": 0, "maximum": maxMS},
	"CreateRequest.ttl_ms":          {"minimum": 0, "maximum": maxMS},
	"CreateRequest.idle_timeout_ms": {"minimum": 0, "maximum": maxMS},
	"CreateRequest.metadata":        {"maxProperties": 64, "propertyNames": object{"minLength": 1, "maxLength": 128}},
	"KeepAliveRequest.ttl_ms":       {"minimum": 0, "maximum": maxMS},
	"StartRequest.args":             {"minItems": 1, "maxItems": 4096},
	"StartRequest.tag":              {"maxLength": 256},
	"StartRequest.wall_ms":          {"minimum": 0, "maximum": maxMS},
	"RunRequest.code_bytes":         {"minimum": 0, "maximum": int64(api.MaxCode)},
	"RunRequest.args":               {"maxItems": 4096},
	"SignalRequest.signal":          {"minimum": 1, "maximum": 64},
	"TerminalSize.rows":             {"minimum": 1, "maximum": 65535},
	"TerminalSize.columns":          {"minimum": 1, "maximum": 65535},
	"PathRequest.path":              {"minLength": 1, "maxLength": 4095},
	"MoveRequest.from":              {"minLength": 1, "maxLength": 4095},
	"MoveRequest.to":                {"minLength": 1, "maxLength": 4095},
	"FileInfo.mode":                 {"pattern": "^0[0-7]{3}$"},
	"Problem.type":                  {"pattern": "^urn:tranca:problem:"},
	"SandboxInfo.id":                {"pattern": idPattern},
	"ProcessInfo.id":                {"pattern": "^p[1-9][0-9]*$"},
}

const idPattern = "^i[a-z0-9]{20}$"
