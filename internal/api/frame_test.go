package api

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"slices"
	"strings"
	"testing"
	"testing/iotest"
	"unicode/utf8"

	"pgregory.net/rapid"

	"tranca"
)

// piece is a piece of output.
type piece struct {
	stderr bool
	data   []byte
}

func pieces() *rapid.Generator[[]piece] {
	return rapid.SliceOfN(rapid.Custom(func(t *rapid.T) piece {
		return piece{rapid.Bool().Draw(t, "stderr"), rapid.SliceOfN(rapid.Byte(), 0, 300).Draw(t, "data")}
	}), 0, 20)
}

// TestOutputComesBack shows that output is the same on the other side, in both
// forms of a stream, however it is cut on the way.
func TestOutputComesBack(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		all := pieces().Draw(t, "pieces")
		var want [2]bytes.Buffer
		var frames, lines bytes.Buffer
		ff, ll := NewEventWriter(&frames, true, nil), NewEventWriter(&lines, false, nil)
		for _, p := range all {
			if err := errors.Join(ff.Output(p.stderr, p.data), ll.Output(p.stderr, p.data)); err != nil {
				t.Fatal(err)
			}
			want[index(p.stderr)].Write(p.data)
		}
		var byFrames, byLines [2]bytes.Buffer
		var buf []byte
		for src := iotest.OneByteReader(&frames); ; {
			ev, data, err := ReadFrame(src, &buf)
			if err == io.EOF {
				break
			}
			if err != nil {
				t.Fatal(err)
			}
			byFrames[index(ev.Type == EventStderr)].Write(data)
		}
		for line := range bytes.Lines(lines.Bytes()) {
			var ev Event
			if err := json.Unmarshal(line, &ev); err != nil {
				t.Fatal(err)
			}
			data, err := ev.Output()
			if err != nil {
				t.Fatal(err)
			}
			byLines[index(ev.Type == EventStderr)].Write(data)
		}
		for i := range want {
			if !bytes.Equal(byFrames[i].Bytes(), want[i].Bytes()) || !bytes.Equal(byLines[i].Bytes(), want[i].Bytes()) {
				t.Fatalf("stream %d: %q came back as %q and %q", i, want[i].Bytes(), byFrames[i].Bytes(), byLines[i].Bytes())
			}
		}
	})
}

func index(stderr bool) int {
	if stderr {
		return 1
	}
	return 0
}

// TestLargeOutput shows that no event holds more than its bound.
func TestLargeOutput(t *testing.T) {
	var b bytes.Buffer
	if err := NewEventWriter(&b, true, nil).Output(false, make([]byte, 2*MaxData+1)); err != nil {
		t.Fatal(err)
	}
	var sizes []int
	var buf []byte
	for {
		_, data, err := ReadFrame(&b, &buf)
		if err != nil {
			break
		}
		sizes = append(sizes, len(data))
	}
	if len(sizes) != 3 || sizes[0] != MaxData || sizes[2] != 1 {
		t.Errorf("%v", sizes)
	}
}

// broken fails from some write on.
type broken struct{ left int }

func (b *broken) Write(p []byte) (int, error) {
	if b.left--; b.left < 0 {
		return 0, io.ErrClosedPipe
	}
	return len(p), nil
}

// TestWriterStaysBroken shows that nothing is written after a write that
// failed, of which a part may have gone out.
func TestWriterStaysBroken(t *testing.T) {
	w := NewEventWriter(&broken{1}, true, nil)
	for i, want := range []error{nil, io.ErrClosedPipe, io.ErrClosedPipe} {
		if err := w.Output(false, []byte("x")); !errors.Is(err, want) {
			t.Errorf("write %d: %v", i, err)
		}
	}
	if err := w.Event(Event{Type: EventKeepAlive}); !errors.Is(err, io.ErrClosedPipe) {
		t.Error(err)
	}
	large := NewEventWriter(io.Discard, true, nil)
	if err := large.Event(Event{Type: EventError, Data: strings.Repeat("x", MaxFrame)}); !errors.Is(err, tranca.ErrInvalid) {
		t.Error(err)
	}
}

func TestBadFrames(t *testing.T) {
	for name, tc := range map[string]struct {
		text string
		want error
	}{
		"nothing":       {"", io.EOF},
		"half a head":   {"o\x00", io.ErrUnexpectedEOF},
		"half a frame":  {"o\x00\x00\x00\x02x", io.ErrUnexpectedEOF},
		"no payload":    {"o\x00\x00\x00\x02", io.ErrUnexpectedEOF},
		"too large":     {"o\x01\x00\x00\x01", tranca.ErrProtocol},
		"huge":          {"o\xff\xff\xff\xff", tranca.ErrProtocol},
		"unknown kind":  {"x\x00\x00\x00\x00", tranca.ErrProtocol},
		"no JSON":       {"j\x00\x00\x00\x01{", tranca.ErrProtocol},
		"another event": {"j\x00\x00\x00\x02[]", tranca.ErrProtocol},
	} {
		var buf []byte
		if _, _, err := ReadFrame(strings.NewReader(tc.text), &buf); !errors.Is(err, tc.want) {
			t.Errorf("%s: %v, want %v", name, err, tc.want)
		}
		if cap(buf) > 1<<20 {
			t.Errorf("%s: %d bytes of memory for a word", name, cap(buf))
		}
	}
}

func TestBadOutput(t *testing.T) {
	for _, ev := range []Event{{Data: "x"}, {Data: "!", Encoding: tranca.EncodingBase64}, {Data: "x", Encoding: "latin1"}} {
		if b, err := ev.Output(); !errors.Is(err, tranca.ErrProtocol) {
			t.Errorf("%+v: %q, %v", ev, b, err)
		}
	}
}

func stdinFrame(data string) string {
	head := make([]byte, StdinHead)
	PutStdinHead(head, len(data))
	return string(head) + data
}

func TestStdinReader(t *testing.T) {
	large := bytes.Repeat([]byte("0123456789"), 60_000)
	whole := stdinFrame("one")
	for piece := range slices.Chunk(large, MaxData) {
		whole += stdinFrame(string(piece))
	}
	for name, tc := range map[string]struct {
		text string
		want error
	}{
		"body's end":  {whole, nil},
		"empty frame": {whole + "i\x00\x00\x00\x00left", nil},
		"cut head":    {whole + "i\x00", io.ErrUnexpectedEOF},
		"cut frame":   {whole + "i\x00\x00\x00\x09x", io.ErrUnexpectedEOF},
		"other kind":  {whole + "o\x00\x00\x00\x01x", tranca.ErrInvalid},
		"too large":   {whole + "i\xff\x00\x00\x01x", tranca.ErrInvalid},
	} {
		r := NewStdinReader(iotest.HalfReader(strings.NewReader(tc.text)))
		got, err := io.ReadAll(r)
		if !errors.Is(err, tc.want) || !bytes.HasPrefix(got, append([]byte("one"), large...)) {
			t.Errorf("%s: %d bytes, %v", name, len(got), err)
		}
		if _, again := r.Read(make([]byte, 1)); again == nil {
			t.Errorf("%s: it goes on after its end", name)
		}
	}
}

// FuzzFrames reads hostile streams of events, and hostile bodies.
func FuzzFrames(f *testing.F) {
	f.Add([]byte("o\x00\x00\x00\x01xe\x00\x00\x00\x01yj\x00\x00\x00\x14{\"type\":\"keepalive\"}"))
	f.Add([]byte("j\x00\x00\x00\x0c{\"code\":\"x\"}i\x00\x00\x00\x01xi\x00\x00\x00\x00"))
	f.Add([]byte("j\x00\x00\x00\x10{\"code_bytes\":1}c\x00\x00\x00\x01x"))
	f.Fuzz(func(t *testing.T, data []byte) {
		src, buf := bytes.NewReader(data), []byte(nil)
		for {
			ev, out, err := ReadFrame(src, &buf)
			if err != nil {
				if !errors.Is(err, io.EOF) && !errors.Is(err, io.ErrUnexpectedEOF) && !errors.Is(err, tranca.ErrProtocol) {
					t.Errorf("an error of no class: %v", err)
				}
				break
			}
			if len(out) > len(data) {
				t.Errorf("%+v: %d bytes out of %d", ev, len(out), len(data))
			}
		}
		req, err := ReadRun(bytes.NewReader(data))
		if err != nil {
			if !errors.Is(err, tranca.ErrInvalid) && !errors.Is(err, io.EOF) && !errors.Is(err, io.ErrUnexpectedEOF) {
				t.Errorf("an error of no class: %v", err)
			}
			return
		}
		if req.Stdin != nil {
			in, err := io.ReadAll(req.Stdin)
			if len(in) > len(data) || err != nil && !errors.Is(err, tranca.ErrInvalid) && !errors.Is(err, io.ErrUnexpectedEOF) {
				t.Errorf("%d bytes of input, %v", len(in), err)
			}
		}
	})
}

// FuzzEvent reads hostile lines, as a client does.
func FuzzEvent(f *testing.F) {
	f.Add([]byte(`{"type":"stdout","data":"/w==","encoding":"base64"}`))
	f.Add([]byte(`{"type":"result","result":{"encoding":{"stdout":"utf-8","stderr":"utf-8"}},"stdout_bytes":3}`))
	f.Add([]byte(`{"type":"error","error":{"code":"refused","refusal":{"problems":[]}}}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		var ev Event
		if unmarshalEvent(data, &ev) != nil {
			return
		}
		if b, err := ev.Output(); err == nil && ev.Encoding == tranca.EncodingUTF8 && !utf8.Valid(b) {
			t.Errorf("%q is no text", b)
		}
		if ev.Error != nil {
			err := &Error{Problem: *ev.Error}
			if ProblemOf(err).Code != ev.Error.Code || err.Error() == "" && ev.Error.Title != "" {
				t.Errorf("%+v became %+v", ev.Error, ProblemOf(err))
			}
		}
	})
}

// TestHeadedOutput shows that output with room in front becomes the same bytes,
// in both forms, and is let out unless more comes.
func TestHeadedOutput(t *testing.T) {
	for _, frames := range []bool{true, false} {
		for _, data := range []string{"x", "text\n", "\xff\x00", strings.Repeat("y", MaxData+1)} {
			var want, got bytes.Buffer
			flushed := 0
			w := NewEventWriter(&got, frames, func() error { flushed++; return nil })
			headed := append(bytes.Repeat([]byte("h"), OutputHeadroom), data...)
			err := errors.Join(NewEventWriter(&want, frames, nil).Output(true, []byte(data)), w.HeadedOutput(true, headed, false))
			if err != nil || !bytes.Equal(got.Bytes(), want.Bytes()) || flushed == 0 {
				t.Errorf("frames %v, %.10q: %d bytes instead of %d, let out %d times, %v", frames, data, got.Len(), want.Len(), flushed, err)
			}
		}
	}
	flushed := 0
	w := NewEventWriter(io.Discard, true, func() error { flushed++; return nil })
	for i, more := range []bool{true, true, false} {
		if err := w.HeadedOutput(false, make([]byte, OutputHeadroom+1), more); err != nil || flushed != i/2 {
			t.Errorf("piece %d: let out %d times, %v", i, flushed, err)
		}
	}
}
