// Package served runs `tranca serve` in a process of its own, for the programs
// that measure and try it.
package served

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"syscall"
	"time"

	"tranca/client"
)

// stopTime is how long a server may take to end by itself.
const stopTime = 60 * time.Second

// Server is a process of `tranca serve`. Safe for concurrent use.
type Server struct {
	cmd    *exec.Cmd
	socket string
	log    tail
	done   chan struct{}
	err    error // of the end; set before done is closed
	once   sync.Once
	late   error
}

// tail keeps the last bytes of a log.
type tail struct {
	mu   sync.Mutex
	text bytes.Buffer
}

// Write implements [io.Writer].
func (t *tail) Write(p []byte) (int, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.text.Write(p)
	if over := t.text.Len() - 64<<10; over > 0 {
		t.text.Next(over)
	}
	return len(p), nil
}

func (t *tail) String() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.text.String()
}

// policy is the server's: the backend whose figures these are.
const policy = "version: 1\nfloor: process\n"

// Start starts a server at a socket, with further flags, and returns when it
// answers. Its policy lies beside the socket.
func Start(ctx context.Context, program, socket string, flags ...string) (*Server, error) {
	s := &Server{socket: socket, done: make(chan struct{})}
	file := filepath.Join(filepath.Dir(socket), "policy.yaml")
	if err := os.WriteFile(file, []byte(policy), 0o600); err != nil {
		return nil, err
	}
	s.cmd = exec.Command(program, append([]string{"serve", "--policy", file, "--socket", socket, "--log-level", "warn"}, flags...)...)
	s.cmd.Stdout, s.cmd.Stderr = &s.log, &s.log
	if err := s.cmd.Start(); err != nil {
		return nil, err
	}
	go func() {
		s.err = s.cmd.Wait()
		close(s.done)
	}()
	if err := s.answers(ctx); err != nil {
		return nil, fmt.Errorf("it does not answer: %w\n%s", errors.Join(err, s.Stop()), s.log.String())
	}
	return s, nil
}

// answers returns when the server does.
func (s *Server) answers(ctx context.Context) error {
	c, err := s.Client()
	if err != nil {
		return err
	}
	defer c.Close()
	for deadline := time.Now().Add(10 * time.Second); ; time.Sleep(10 * time.Millisecond) {
		if _, err = c.Info(ctx); err == nil || time.Now().After(deadline) || ctx.Err() != nil {
			return err
		}
	}
}

// Client makes a client of it. Close it.
func (s *Server) Client() (*client.Client, error) { return client.New(client.WithSocket(s.socket)) }

// PID is the server's process.
func (s *Server) PID() int { return s.cmd.Process.Pid }

// Kill is the kill -9. It does not wait.
func (s *Server) Kill() { _ = s.cmd.Process.Kill() }

// Done is closed when the server has ended.
func (s *Server) Done() <-chan struct{} { return s.done }

// Stop lets it end by itself, and kills one that does not. The error says how
// it ended where that was neither well nor by a signal. Idempotent.
func (s *Server) Stop() error {
	s.once.Do(func() {
		_ = s.cmd.Process.Signal(syscall.SIGTERM)
		select {
		case <-s.done:
		case <-time.After(stopTime):
			s.Kill()
			<-s.done
			s.late = fmt.Errorf("it did not end within %s of SIGTERM", stopTime)
		}
	})
	err := s.late
	if err == nil && s.cmd.ProcessState.ExitCode() > 0 {
		err = s.err
	}
	if err != nil {
		return fmt.Errorf("the server: %w\n%s", err, s.log.String())
	}
	return nil
}
