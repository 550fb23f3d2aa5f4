package server

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"tranca"
	"tranca/internal/api"
)

func connectPort(c *call) error {
	port, err := strconv.ParseUint(c.r.PathValue("port"), 10, 16)
	if err != nil || port == 0 {
		return fmt.Errorf("%w: port %.40q: want 1 to 65535", tranca.ErrInvalid, c.r.PathValue("port"))
	}
	if !wantsUpgrade(c.r.Header) {
		return api.Errorf(api.CodeInvalid, "a connection to a port has the headers Connection: Upgrade and Upgrade: %s", api.UpgradePort)
	}
	s, err := c.session()
	if err != nil {
		return err
	}
	inner, err := s.Dial(c.ctx(), int(port))
	if err != nil {
		return err
	}
	defer inner.Close()
	conn, rw, err := c.w.Hijack()
	if err != nil {
		return fmt.Errorf("the connection can't be taken over: %w", err)
	}
	defer conn.Close()
	c.w.status = http.StatusSwitchingProtocols
	// The server no longer knows of the connection, so that it is closed here
	// when the server stops.
	defer context.AfterFunc(c.s.stopping, func() { conn.Close() })()
	head := "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: " + api.UpgradePort +
		"\r\n" + api.HeaderRequestID + ": " + c.id + "\r\n\r\n"
	if _, err := io.WriteString(conn, head); err != nil {
		return nil // nobody is there
	}
	c.w.n, c.body.n = bridge(conn, rw.Reader, inner, halfOpen)
	return nil
}

func wantsUpgrade(h http.Header) bool {
	return hasToken(h.Values("Connection"), "upgrade") && hasToken(h.Values("Upgrade"), api.UpgradePort)
}

func hasToken(all []string, want string) bool {
	for _, line := range all {
		for token := range strings.SplitSeq(line, ",") {
			if strings.EqualFold(strings.TrimSpace(token), want) {
				return true
			}
		}
	}
	return false
}

// halfOpen is how long a connection of which the client has ended its side may
// carry nothing: it may as well have gone, which can't be told apart.
const halfOpen = 5 * time.Minute

// bridge copies both ways until both have ended, or one broke. What the client
// has sent ahead stands in early.
func bridge(conn net.Conn, early *bufio.Reader, inner tranca.PortConn, halfOpen time.Duration) (out, in int64) {
	breakOff := func() { conn.Close(); inner.Close() }
	var both sync.WaitGroup
	watched := &progress{Writer: conn}
	both.Go(func() {
		n, err := copyAll(watched, inner)
		out = n
		if err == nil {
			err = closeWrite(conn)
		}
		if err != nil {
			breakOff()
		}
	})
	n, err := copyAll(inner, early)
	in = n
	if err == nil {
		err = inner.CloseWrite()
	}
	if err != nil {
		breakOff()
	}
	stop := watched.expect(halfOpen, breakOff)
	both.Wait()
	stop()
	return out, in
}

// progress counts what is written.
type progress struct {
	io.Writer
	n atomic.Int64
}

func (p *progress) Write(b []byte) (int, error) {
	n, err := p.Writer.Write(b)
	p.n.Add(int64(n))
	return n, err
}

// expect calls f once nothing was written for so long.
func (p *progress) expect(every time.Duration, f func()) (stop func()) {
	over := make(chan struct{})
	go func() {
		tick := time.NewTicker(every)
		defer tick.Stop()
		for last := p.n.Load(); ; {
			select {
			case <-over:
				return
			case <-tick.C:
			}
			if now := p.n.Load(); now != last {
				last = now
				continue
			}
			f()
			return
		}
	}()
	return func() { close(over) }
}

func closeWrite(conn net.Conn) error {
	if w, ok := conn.(interface{ CloseWrite() error }); ok {
		return w.CloseWrite()
	}
	return conn.Close()
}
