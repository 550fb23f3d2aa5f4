package server

import (
	"bufio"
	"fmt"
	"net"
	"net/http"
	"time"
)

// answer writes an answer. Each write gives the client a time in which to take
// it; one that takes nothing for so long has gone.
type answer struct {
	http.ResponseWriter
	rc       *http.ResponseController
	stall    time.Duration
	status   int
	n        int64
	began    bool
	hijacked bool
}

func newAnswer(w http.ResponseWriter, stall time.Duration) *answer {
	a := &answer{ResponseWriter: w, rc: http.NewResponseController(w), stall: stall}
	a.push() // an earlier request on this connection may have left its own
	return a
}

func (a *answer) push() {
	// A connection within this process may have no deadlines.
	_ = a.rc.SetWriteDeadline(time.Now().Add(a.stall))
}

// WriteHeader implements [http.ResponseWriter].
func (a *answer) WriteHeader(status int) {
	a.began, a.status = true, status
	a.ResponseWriter.WriteHeader(status)
}

// Write implements [http.ResponseWriter].
func (a *answer) Write(p []byte) (int, error) {
	if !a.began {
		a.began, a.status = true, http.StatusOK
	}
	a.push()
	n, err := a.ResponseWriter.Write(p)
	a.n += int64(n)
	if err != nil {
		err = fmt.Errorf("%w: %w", errClientGone, err) // no fault of the server
	}
	return n, err
}

// FlushError sends what was written so far.
func (a *answer) FlushError() error {
	a.push()
	return a.rc.Flush()
}

// Hijack takes the connection over, without its deadlines.
func (a *answer) Hijack() (net.Conn, *bufio.ReadWriter, error) {
	conn, rw, err := a.rc.Hijack()
	if err == nil {
		a.hijacked = true
		err = conn.SetDeadline(time.Time{})
	}
	return conn, rw, err
}
