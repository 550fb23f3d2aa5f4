package docker

import (
	"bufio"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"strings"
	"sync"
)

const (
	// frameHeader is one byte for the stream, three of zero, four of length.
	frameHeader = 8
	// readBuffer is what is read at once; a frame may be larger.
	readBuffer = 64 << 10
	// maxSaid is what is kept of standard error.
	maxSaid = 4 << 10
	// maxStderr is how much of it is dropped before the container is taken
	// for one that floods. The guest agent writes nothing to it but its death.
	maxStderr = 1 << 20
)

// The streams of a frame.
const (
	streamStdout = 1
	streamStderr = 2
)

// ErrFrames says that a container's stream is not framed as the API says, or
// that standard error floods.
var ErrFrames = errors.New("attached stream is broken")

// demux takes the frames apart in which an engine hands on a container's
// output. One goroutine reads; said may be called by any.
type demux struct {
	r    *bufio.Reader
	rest uint32 // of the frame that is being read
	seen int    // bytes of standard error
	err  error  // once broken, it stays so

	mu    sync.Mutex
	first strings.Builder
}

func newDemux(r *bufio.Reader) *demux { return &demux{r: r} }

// Read reads standard output. The end of the stream is io.EOF, within a frame
// io.ErrUnexpectedEOF.
func (d *demux) Read(b []byte) (int, error) {
	if len(b) == 0 {
		return 0, nil
	}
	for d.err == nil && d.rest == 0 {
		d.err = d.next()
	}
	if d.err != nil {
		return 0, d.err
	}
	if uint32(len(b)) > d.rest {
		b = b[:d.rest]
	}
	n, err := d.r.Read(b)
	d.rest -= uint32(n)
	if err == io.EOF {
		err = io.ErrUnexpectedEOF
	}
	d.err = err
	return n, err
}

// next reads the header of a frame, and the whole of one of standard error.
func (d *demux) next() error {
	header, err := d.r.Peek(frameHeader)
	if err != nil {
		if len(header) > 0 && err == io.EOF {
			return io.ErrUnexpectedEOF
		}
		return err
	}
	stream, size := header[0], binary.BigEndian.Uint32(header[4:])
	if header[1] != 0 || header[2] != 0 || header[3] != 0 {
		return fmt.Errorf("%w: header % x", ErrFrames, header)
	}
	if _, err := d.r.Discard(frameHeader); err != nil {
		return err
	}
	switch stream {
	case streamStdout:
		d.rest = size
		return nil
	case streamStderr:
		return d.keep(size)
	}
	return fmt.Errorf("%w: frame of stream %d", ErrFrames, stream)
}

// keep keeps the first bytes of standard error and drops the rest.
func (d *demux) keep(size uint32) error {
	if d.seen += int(min(size, maxStderr+1)); d.seen > maxStderr {
		return fmt.Errorf("%w: more than %d bytes on standard error", ErrFrames, maxStderr)
	}
	text := make([]byte, min(size, maxSaid))
	n, err := io.ReadFull(d.r, text)
	d.mu.Lock()
	d.first.Write(text[:min(n, maxSaid-d.first.Len())])
	d.mu.Unlock()
	if err == nil {
		_, err = io.CopyN(io.Discard, d.r, int64(size)-int64(n))
	}
	if err == io.EOF {
		err = io.ErrUnexpectedEOF
	}
	return err
}

func (d *demux) said() string {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.first.String()
}
