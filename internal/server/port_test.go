package server

import (
	"bufio"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"tranca/internal/api"
)

// upgrade asks for a port and returns the connection, after more was sent
// ahead.
func (w *world) upgrade(path, ahead string) (*rawConn, *http.Response) {
	w.t.Helper()
	c := w.dial()
	c.write("GET " + path + " HTTP/1.1\r\nHost: t\r\nConnection: keep-alive, Upgrade\r\nUpgrade: " + api.UpgradePort + "\r\n\r\n" + ahead)
	resp, err := http.ReadResponse(c.r, nil)
	if err != nil {
		w.t.Fatal(err)
	}
	return c, resp
}

func TestPort(t *testing.T) {
	w := start(t)
	box := w.create()
	path := w.launch(box, api.StartRequest{Args: []string{"echo", "8080"}})
	eventually(t, "it listens", func() bool {
		return strings.Contains(string(w.want(200, "GET", path+"/output?follow=false", nil).body), "ready")
	})
	c, resp := w.upgrade(box+"/ports/8080", "sent ahead ")
	if resp.StatusCode != 101 || resp.Header.Get("Upgrade") != api.UpgradePort || resp.Header.Get(api.HeaderRequestID) == "" {
		t.Fatalf("%+v", resp)
	}
	c.write("and after")
	if err := c.Conn.(*net.UnixConn).CloseWrite(); err != nil {
		t.Fatal(err)
	}
	if got, err := io.ReadAll(c.r); err != nil || string(got) != "sent ahead and after" {
		t.Errorf("%q, %v", got, err)
	}
	for target, status := range map[string]int{
		"/ports/8081": 404, "/ports/0": 400, "/ports/65536": 400, "/ports/x": 400, "/ports/-1": 400,
	} {
		if _, resp := w.upgrade(box+target, ""); resp.StatusCode != status {
			t.Errorf("%s: %s", target, resp.Status)
		}
	}
	if p := w.want(400, "GET", box+"/ports/8080", nil).problem(t); !strings.Contains(p.Detail, "Upgrade") {
		t.Errorf("%+v", p)
	}
}

// TestPortEnds shows that connections end with their sandbox, and with the
// server.
func TestPortEnds(t *testing.T) {
	w := start(t)
	var open []*rawConn
	var boxes []string
	for range 2 {
		box := w.create()
		path := w.launch(box, api.StartRequest{Args: []string{"echo", "1"}})
		eventually(t, "it listens", func() bool {
			return strings.Contains(string(w.want(200, "GET", path+"/output?follow=false", nil).body), "ready")
		})
		c, resp := w.upgrade(box+"/ports/1", "")
		if resp.StatusCode != 101 {
			t.Fatal(resp.Status)
		}
		open, boxes = append(open, c), append(boxes, box)
	}
	w.want(204, "DELETE", boxes[0], nil)
	open[0].closed()
	if err := w.stop(); err != nil {
		t.Error(err)
	}
	open[1].closed()
}

// TestUnreadPortEnds shows that connections of which an end takes nothing stay no
// longer than their sandbox, and not for ever in one that lives.
func TestUnreadPortEnds(t *testing.T) {
	for name, tc := range map[string]struct {
		byProgram, goes bool
		patience        time.Duration
	}{
		"client, sandbox ends":  {false, false, time.Hour},
		"program, sandbox ends": {true, false, time.Hour},
		"client, goes on":       {false, false, 20 * time.Millisecond},
		"program, client gone":  {true, true, 20 * time.Millisecond},
	} {
		t.Run(name, func(t *testing.T) {
			outer, client := net.Pipe()
			defer client.Close()
			inner, program := net.Pipe()
			defer program.Close()
			over, done := make(chan struct{}), make(chan struct{})
			go func() {
				bridge(outer, bufio.NewReader(outer), portConn{inner}, tc.patience, over)
				close(done)
			}()
			from := program
			if tc.byProgram {
				from = client
			}
			if _, err := from.Write([]byte("never read")); err != nil {
				t.Fatal(err)
			}
			if tc.goes {
				client.Close()
			}
			if tc.patience == time.Hour {
				close(over)
			}
			<-done
		})
	}
}

// TestHalfOpen shows that a connection of which nothing is heard any more does
// not stay for ever.
func TestHalfOpen(t *testing.T) {
	outer, client := net.Pipe()
	inner, program := net.Pipe()
	defer program.Close()
	client.Close() // as one that has gone
	done := make(chan struct{})
	go func() {
		bridge(outer, bufio.NewReader(outer), portConn{inner}, 20*time.Millisecond, nil)
		close(done)
	}()
	<-done
}

// portConn is a connection of which the other end never hears of an end.
type portConn struct{ net.Conn }

func (portConn) CloseWrite() error { return nil }
