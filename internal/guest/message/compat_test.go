package message

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"google.golang.org/protobuf/encoding/prototext"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protodesc"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/types/descriptorpb"
	"google.golang.org/protobuf/types/dynamicpb"
)

// schema is the messages as E2B has them, with our fields from 1000 on, for
// protobuf's own runtime to judge the codec by.
const schema = `
name: "guest.proto" package: "t" syntax: "proto3"
message_type { name: "ProcessConfig"
  field { name: "cmd" number: 1 label: LABEL_OPTIONAL type: TYPE_BYTES }
  field { name: "args" number: 2 label: LABEL_REPEATED type: TYPE_BYTES }
  field { name: "envs" number: 3 label: LABEL_REPEATED type: TYPE_MESSAGE type_name: ".t.ProcessConfig.EnvsEntry" }
  field { name: "cwd" number: 4 label: LABEL_OPTIONAL type: TYPE_STRING }
  nested_type { name: "EnvsEntry" options { map_entry: true }
    field { name: "key" number: 1 label: LABEL_OPTIONAL type: TYPE_STRING }
    field { name: "value" number: 2 label: LABEL_OPTIONAL type: TYPE_STRING } } }
message_type { name: "StartRequest"
  field { name: "process" number: 1 label: LABEL_OPTIONAL type: TYPE_MESSAGE type_name: ".t.ProcessConfig" }
  field { name: "pty" number: 2 label: LABEL_OPTIONAL type: TYPE_MESSAGE type_name: ".t.PTY" }
  field { name: "tag" number: 3 label: LABEL_OPTIONAL type: TYPE_STRING }
  field { name: "stdin" number: 4 label: LABEL_OPTIONAL type: TYPE_BOOL oneof_index: 0 proto3_optional: true }
  field { name: "end_group" number: 1000 label: LABEL_OPTIONAL type: TYPE_BOOL }
  oneof_decl { name: "_stdin" } }
message_type { name: "PTY"
  field { name: "size" number: 1 label: LABEL_OPTIONAL type: TYPE_MESSAGE type_name: ".t.PTY.Size" }
  nested_type { name: "Size"
    field { name: "cols" number: 1 label: LABEL_OPTIONAL type: TYPE_UINT32 }
    field { name: "rows" number: 2 label: LABEL_OPTIONAL type: TYPE_UINT32 } } }
message_type { name: "UpdateRequest"
  field { name: "process" number: 1 label: LABEL_OPTIONAL type: TYPE_MESSAGE type_name: ".t.Selector" }
  field { name: "pty" number: 2 label: LABEL_OPTIONAL type: TYPE_MESSAGE type_name: ".t.PTY" } }
message_type { name: "Selector"
  field { name: "pid" number: 1 label: LABEL_OPTIONAL type: TYPE_UINT32 oneof_index: 0 }
  field { name: "tag" number: 2 label: LABEL_OPTIONAL type: TYPE_STRING oneof_index: 0 }
  oneof_decl { name: "selector" } }
message_type { name: "SendSignalRequest"
  field { name: "process" number: 1 label: LABEL_OPTIONAL type: TYPE_MESSAGE type_name: ".t.Selector" }
  field { name: "signal" number: 2 label: LABEL_OPTIONAL type: TYPE_UINT32 }
  field { name: "number" number: 1000 label: LABEL_OPTIONAL type: TYPE_UINT32 }
  field { name: "group" number: 1001 label: LABEL_OPTIONAL type: TYPE_BOOL } }
message_type { name: "ProcessInput"
  field { name: "stdin" number: 1 label: LABEL_OPTIONAL type: TYPE_BYTES oneof_index: 0 }
  field { name: "pty" number: 2 label: LABEL_OPTIONAL type: TYPE_BYTES oneof_index: 0 }
  oneof_decl { name: "input" } }
message_type { name: "SendInputRequest"
  field { name: "process" number: 1 label: LABEL_OPTIONAL type: TYPE_MESSAGE type_name: ".t.Selector" }
  field { name: "input" number: 2 label: LABEL_OPTIONAL type: TYPE_MESSAGE type_name: ".t.ProcessInput" } }
message_type { name: "StreamInputRequest"
  field { name: "data" number: 2 label: LABEL_OPTIONAL type: TYPE_MESSAGE type_name: ".t.StreamInputRequest.Data" }
  nested_type { name: "Data"
    field { name: "input" number: 2 label: LABEL_OPTIONAL type: TYPE_MESSAGE type_name: ".t.ProcessInput" } } }
message_type { name: "ProcessInfo"
  field { name: "config" number: 1 label: LABEL_OPTIONAL type: TYPE_MESSAGE type_name: ".t.ProcessConfig" }
  field { name: "pid" number: 2 label: LABEL_OPTIONAL type: TYPE_UINT32 }
  field { name: "tag" number: 3 label: LABEL_OPTIONAL type: TYPE_STRING } }
message_type { name: "ListResponse"
  field { name: "processes" number: 1 label: LABEL_REPEATED type: TYPE_MESSAGE type_name: ".t.ProcessInfo" } }
message_type { name: "StartResponse"
  field { name: "event" number: 1 label: LABEL_OPTIONAL type: TYPE_MESSAGE type_name: ".t.ProcessEvent" } }
message_type { name: "ProcessEvent"
  field { name: "start" number: 1 label: LABEL_OPTIONAL type: TYPE_MESSAGE type_name: ".t.ProcessEvent.Start" oneof_index: 0 }
  field { name: "data" number: 2 label: LABEL_OPTIONAL type: TYPE_MESSAGE type_name: ".t.ProcessEvent.Data" oneof_index: 0 }
  field { name: "end" number: 3 label: LABEL_OPTIONAL type: TYPE_MESSAGE type_name: ".t.ProcessEvent.End" oneof_index: 0 }
  field { name: "keepalive" number: 4 label: LABEL_OPTIONAL type: TYPE_MESSAGE type_name: ".t.ProcessEvent.Keep" oneof_index: 0 }
  field { name: "ended" number: 1000 label: LABEL_OPTIONAL type: TYPE_MESSAGE type_name: ".t.ProcessEvent.Keep" oneof_index: 0 }
  oneof_decl { name: "event" }
  nested_type { name: "Start" field { name: "pid" number: 1 label: LABEL_OPTIONAL type: TYPE_UINT32 } }
  nested_type { name: "Data"
    field { name: "stdout" number: 1 label: LABEL_OPTIONAL type: TYPE_BYTES oneof_index: 0 }
    field { name: "stderr" number: 2 label: LABEL_OPTIONAL type: TYPE_BYTES oneof_index: 0 }
    field { name: "pty" number: 3 label: LABEL_OPTIONAL type: TYPE_BYTES oneof_index: 0 }
    oneof_decl { name: "output" } }
  nested_type { name: "End"
    field { name: "exit_code" number: 1 label: LABEL_OPTIONAL type: TYPE_SINT32 }
    field { name: "exited" number: 2 label: LABEL_OPTIONAL type: TYPE_BOOL }
    field { name: "status" number: 3 label: LABEL_OPTIONAL type: TYPE_STRING }
    field { name: "error" number: 4 label: LABEL_OPTIONAL type: TYPE_STRING oneof_index: 0 proto3_optional: true }
    field { name: "signal" number: 1000 label: LABEL_OPTIONAL type: TYPE_UINT32 }
    oneof_decl { name: "_error" } }
  nested_type { name: "Keep" } }
message_type { name: "EntryInfo"
  field { name: "name" number: 1 label: LABEL_OPTIONAL type: TYPE_STRING }
  field { name: "type" number: 2 label: LABEL_OPTIONAL type: TYPE_ENUM type_name: ".t.FileType" }
  field { name: "path" number: 3 label: LABEL_OPTIONAL type: TYPE_STRING }
  field { name: "size" number: 4 label: LABEL_OPTIONAL type: TYPE_INT64 }
  field { name: "mode" number: 5 label: LABEL_OPTIONAL type: TYPE_UINT32 }
  field { name: "permissions" number: 6 label: LABEL_OPTIONAL type: TYPE_STRING }
  field { name: "modified_time" number: 9 label: LABEL_OPTIONAL type: TYPE_MESSAGE type_name: ".t.Timestamp" }
  field { name: "symlink_target" number: 10 label: LABEL_OPTIONAL type: TYPE_STRING oneof_index: 0 proto3_optional: true }
  field { name: "uid" number: 1000 label: LABEL_OPTIONAL type: TYPE_UINT32 }
  field { name: "gid" number: 1001 label: LABEL_OPTIONAL type: TYPE_UINT32 }
  oneof_decl { name: "_symlink_target" } }
message_type { name: "Timestamp"
  field { name: "seconds" number: 1 label: LABEL_OPTIONAL type: TYPE_INT64 }
  field { name: "nanos" number: 2 label: LABEL_OPTIONAL type: TYPE_INT32 } }
message_type { name: "ListDirResponse"
  field { name: "entries" number: 1 label: LABEL_REPEATED type: TYPE_MESSAGE type_name: ".t.EntryInfo" } }
message_type { name: "ListDirRequest"
  field { name: "path" number: 1 label: LABEL_OPTIONAL type: TYPE_STRING }
  field { name: "depth" number: 2 label: LABEL_OPTIONAL type: TYPE_UINT32 } }
message_type { name: "MoveRequest"
  field { name: "source" number: 1 label: LABEL_OPTIONAL type: TYPE_STRING }
  field { name: "destination" number: 2 label: LABEL_OPTIONAL type: TYPE_STRING } }
enum_type { name: "FileType"
  value { name: "FILE_TYPE_UNSPECIFIED" number: 0 } value { name: "FILE_TYPE_FILE" number: 1 }
  value { name: "FILE_TYPE_DIRECTORY" number: 2 } value { name: "FILE_TYPE_SYMLINK" number: 3 } }
`

func loadSchema(t *testing.T) protoreflect.FileDescriptor {
	t.Helper()
	var fd descriptorpb.FileDescriptorProto
	if err := prototext.Unmarshal([]byte(schema), &fd); err != nil {
		t.Fatal(err)
	}
	file, err := protodesc.NewFile(&fd, nil)
	if err != nil {
		t.Fatal(err)
	}
	return file
}

type message interface {
	Append([]byte) []byte
	Unmarshal([]byte) error
}

// Each message is written by one codec and read by the other, both ways.
func TestCompatibleWithProtobuf(t *testing.T) {
	file := loadSchema(t)
	start := func(e ProcessEvent) *StartResponse { return &StartResponse{Event: e} }
	entry := EntryInfo{
		Name: "n", Type: FileTypeSymlink, Path: "/p/n", Size: 1 << 40, Mode: 0o755,
		ModifiedTime: Timestamp{Seconds: -5, Nanos: 7}, SymlinkTarget: "t", UID: 1000, GID: 1<<32 - 1,
	}
	long := string(make([]byte, 300))
	tests := []struct {
		name string
		ours message
		text string // what protobuf sees
		into message
	}{
		{"StartRequest", &StartRequest{Process: ProcessConfig{Cmd: "sh", Args: []string{"", "-c", "\x01" + long},
			Envs: map[string]string{"A": "1", "B": ""}, Cwd: "/w"}, Tag: "t", NoStdin: true, EndGroup: true},
			`process{cmd:"sh" args:"" args:"-c" args:"\x01` + zeroEscapes(300) + `" envs{key:"A" value:"1"} envs{key:"B" value:""} cwd:"/w"} tag:"t" stdin:false end_group:true`, &StartRequest{}},
		{"StartRequest", &StartRequest{}, `process{}`, &StartRequest{}},
		{"StartRequest", &StartRequest{Process: ProcessConfig{Cmd: "sh"}, PTY: &PTY{Cols: 80, Rows: 24}, Tag: "t"},
			`process{cmd:"sh"} pty{size{cols:80 rows:24}} tag:"t"`, &StartRequest{}},
		{"UpdateRequest", &UpdateRequest{Process: ProcessSelector{Tag: "t"}, PTY: &PTY{Cols: 1, Rows: 65535}},
			`process{tag:"t"} pty{size{cols:1 rows:65535}}`, &UpdateRequest{}},
		{"SendSignalRequest", &SendSignalRequest{Process: ProcessSelector{PID: 5}, Signal: 9, Number: 64, Group: true},
			`process{pid:5} signal:9 number:64 group:true`, &SendSignalRequest{}},
		{"SendSignalRequest", &SendSignalRequest{Process: ProcessSelector{Tag: "x"}}, `process{tag:"x"}`, &SendSignalRequest{}},
		{"SendInputRequest", &SendInputRequest{Process: ProcessSelector{PID: 5}, Input: ProcessInput{Stdin: []byte("i")}},
			`process{pid:5} input{stdin:"i"}`, &SendInputRequest{}},
		{"StreamInputRequest", &StreamInputRequest{Data: ProcessInput{PTY: []byte("\x03")}}, `data{input{pty:"\x03"}}`, &StreamInputRequest{}},
		{"StreamInputRequest", &StreamInputRequest{Data: ProcessInput{Stdin: []byte("i")}}, `data{input{stdin:"i"}}`, &StreamInputRequest{}},
		{"ListResponse", &ListResponse{Processes: []ProcessInfo{{Config: ProcessConfig{Cmd: "c"}, PID: 1, Tag: "t"}, {PID: 2}}},
			`processes{config{cmd:"c"} pid:1 tag:"t"} processes{config{} pid:2}`, &ListResponse{}},
		{"StartResponse", start(ProcessEvent{Start: &StartEvent{PID: 70000}}), `event{start{pid:70000}}`, &StartResponse{}},
		{"StartResponse", start(ProcessEvent{Data: &DataEvent{Stdout: []byte("o")}}), `event{data{stdout:"o"}}`, &StartResponse{}},
		{"StartResponse", start(ProcessEvent{Data: &DataEvent{Stderr: []byte("\xff")}}), `event{data{stderr:"\xff"}}`, &StartResponse{}},
		{"StartResponse", start(ProcessEvent{Data: &DataEvent{PTY: []byte("\x1b[m")}}), `event{data{pty:"\x1b[m"}}`, &StartResponse{}},
		{"StartResponse", start(ProcessEvent{Ended: true}), `event{ended{}}`, &StartResponse{}},
		{"StartResponse", start(ProcessEvent{KeepAlive: true}), `event{keepalive{}}`, &StartResponse{}},
		{"StartResponse", start(ProcessEvent{End: &EndEvent{ExitCode: -1, Status: "s", Error: "e", Signal: 9}}),
			`event{end{exit_code:-1 status:"s" error:"e" signal:9}}`, &StartResponse{}},
		{"StartResponse", start(ProcessEvent{End: &EndEvent{ExitCode: 255, Exited: true}}), `event{end{exit_code:255 exited:true}}`, &StartResponse{}},
		{"ListDirResponse", &ListDirResponse{Entries: []EntryInfo{entry, {}}},
			`entries{name:"n" type:FILE_TYPE_SYMLINK path:"/p/n" size:1099511627776 mode:493 modified_time{seconds:-5 nanos:7}
			 symlink_target:"t" uid:1000 gid:4294967295} entries{modified_time{}}`, &ListDirResponse{}},
		{"ListDirRequest", &ListDirRequest{Path: "/", Depth: 3}, `path:"/" depth:3`, &ListDirRequest{}},
		{"MoveRequest", &MoveRequest{Source: "a", Destination: "b"}, `source:"a" destination:"b"`, &MoveRequest{}},
	}
	for _, tt := range tests {
		desc := file.Messages().ByName(protoreflect.Name(tt.name))
		want, got := dynamicpb.NewMessage(desc), dynamicpb.NewMessage(desc)
		if err := prototext.Unmarshal([]byte(tt.text), want); err != nil {
			t.Fatalf("%s: %v", tt.name, err)
		}
		if err := proto.Unmarshal(tt.ours.Append(nil), got); err != nil || !proto.Equal(got, want) {
			t.Errorf("%s: protobuf reads %v (%v), want %v", tt.name, got, err, want)
		}
		theirs, err := proto.MarshalOptions{Deterministic: true}.Marshal(want)
		if err != nil {
			t.Fatal(err)
		}
		if err := tt.into.Unmarshal(theirs); err != nil {
			t.Errorf("%s: reading protobuf's: %v", tt.name, err)
		} else if d := cmp.Diff(tt.ours, tt.into); d != "" {
			t.Errorf("%s: from protobuf's bytes (-want +got):\n%s", tt.name, d)
		}
	}
}

func zeroEscapes(n int) (s string) {
	for range n {
		s += `\000`
	}
	return s
}

// A field that E2B has or will have, and we do not, is skipped.
func TestUnknownFieldsAreSkipped(t *testing.T) {
	b := (&MoveRequest{Source: "a"}).Append(nil)
	b = appendString(b, 77, "later")
	b = appendUint(b, 78, 1<<60)
	b = append(appendTag(b, 79, typeFixed64), 1, 2, 3, 4, 5, 6, 7, 8)
	b = append(appendTag(b, 80, typeFixed32), 1, 2, 3, 4)
	b = appendString(b, 2, "b")
	var m MoveRequest
	if err := m.Unmarshal(b); err != nil || m.Source != "a" || m.Destination != "b" {
		t.Errorf("%+v %v", m, err)
	}
}
