package image

import (
	"bufio"
	"bytes"
	"cmp"
	"context"
	"fmt"
	"io"

	"github.com/klauspost/compress/gzip"
	"github.com/klauspost/compress/zstd"

	"tranca"
)

// maxWindow bounds the memory that a zstd stream may ask for.
const maxWindow = 128 << 20

// compression is how a layer is packed, as its first bytes tell. Media types
// lie, and Docker doesn't look at them either.
type compression int

const (
	plain compression = iota
	gzipped
	zstandard
)

func sniff(head []byte) compression {
	switch {
	case bytes.HasPrefix(head, []byte{0x1f, 0x8b}):
		return gzipped
	case bytes.HasPrefix(head, []byte{0x28, 0xb5, 0x2f, 0xfd}):
		return zstandard
	}
	return plain
}

// decompress returns a reader of what is in r. Close frees what it holds, and
// leaves r.
func decompress(r io.Reader) (io.ReadCloser, compression, error) {
	b := bufio.NewReaderSize(r, 128<<10)
	head, err := b.Peek(4)
	if err != nil && err != io.EOF {
		return nil, plain, err
	}
	switch kind := sniff(head); kind {
	case gzipped:
		z, err := gzip.NewReader(b)
		if err != nil {
			return nil, kind, fmt.Errorf("%w: a layer can't be decompressed: %w", tranca.ErrInvalid, err)
		}
		return z, kind, nil
	case zstandard:
		z, err := zstd.NewReader(b, zstd.WithDecoderConcurrency(1), zstd.WithDecoderMaxWindow(maxWindow))
		if err != nil {
			return nil, kind, fmt.Errorf("%w: a layer can't be decompressed: %w", tranca.ErrInvalid, err)
		}
		return z.IOReadCloser(), kind, nil
	}
	return io.NopCloser(b), plain, nil
}

// ahead reads in a goroutine of its own, so that decompressing and writing go on
// at once. It reads at most so many bytes; more is an error.
type ahead struct {
	ctx   context.Context // the caller's
	full  chan piece
	empty chan []byte
	stop  context.CancelFunc
	done  chan struct{}
	cur   []byte
	back  []byte // the whole of cur, to be given back
	err   error
}

type piece struct {
	b   []byte
	err error
}

const (
	aheadPieces = 8
	aheadSize   = 256 << 10
)

func readAhead(ctx context.Context, r io.Reader, most int64) *ahead {
	running, stop := context.WithCancel(ctx)
	a := &ahead{
		ctx:  ctx,
		full: make(chan piece, aheadPieces), empty: make(chan []byte, aheadPieces),
		stop: stop, done: make(chan struct{}),
	}
	for range aheadPieces {
		a.empty <- make([]byte, aheadSize)
	}
	go a.run(running, r, most)
	return a
}

func (a *ahead) run(ctx context.Context, r io.Reader, most int64) {
	defer close(a.done)
	defer close(a.full)
	for {
		var b []byte
		select {
		case b = <-a.empty:
		case <-ctx.Done():
			return
		}
		n, err := io.ReadFull(r, b)
		if most -= int64(n); most < 0 {
			err = fmt.Errorf("%w: a layer is longer than it may be when it is decompressed", tranca.ErrInvalid)
		}
		if err == io.ErrUnexpectedEOF {
			err = io.EOF
		}
		select {
		case a.full <- piece{b[:n], err}:
		case <-ctx.Done():
			return
		}
		if err != nil {
			return
		}
	}
}

func (a *ahead) Read(b []byte) (int, error) {
	for len(a.cur) == 0 {
		if a.err != nil {
			return 0, a.err
		}
		if a.back != nil {
			a.empty <- a.back[:aheadSize]
			a.back = nil
		}
		p, ok := <-a.full
		if !ok {
			a.err = cmp.Or(context.Cause(a.ctx), context.Canceled)
			return 0, a.err
		}
		a.cur, a.back, a.err = p.b, p.b, p.err
	}
	n := copy(b, a.cur)
	a.cur = a.cur[n:]
	return n, nil
}

// close ends the goroutine, and waits for it.
func (a *ahead) close() {
	a.stop()
	<-a.done
}
