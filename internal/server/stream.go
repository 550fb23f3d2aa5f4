package server

import (
	"mime"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"tranca/internal/api"
	"tranca/internal/server/listen"
)

// stream is an answer of events. Its header goes out with the first of them, so
// that what fails before is a plain problem. Safe for concurrent use.
type stream struct {
	*api.EventWriter
	c     *call
	media string
	gone  func() // called when the client no longer takes what comes
	plain bool   // the body has no chunks and ends with the connection

	last   atomic.Int64
	mu     sync.Mutex // guards the timer's end
	timer  *time.Timer
	closed bool
}

// newStream makes a stream. Close it.
func (c *call) newStream(media string, plain bool, gone func()) *stream {
	st := &stream{c: c, media: media, gone: gone, plain: plain}
	st.EventWriter = api.NewEventWriter(streamWriter{st}, media == api.TypeFrames, c.w.FlushError)
	st.last.Store(time.Now().UnixNano())
	st.timer = time.AfterFunc(c.s.cfg.KeepAlive, st.tick)
	return st
}

// streamWriter writes what events become. Its caller holds the lock of the
// events.
type streamWriter struct{ st *stream }

func (w streamWriter) Write(p []byte) (int, error) {
	c := w.st.c
	if !c.w.began {
		c.w.Header().Set("Content-Type", w.st.media)
		if !c.body.whole() {
			// Its rest would have to be read before another request.
			c.w.Header().Set("Connection", "close")
		}
		if w.st.plain {
			c.w.Header().Set("Transfer-Encoding", "identity") // net/http's word for it
		}
		c.w.WriteHeader(http.StatusOK)
	}
	n, err := c.w.Write(p)
	w.st.last.Store(time.Now().UnixNano())
	if err != nil {
		w.st.gone()
	}
	return n, err
}

// tick says that the stream is alive where nothing else did.
func (st *stream) tick() {
	st.mu.Lock()
	defer st.mu.Unlock()
	if st.closed {
		return
	}
	every := st.c.s.cfg.KeepAlive
	wait := every - time.Since(time.Unix(0, st.last.Load()))
	if wait <= 0 {
		if st.Event(api.Event{Type: api.EventKeepAlive}) != nil {
			st.gone()
			return
		}
		wait = every
	}
	st.timer.Reset(wait)
}

// end writes an error as the last event, where the stream has begun; otherwise
// it returns it, for the answer to be a problem.
func (st *stream) end(err error) error {
	st.close()
	if err == nil || !st.c.w.began {
		return err
	}
	p := st.c.problemOf(err)
	st.c.code = p.Code
	_ = st.Event(api.Event{Type: api.EventError, Error: &p})
	return nil
}

// close stops the keepalives, waits for one that is under way, and returns.
// Idempotent.
func (st *stream) close() {
	st.mu.Lock()
	defer st.mu.Unlock()
	st.closed = true
	st.timer.Stop()
}

// eventMedia returns the type of stream that the client asks for, or "" where
// it asks for none: the first that it names, at its best quality.
func eventMedia(accept []string) string {
	best, most := "", 0.0
	for _, line := range accept {
		for part := range strings.SplitSeq(line, ",") {
			media, params, err := mime.ParseMediaType(part)
			if err != nil || media != api.TypeEvents && media != api.TypeFrames {
				continue
			}
			quality := 1.0
			if q, ok := params["q"]; ok {
				quality, err = strconv.ParseFloat(q, 64)
			}
			if err == nil && quality > most && quality <= 1 {
				best, most = media, quality
			}
		}
	}
	return best
}

// follow makes a stream of the type that the client asks for, by default lines
// of JSON. telling says that its last event tells its end.
//
// A telling one of frames has no chunks where it goes by the socket: they cost
// three writes for each piece of a flood, and another connection costs little.
func (c *call) follow(telling bool, gone func()) *stream {
	media := eventMedia(c.r.Header.Values("Accept"))
	if media == "" {
		media = api.TypeEvents
	}
	plain := telling && media == api.TypeFrames && listen.PeerOf(c.ctx()).Local
	return c.newStream(media, plain, gone)
}
