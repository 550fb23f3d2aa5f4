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
	// when the server stops. Both ends are: a program that takes nothing would
	// hold up the server otherwise.
	breakOff := func() { conn.Close(); inner.Close() }
	defer context.AfterFunc(c.s.stopping, breakOff)()
	head := "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: " + api.UpgradePort +
		"\r\n" + api.HeaderRequestID + ": " + c.id + "\r\n\r\n"
	if _, err := io.WriteString(conn, head); err != nil {
		return nil // nobody is there
	}
	c.w.n, c.body.n = bridge(conn, rw.Reader, inner, halfOpen, s.Done())
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
// carry nothing, and how long either end may take nothing of what waits for it:
// the client may as well have gone, which can't be told apart.
const halfOpen = 5 * time.Minute

// bridge copies both ways until both have ended, or one broke, or over is closed:
// of the end of a sandbox, who neither reads nor sends hears nothing else. What
// the client has sent ahead stands in early.
func bridge(conn net.Conn, early *bufio.Reader, inner tranca.PortConn, halfOpen time.Duration, over <-chan struct{}) (out, in int64) {
	breakOff := func() { conn.Close(); inner.Close() }
	down, up := &progress{Writer: conn}, &progress{Writer: inner}
	defer watchBridge(down, up, halfOpen, over, breakOff)()
	var both sync.WaitGroup
	both.Go(func() {
		_, err := copyAll(down, inner)
		if err == nil {
			err = closeWrite(conn)
		}
		if err != nil {
			breakOff()
		}
	})
	_, err := copyAll(up, early)
	if err == nil {
		err = inner.CloseWrite()
	}
	if err != nil {
		breakOff()
	}
	up.ended.Store(true)
	both.Wait()
	return down.n.Load(), up.n.Load()
}

// progress counts what is written in one direction.
type progress struct {
	io.Writer
	n       atomic.Int64
	writing atomic.Bool
	ended   atomic.Bool
}

func (p *progress) Write(b []byte) (int, error) {
	p.writing.Store(true)
	defer p.writing.Store(false)
	n, err := p.Writer.Write(b)
	p.n.Add(int64(n))
	return n, err
}

// watchBridge breaks a connection off when over is closed, or when nothing went
// for so long though an end has something to take, or the client has ended its
// side. It goes on until stop is called.
func watchBridge(down, up *progress, halfOpen time.Duration, over <-chan struct{}, breakOff func()) (stop func()) {
	ended := make(chan struct{})
	go func() {
		tick := time.NewTicker(halfOpen)
		defer tick.Stop()
		for last := int64(-1); ; {
			select {
			case <-ended:
				return
			case <-over:
				breakOff()
				return
			case <-tick.C:
			}
			now := down.n.Load() + up.n.Load()
			if now == last && (down.writing.Load() || up.writing.Load() || up.ended.Load()) {
				breakOff()
				return
			}
			last = now
		}
	}()
	return func() { close(ended) }
}

func closeWrite(conn net.Conn) error {
	if w, ok := conn.(interface{ CloseWrite() error }); ok {
		return w.CloseWrite()
	}
	return conn.Close()
}
