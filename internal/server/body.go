package server

import (
	"bytes"
	"errors"
	"fmt"
	"hash"
	"io"
	"mime"
	"net/http"
	"os"
	"slices"
	"strings"
	"sync"
	"time"

	"tranca"
	"tranca/internal/api"
)

// slowest is how long a JSON body may take as a whole.
const slowest = 5 * time.Minute

// budget bounds the bytes that all requests together keep. Safe for concurrent
// use.
type budget struct {
	mu   sync.Mutex
	used int64
	most int64
}

func (b *budget) take(n int64) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.used+n > b.most {
		return api.Errorf(api.CodeBusy, "the bodies of other requests fill the server's memory for them (%d bytes)", b.most)
	}
	b.used += n
	return nil
}

func (b *budget) give(n int64) {
	b.mu.Lock()
	b.used -= n
	b.mu.Unlock()
}

// body reads the body of a request. It gives the client a time in which to
// send something and remembers why it broke. Read is for one goroutine at a
// time.
type body struct {
	io.ReadCloser
	rc     *http.ResponseController
	length int64
	stall  time.Duration
	budget *budget

	mu      sync.Mutex
	n       int64
	kept    int64 // bytes that count against the budget
	keep    bool  // what is read is kept
	patient bool  // the client may pause
	until   time.Time
	ended   bool
	left    bool // the handler has returned, or is about to
	failed  error
	hash    hash.Hash // of what is kept, where somebody wants to know
}

func newBody(r *http.Request, rc *http.ResponseController, stall time.Duration, b *budget) *body {
	return &body{
		ReadCloser: r.Body, rc: rc, length: r.ContentLength, stall: stall, budget: b,
		ended: r.Body == nil || r.Body == http.NoBody,
	}
}

// Read implements [io.Reader].
func (b *body) Read(p []byte) (int, error) {
	if err := b.begin(); err != nil {
		return 0, err
	}
	n, err := b.ReadCloser.Read(p)
	return n, b.took(p[:n], err)
}

// begin sets the time of one read.
func (b *body) begin() error {
	b.mu.Lock()
	defer b.mu.Unlock()
	switch {
	case b.ended:
		return io.EOF
	case b.left:
		return http.ErrBodyReadAfterClose
	case b.failed != nil:
		return b.failed
	case b.patient:
		_ = b.rc.SetReadDeadline(time.Time{})
		return nil
	}
	deadline := time.Now().Add(b.stall)
	if !b.until.IsZero() && b.until.Before(deadline) {
		deadline = b.until
	}
	_ = b.rc.SetReadDeadline(deadline)
	return nil
}

// took notes what a read gave.
func (b *body) took(p []byte, err error) error {
	n := int64(len(p))
	b.mu.Lock()
	defer b.mu.Unlock()
	b.n += n
	if b.keep && n > 0 {
		if full := b.budget.take(n); full != nil {
			b.failed = full
			return full
		}
		b.kept += n
		if b.hash != nil {
			b.hash.Write(p)
		}
	}
	if err == nil {
		return nil
	}
	if !b.left {
		// From here on the server itself listens for the client's end.
		_ = b.rc.SetReadDeadline(time.Time{})
	}
	if errors.Is(err, io.EOF) && !errors.Is(err, io.ErrUnexpectedEOF) {
		b.ended = true
		return io.EOF
	}
	b.failed = bodyError(err)
	return b.failed
}

func bodyError(err error) error {
	var tooLarge *http.MaxBytesError
	switch {
	case errors.As(err, &tooLarge):
		return api.Errorf(api.CodeTooLarge, "the body is larger than %d bytes", tooLarge.Limit)
	case errors.Is(err, os.ErrDeadlineExceeded):
		return api.Errorf(api.CodeTimeout, "the body did not come: the server no longer waits for it")
	}
	return api.Errorf(api.CodeInvalid, "the body broke off: %v", err)
}

// fault returns why the body broke, or nil.
func (b *body) fault() error {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.failed
}

// wait lets the client pause from now on, as one does that types.
func (b *body) wait() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.patient, b.keep, b.until = true, false, time.Time{}
}

// remember counts what is read against the budget.
func (b *body) remember() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.keep, b.until = true, time.Now().Add(slowest)
}

// free gives back what counted against the budget.
func (b *body) free() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.budget.give(b.kept)
	b.kept, b.keep = 0, false
}

// leave lets go of a body that was not read to its end: the server reads a
// little more of it, but not for long, and less long than an answer may take
// to be written.
func (b *body) leave() {
	b.mu.Lock()
	defer b.mu.Unlock()
	if !b.ended && !b.left {
		_ = b.rc.SetReadDeadline(time.Now().Add(min(drainTime, b.stall/4)))
	}
	b.left = true
}

// whole reports whether everything of a body of known length was read.
func (b *body) whole() bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.ended || b.length >= 0 && b.n == b.length
}

// digest returns a digest of what was kept.
func (b *body) digest() []byte {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.hash.Sum(nil)
}

// checkMedia refuses a body of a type that the call does not take, and one
// where it takes none.
func (c *call) checkMedia() error {
	spec, length := c.route.Body, c.r.ContentLength
	if spec == nil {
		if length != 0 && !c.body.ended {
			return api.Errorf(api.CodeInvalid, "the call takes no body")
		}
		return nil
	}
	taken := mediaTypes(spec.JSON != nil, spec.Media)
	text := c.r.Header.Get("Content-Type")
	if text == "" {
		if spec.JSON == nil || length == 0 {
			return nil
		}
		return api.Errorf(api.CodeMediaType, "there is no header Content-Type; the body is one of: %s", strings.Join(taken, ", "))
	}
	media, params, err := mime.ParseMediaType(text)
	if charset := params["charset"]; err == nil && charset != "" && !strings.EqualFold(charset, "utf-8") {
		return api.Errorf(api.CodeMediaType, "the body is in charset %.40q: want utf-8", charset)
	}
	if err != nil || !slices.Contains(taken, media) {
		return api.Errorf(api.CodeMediaType, "the body is said to be %.100q: want one of: %s", text, strings.Join(taken, ", "))
	}
	c.media = media
	return nil
}

func mediaTypes(json bool, others []string) []string {
	if json {
		return append([]string{api.TypeJSON}, others...)
	}
	return others
}

// frames reports whether the body is one of frames.
func (c *call) frames() bool { return c.media == api.TypeFrames }

// raw reads the whole JSON body.
func (c *call) raw() ([]byte, error) {
	most := c.route.Body.Most
	if c.body.length > most {
		return nil, api.Errorf(api.CodeTooLarge, "the body has %d bytes: at most %d are taken", c.body.length, most)
	}
	c.body.remember()
	var buf bytes.Buffer
	if c.body.length > 0 {
		buf.Grow(int(min(c.body.length+bytes.MinRead, 1<<20)))
	}
	n, err := buf.ReadFrom(io.LimitReader(c.body, most+1))
	if err != nil {
		return nil, err
	}
	if n > most {
		return nil, api.Errorf(api.CodeTooLarge, "the body is larger than %d bytes", most)
	}
	return buf.Bytes(), nil
}

// decode reads the JSON body into a request.
func (c *call) decode(into any) error {
	b, err := c.raw()
	if err != nil {
		return err
	}
	return c.decodeRaw(b, into)
}

func (c *call) decodeRaw(b []byte, into any) error {
	if len(b) == 0 {
		if c.route.Body.Optional {
			return nil
		}
		return fmt.Errorf("%w: the body is empty: want a JSON object", tranca.ErrInvalid)
	}
	return api.Decode(b, into)
}
