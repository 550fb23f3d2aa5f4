package message

import (
	"bytes"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestWatchMessages(t *testing.T) {
	for _, m := range []WatchDirResponse{
		{Start: true}, {Keepalive: true}, {Overflow: true},
		{Filesystem: &FilesystemEvent{Name: "a/b\xff", Type: EventRename}},
		{Filesystem: &FilesystemEvent{}},
	} {
		var got WatchDirResponse
		if err := got.Unmarshal(m.Append(nil)); err != nil || !cmp.Equal(got, m) {
			t.Errorf("%+v was read as %+v: %v", m, got, err)
		}
	}
	req := WatchDirRequest{Path: "/x", Recursive: true}
	var got WatchDirRequest
	// A client of E2B may ask for more: fields 3 and 4.
	b := appendBool(appendBool(req.Append(nil), 3, true), 4, true)
	if err := got.Unmarshal(b); err != nil || got != req {
		t.Errorf("%+v %v", got, err)
	}
}

// The numbers are E2B's, by hand.
func TestWatchNumbers(t *testing.T) {
	for _, tt := range []struct{ got, want []byte }{
		{(&WatchDirRequest{Path: "p", Recursive: true}).Append(nil), []byte{0x0a, 1, 'p', 0x10, 1}},
		{(&WatchDirResponse{Start: true}).Append(nil), []byte{0x0a, 0}},
		{(&WatchDirResponse{Filesystem: &FilesystemEvent{Name: "n", Type: EventRemove}}).Append(nil),
			[]byte{0x12, 5, 0x0a, 1, 'n', 0x10, 3}},
		{(&WatchDirResponse{Keepalive: true}).Append(nil), []byte{0x1a, 0}},
		{(&WatchDirResponse{Overflow: true}).Append(nil), []byte{0xc2, 0x3e, 0}},
	} {
		if !bytes.Equal(tt.got, tt.want) {
			t.Errorf("% x, want % x", tt.got, tt.want)
		}
	}
}

func TestWatchResponseIsOneOf(t *testing.T) {
	for name, b := range map[string][]byte{
		"nothing":       nil,
		"start twice":   {0x0a, 0, 0x0a, 0},
		"two members":   {0x0a, 0, 0x1a, 0},
		"another kind":  {0x08, 1},
		"a cut member":  {0x12, 5, 0x0a},
		"a long name":   appendMessage(nil, 2, func(b []byte) []byte { return appendBytes(b, 1, make([]byte, MaxPath+1)) }),
		"name a number": appendMessage(nil, 2, func(b []byte) []byte { return appendUint(b, 1, 7) }),
	} {
		if err := new(WatchDirResponse).Unmarshal(b); err == nil {
			t.Errorf("%s was taken", name)
		}
	}
}

// FuzzWatch: nothing panics, and what was read is written so that it reads the
// same.
func FuzzWatch(f *testing.F) {
	f.Add([]byte{0x0a, 0})
	f.Add((&WatchDirResponse{Filesystem: &FilesystemEvent{Name: "a/b", Type: EventWrite}}).Append(nil))
	f.Add((&WatchDirRequest{Path: "/x", Recursive: true}).Append(nil))
	f.Fuzz(func(t *testing.T, b []byte) {
		for _, newMessage := range []func() message{
			func() message { return &WatchDirRequest{} }, func() message { return &WatchDirResponse{} },
		} {
			m := newMessage()
			if m.Unmarshal(b) != nil {
				continue
			}
			once := m.Append(nil)
			again := newMessage()
			if err := again.Unmarshal(once); err != nil {
				t.Fatalf("%T: % x was written as % x: %v", m, b, once, err)
			}
			if !bytes.Equal(again.Append(nil), once) {
				t.Fatalf("%T: % x", m, once)
			}
		}
	})
}
