package message

import (
	"bytes"
	"strings"
	"testing"
)

func TestBounds(t *testing.T) {
	many := func(n int, f func([]byte) []byte) (b []byte) {
		for range n {
			b = f(b)
		}
		return b
	}
	config := func(b []byte) []byte { return appendBytes(nil, 1, b) }
	tests := []struct {
		name string
		m    interface{ Unmarshal([]byte) error }
		b    []byte
		ok   bool
	}{
		{"arguments", &StartRequest{}, config(many(MaxArgs, func(b []byte) []byte { return appendElement(b, 2, "") })), true},
		{"too many arguments", &StartRequest{}, config(many(MaxArgs+1, func(b []byte) []byte { return appendElement(b, 2, "") })), false},
		{"a long argument", &StartRequest{}, config(appendString(nil, 2, strings.Repeat("x", MaxString+1))), false},
		{"a long program", &StartRequest{}, config(appendString(nil, 1, strings.Repeat("x", MaxPath+1))), false},
		{"a large start", &StartRequest{}, appendString(nil, 99, strings.Repeat("x", MaxStart)), false},
		{"a terminal that is none", &StartRequest{}, appendString(nil, 2, "x"), false},
		{"a terminal without a size", &StartRequest{}, appendElement(nil, 2, ""), true},
		{"a terminal's size as text", &UpdateRequest{}, appendBytes(nil, 2, appendBytes(nil, 1, appendString(nil, 1, "x"))), false},
		{"a long link", &SymlinkRequest{}, appendString(nil, 1, strings.Repeat("x", MaxPath+1)), false},
		{"a port as text", &DialRequest{}, appendString(nil, 1, "80"), false},
		{"output and a terminal's", &StartResponse{}, appendBytes(nil, 1, appendBytes(nil, 2, appendString(appendString(nil, 1, "a"), 3, "b"))), false},
		{"a page", &ListDirResponse{}, many(MaxPage, func(b []byte) []byte { return appendElement(b, 1, "") }), true},
		{"a large page", &ListDirResponse{}, many(MaxPage+1, func(b []byte) []byte { return appendElement(b, 1, "") }), false},
		{"processes", &ListResponse{}, many(MaxProcesses+1, func(b []byte) []byte { return appendElement(b, 1, "") }), false},
		{"a number as text", &PathRequest{}, appendUint(nil, 1, 5), false},
		{"text as a number", &ListDirRequest{}, appendString(nil, 2, "5"), false},
		{"field 0", &Empty{}, []byte{0x02, 0x00}, false},
		{"a group", &Empty{}, []byte{0x0b, 0x0c}, false},
		{"a cut length", &Empty{}, []byte{0x0a, 0x05, 'x'}, false},
		{"a cut varint", &Empty{}, []byte{0x08, 0x80}, false},
		{"a cut fixed64", &Empty{}, []byte{0x09, 1, 2}, false},
		{"a varint too long", &Empty{}, append([]byte{0x08}, bytes.Repeat([]byte{0xff}, 11)...), false},
		{"a length of 2^63", &Empty{}, []byte{0x0a, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x7f}, false},
		{"both outputs", &StartResponse{}, appendBytes(nil, 1, appendBytes(nil, 2, appendString(appendString(nil, 1, "a"), 2, "b"))), false},
		{"neither output", &StartResponse{}, appendBytes(nil, 1, appendBytes(nil, 2, nil)), false},
		{"entry and data", &ReadResponse{}, appendElement(appendElement(nil, 1, ""), 2, "x"), false},
	}
	for _, tt := range tests {
		if err := tt.m.Unmarshal(tt.b); (err == nil) != tt.ok {
			t.Errorf("%s: %v", tt.name, err)
		}
	}
}

// What is written in front of data is what Append writes.
func TestPrefixes(t *testing.T) {
	for _, n := range []int{0, 1, 100, 127, 128, 16383, 16384, 128 << 10, 256<<10 - 64} {
		data := bytes.Repeat([]byte{7}, n)
		var store [MaxDataPrefix]byte
		check := func(name string, prefix, want []byte) {
			t.Helper()
			if got := append(bytes.Clone(prefix), data...); !bytes.Equal(got, want) {
				t.Errorf("%s of %d bytes: prefix % x", name, n, prefix)
			}
		}
		check("stdout", DataPrefix(&store, Stdout, n), (&StartResponse{Event: ProcessEvent{Data: &DataEvent{Stdout: data}}}).Append(nil))
		check("stderr", DataPrefix(&store, Stderr, n), (&StartResponse{Event: ProcessEvent{Data: &DataEvent{Stderr: data}}}).Append(nil))
		check("chunk", ChunkPrefix(&store, n), (&FileChunk{Data: data}).Append(nil))
		check("read", ChunkPrefix(&store, n), (&ReadResponse{Data: data}).Append(nil))
		check("terminal", DataPrefix(&store, Terminal, n), (&StartResponse{Event: ProcessEvent{Data: &DataEvent{PTY: data}}}).Append(nil))
		check("typed", InputPrefix(&store, true, n), (&StreamInputRequest{Data: ProcessInput{PTY: data}}).Append(nil))
		check("input", InputPrefix(&store, false, n), (&StreamInputRequest{Data: ProcessInput{Stdin: data}}).Append(nil))
	}
}

// FuzzMessages: nothing panics, and what was read is written so that it reads
// the same.
func FuzzMessages(f *testing.F) {
	makers := []func() message{
		func() message { return &StartRequest{} }, func() message { return &SendSignalRequest{} },
		func() message { return &SendInputRequest{} }, func() message { return &StreamInputRequest{} },
		func() message { return &CloseStdinRequest{} }, func() message { return &ListResponse{} },
		func() message { return &StartResponse{} }, func() message { return &PathRequest{} },
		func() message { return &MoveRequest{} }, func() message { return &ListDirRequest{} },
		func() message { return &EntryResponse{} }, func() message { return &ListDirResponse{} },
		func() message { return &ReadRequest{} }, func() message { return &ReadResponse{} },
		func() message { return &WriteRequest{} }, func() message { return &FileChunk{} },
		func() message { return &WriteResponse{} }, func() message { return &Empty{} },
	}
	f.Add((&StartRequest{Process: ProcessConfig{Cmd: "sh", Args: []string{"a"}, Envs: map[string]string{"A": "b"}}}).Append(nil))
	f.Add((&StartResponse{Event: ProcessEvent{End: &EndEvent{ExitCode: -1, Signal: 9}}}).Append(nil))
	f.Add((&ListDirResponse{Entries: []EntryInfo{{Name: "x", ModifiedTime: Timestamp{Seconds: -1}}}}).Append(nil))
	f.Fuzz(func(t *testing.T, b []byte) {
		for _, newMessage := range makers {
			m := newMessage()
			if m.Unmarshal(b) != nil {
				continue
			}
			once := m.Append(nil)
			again := newMessage()
			if err := again.Unmarshal(once); err != nil {
				t.Fatalf("%T: % x was written as % x: %v", m, b, once, err)
			}
			if twice := again.Append(nil); !bytes.Equal(once, twice) {
				t.Fatalf("%T: % x, then % x", m, once, twice)
			}
		}
	})
}
