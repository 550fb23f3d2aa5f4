package server

import (
	"bufio"
	"io"
	"net"
	"net/http"
	"testing"
	"time"
)

// rawConn is a connection on which a test writes what it likes.
type rawConn struct {
	net.Conn
	t *testing.T
	r *bufio.Reader
}

func (w *world) dial() *rawConn {
	w.t.Helper()
	c, err := net.Dial("unix", w.socket)
	if err != nil {
		w.t.Fatal(err)
	}
	w.t.Cleanup(func() { c.Close() })
	if err := c.SetDeadline(time.Now().Add(30 * time.Second)); err != nil {
		w.t.Fatal(err)
	}
	return &rawConn{c, w.t, bufio.NewReader(c)}
}

func (c *rawConn) write(text string) {
	c.t.Helper()
	if _, err := io.WriteString(c, text); err != nil {
		c.t.Fatal(err)
	}
}

// answer reads one answer whole.
func (c *rawConn) answer() *reply {
	c.t.Helper()
	resp, err := http.ReadResponse(c.r, nil)
	if err != nil {
		c.t.Fatal(err)
	}
	b, err := io.ReadAll(resp.Body)
	if err != nil {
		c.t.Fatal(err)
	}
	return &reply{resp, b}
}

// closed expects that the server ends the connection.
func (c *rawConn) closed() {
	c.t.Helper()
	if b, err := io.ReadAll(c.r); err != nil || len(b) > 0 {
		c.t.Errorf("the connection is not closed: %q, %v", b, err)
	}
}

const strangerRole = "stranger"

// stranger is another user's process: it connects and says what it is told.
func stranger(socket string) {
	c, err := net.Dial("unix", socket)
	if err != nil {
		println("no connection: " + err.Error())
		return
	}
	defer c.Close()
	_, _ = io.WriteString(c, "GET /v1/info HTTP/1.1\r\nHost: t\r\n\r\n")
	resp, err := http.ReadResponse(bufio.NewReader(c), nil)
	if err != nil {
		println("no answer: " + err.Error())
		return
	}
	b, _ := io.ReadAll(resp.Body)
	println(resp.Status + " " + string(b))
}
