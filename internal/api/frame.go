package api

import (
	"encoding/base64"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"sync"
	"unicode/utf8"

	"tranca"
)

// A frame is a byte that says what it is, a big-endian 32-bit length and so
// many bytes. Events but output are JSON in a frame.
const (
	frameJSON   = 'j'
	frameStdout = 'o'
	frameStderr = 'e'
	frameStdin  = 'i'
	frameCode   = 'c'

	frameHeader = 5
	// MaxFrame bounds the payload of a frame but a request's.
	MaxFrame = 16 << 20
	// MaxRequest bounds the JSON of a run, which holds its code.
	MaxRequest = 80 << 20
	// MaxData bounds the output in one event.
	MaxData = 256 << 10
	// OutputHeadroom is what [EventWriter.HeadedOutput] needs in front of output.
	OutputHeadroom = frameHeader
)

// EventWriter writes a stream of events. Safe for concurrent use.
type EventWriter struct {
	mu     sync.Mutex
	w      io.Writer
	flush  func() error
	frames bool
	buf    []byte
	err    error
}

// NewEventWriter writes frames or lines of JSON to w; flush, where set, is
// called after each event.
func NewEventWriter(w io.Writer, frames bool, flush func() error) *EventWriter {
	return &EventWriter{w: w, frames: frames, flush: flush}
}

// Output writes output of the program, in as many events as it needs. It takes
// all of data or fails.
func (e *EventWriter) Output(stderr bool, data []byte) error {
	for len(data) > 0 {
		n := min(len(data), MaxData)
		if err := e.output(stderr, data[:n]); err != nil {
			return err
		}
		data = data[n:]
	}
	return nil
}

func (e *EventWriter) output(stderr bool, data []byte) error {
	if !e.frames {
		ev := Event{Type: EventStdout, Data: string(data), Encoding: tranca.EncodingUTF8}
		if stderr {
			ev.Type = EventStderr
		}
		if !utf8.Valid(data) {
			ev.Data, ev.Encoding = base64.StdEncoding.EncodeToString(data), tranca.EncodingBase64
		}
		return e.Event(ev)
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.frame(outputFrame(stderr), data)
}

// HeadedOutput writes at most [MaxData] bytes of output that have
// [OutputHeadroom] bytes in front of them, which it overwrites: so they need not
// be copied. With more set something else is written at once, and this may wait
// for it.
func (e *EventWriter) HeadedOutput(stderr bool, headed []byte, more bool) error {
	if !e.frames || len(headed) > OutputHeadroom+MaxData {
		return e.Output(stderr, headed[OutputHeadroom:])
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	headed[0] = outputFrame(stderr)
	binary.BigEndian.PutUint32(headed[1:], uint32(len(headed)-OutputHeadroom))
	return e.put(headed, more)
}

func outputFrame(stderr bool) byte {
	if stderr {
		return frameStderr
	}
	return frameStdout
}

// Event writes any event.
func (e *EventWriter) Event(ev Event) error {
	b, err := marshalEvent(ev)
	if err != nil {
		return err
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.frames {
		return e.frame(frameJSON, b)
	}
	return e.write(append(b, '\n'))
}

func (e *EventWriter) frame(kind byte, payload []byte) error {
	if len(payload) > MaxFrame {
		return fmt.Errorf("%w: a frame of %d bytes: at most %d", tranca.ErrInvalid, len(payload), MaxFrame)
	}
	e.buf = binary.BigEndian.AppendUint32(append(e.buf[:0], kind), uint32(len(payload)))
	e.buf = append(e.buf, payload...)
	return e.write(e.buf)
}

func (e *EventWriter) write(b []byte) error { return e.put(b, false) }

// put writes an event, and lets it out unless more comes.
func (e *EventWriter) put(b []byte, more bool) error {
	if e.err != nil {
		return e.err
	}
	if _, e.err = e.w.Write(b); e.err == nil && e.flush != nil && !more {
		e.err = e.flush()
	}
	return e.err
}

// ReadFrame reads one frame of a stream of events. data is output where stderr
// or stdout say so in ev.Type, and is valid until the next call with the same
// buf. The error is io.EOF at the end of the stream between two frames, and
// wraps [tranca.ErrProtocol] for what is no frame.
func ReadFrame(r io.Reader, buf *[]byte) (ev Event, data []byte, err error) {
	kind, payload, err := readFrame(r, buf, MaxFrame)
	if err != nil {
		return Event{}, nil, err
	}
	switch kind {
	case frameStdout:
		return Event{Type: EventStdout}, payload, nil
	case frameStderr:
		return Event{Type: EventStderr}, payload, nil
	case frameJSON:
		if err := unmarshalEvent(payload, &ev); err != nil {
			return Event{}, nil, fmt.Errorf("%w: an event that can't be read: %w", tranca.ErrProtocol, err)
		}
		return ev, nil, nil
	}
	return Event{}, nil, fmt.Errorf("%w: a frame of kind %q", tranca.ErrProtocol, kind)
}

func readFrame(r io.Reader, buf *[]byte, most uint32) (kind byte, payload []byte, err error) {
	var head [frameHeader]byte
	if _, err := io.ReadFull(r, head[:]); err != nil {
		return 0, nil, err
	}
	n := binary.BigEndian.Uint32(head[1:])
	if n > most {
		return 0, nil, fmt.Errorf("%w: a frame of %d bytes: at most %d", tranca.ErrProtocol, n, most)
	}
	// Room is made as bytes come: a length is only somebody's word.
	b := (*buf)[:0]
	for len(b) < int(n) {
		step := min(int(n)-len(b), max(cap(b)-len(b), len(b), 64<<10))
		b = slices.Grow(b, step)[:len(b)+step]
		if _, err := io.ReadFull(r, b[len(b)-step:]); err != nil {
			if err == io.EOF {
				err = io.ErrUnexpectedEOF
			}
			return 0, nil, err
		}
	}
	*buf = b
	return head[0], b, nil
}

func frameHead(kind byte, n int) []byte {
	return binary.BigEndian.AppendUint32(append(make([]byte, 0, frameHeader), kind), uint32(n))
}

// WriteRequestFrame writes the JSON request that a body of type [TypeFrames]
// begins with, by one call. The error wraps [tranca.ErrInvalid] where it is larger than
// [MaxRequest].
func WriteRequestFrame(w io.Writer, request any) error {
	b, err := json.Marshal(request)
	if err != nil {
		return err
	}
	if len(b) > MaxRequest {
		return fmt.Errorf("%w: a request of %d bytes: at most %d", tranca.ErrInvalid, len(b), MaxRequest)
	}
	_, err = w.Write(append(frameHead(frameJSON, len(b)), b...))
	return err
}

// ReadRequestFrame reads what WriteRequestFrame wrote, undecoded. The error
// wraps [tranca.ErrInvalid] where the body begins with anything else.
func ReadRequestFrame(r io.Reader) ([]byte, error) {
	var buf []byte
	kind, payload, err := readFrame(r, &buf, MaxRequest)
	switch {
	case errors.Is(err, tranca.ErrProtocol):
		return nil, fmt.Errorf("%w: the body begins with no request: %w", tranca.ErrInvalid, err)
	case errors.Is(err, io.EOF):
		return nil, fmt.Errorf("%w: the body is empty: it begins with a frame that holds the request", tranca.ErrInvalid)
	case err == nil && kind != frameJSON:
		return nil, fmt.Errorf("%w: the body begins with a frame of kind %q: want %q, the request", tranca.ErrInvalid, kind, frameJSON)
	}
	return payload, err
}

// StdinReader reads the standard input that follows a request in a body of
// type [TypeFrames], up to an empty frame or the body's end.
type StdinReader struct {
	r    io.Reader
	left uint32
	err  error
}

// NewStdinReader reads from r.
func NewStdinReader(r io.Reader) *StdinReader { return &StdinReader{r: r} }

// Read implements [io.Reader].
func (s *StdinReader) Read(p []byte) (int, error) {
	if s.left == 0 && s.err == nil {
		s.next()
	}
	if s.err != nil {
		return 0, s.err
	}
	n, err := s.r.Read(p[:min(len(p), int(s.left))])
	s.left -= uint32(n)
	if err == io.EOF && s.left > 0 {
		err = io.ErrUnexpectedEOF
	}
	if err != nil && err != io.EOF {
		s.err = err
		return n, err
	}
	return n, nil
}

func (s *StdinReader) next() {
	var head [frameHeader]byte
	if _, s.err = io.ReadFull(s.r, head[:]); s.err != nil {
		return
	}
	s.left = binary.BigEndian.Uint32(head[1:])
	switch {
	case head[0] != frameStdin || s.left > MaxFrame:
		s.err = fmt.Errorf("%w: a frame of kind %q and %d bytes where standard input comes", tranca.ErrInvalid, head[0], s.left)
	case s.left == 0:
		s.err = io.EOF
	}
}
