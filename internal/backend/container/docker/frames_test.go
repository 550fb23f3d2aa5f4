package docker

import (
	"bufio"
	"bytes"
	"encoding/binary"
	"errors"
	"io"
	"strings"
	"testing"
	"testing/iotest"

	"pgregory.net/rapid"
)

func frame(stream byte, text string) []byte {
	b := binary.BigEndian.AppendUint32([]byte{stream, 0, 0, 0}, uint32(len(text)))
	return append(b, text...)
}

func demuxOf(parts ...[]byte) *demux {
	return newDemux(bufio.NewReader(iotest.OneByteReader(bytes.NewReader(bytes.Join(parts, nil)))))
}

func TestFramesAreTakenApart(t *testing.T) {
	d := demuxOf(frame(1, "he"), frame(2, "died: "), frame(1, ""), frame(1, "llo"), frame(2, "why"))
	out, err := io.ReadAll(d)
	if err != nil || string(out) != "hello" || d.said() != "died: why" {
		t.Errorf("%q %q %v", out, d.said(), err)
	}
}

func TestBrokenFrames(t *testing.T) {
	for name, c := range map[string]struct {
		in   []byte
		want error
	}{
		"nothing":             {nil, nil},
		"cut header":          {frame(1, "")[:5], io.ErrUnexpectedEOF},
		"cut frame":           {frame(1, "hello")[:10], io.ErrUnexpectedEOF},
		"cut standard error":  {frame(2, "hello")[:10], io.ErrUnexpectedEOF},
		"no such stream":      {frame(7, "x"), ErrFrames},
		"input as output":     {frame(0, "x"), ErrFrames},
		"padding is not zero": {[]byte{1, 0, 1, 0, 0, 0, 0, 1, 'x'}, ErrFrames},
		"text without frames": {[]byte("Hello, I am no engine"), ErrFrames},
		"a huge frame":        {[]byte{2, 0, 0, 0, 255, 255, 255, 255, 'x'}, ErrFrames},
	} {
		t.Run(name, func(t *testing.T) {
			d := demuxOf(c.in)
			_, err := io.ReadAll(d)
			if !errors.Is(err, c.want) {
				t.Errorf("%v, want %v", err, c.want)
			}
			if _, again := d.Read(make([]byte, 1)); err != nil && again != err { //nolint:errorlint // the very same
				t.Errorf("then %v", again)
			}
		})
	}
}

func TestStandardErrorIsBounded(t *testing.T) {
	flood := bytes.Repeat(frame(2, strings.Repeat("x", 64<<10)), 17)
	d := newDemux(bufio.NewReader(bytes.NewReader(append(flood, frame(1, "late")...))))
	out, err := io.ReadAll(d)
	if !errors.Is(err, ErrFrames) || len(out) != 0 || len(d.said()) != maxSaid {
		t.Errorf("%d bytes kept, %q, %v", len(d.said()), out, err)
	}
}

func TestAnySplitGivesTheSame(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		var in, want, said []byte
		for range rapid.IntRange(0, 8).Draw(rt, "frames") {
			stream := rapid.SampledFrom([]byte{1, 1, 2}).Draw(rt, "stream")
			text := rapid.StringN(0, 100, 100).Draw(rt, "text")
			in = append(in, frame(stream, text)...)
			if stream == 1 {
				want = append(want, text...)
			} else {
				said = append(said, text...)
			}
		}
		d := newDemux(bufio.NewReader(iotest.HalfReader(bytes.NewReader(in))))
		var out []byte
		for {
			b := make([]byte, rapid.IntRange(1, 64).Draw(rt, "read"))
			n, err := d.Read(b)
			out = append(out, b[:n]...)
			if err == io.EOF {
				break
			}
			if err != nil {
				rt.Fatal(err)
			}
		}
		if !bytes.Equal(out, want) || d.said() != string(said[:min(len(said), maxSaid)]) {
			rt.Errorf("%q %q, want %q %q", out, d.said(), want, said)
		}
	})
}

func FuzzFrames(f *testing.F) {
	f.Add(append(frame(1, "a"), frame(2, "b")...))
	f.Add([]byte{2, 0, 0, 0, 255, 255, 255, 255})
	f.Fuzz(func(t *testing.T, in []byte) {
		d := newDemux(bufio.NewReader(bytes.NewReader(in)))
		out, err := io.ReadAll(d)
		if len(out)+len(d.said()) > len(in) {
			t.Errorf("%d bytes in, %d and %d out", len(in), len(out), len(d.said()))
		}
		if len(d.said()) > maxSaid {
			t.Errorf("%d bytes kept", len(d.said()))
		}
		if err == nil && len(in) > 0 && len(in) < frameHeader {
			t.Error("half a header is no error")
		}
	})
}
