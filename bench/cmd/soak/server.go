package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"

	"tranca"
	"tranca/bench/hoststate"
	"tranca/client"
)

// server is `tranca serve`, as its operator sees it from outside.
type server struct {
	cmd    *exec.Cmd
	socket string
	log    *bounded
	done   chan struct{}
	err    error
	once   sync.Once
	before map[string]bool // what was there before it, as in [hoststate.State]
}

// bounded keeps the last bytes of a log.
type bounded struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (b *bounded) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.text.Write(p)
	if over := b.text.Len() - 64<<10; over > 0 {
		b.text.Next(over)
	}
	return len(p), nil
}

// start starts a server and returns when it answers.
func start(ctx context.Context, program, socket string) (*server, error) {
	s := &server{socket: socket, log: &bounded{}, done: make(chan struct{})}
	s.cmd = exec.Command(program, "serve", "--socket", socket, "--log-level", "warn", "--max-sandboxes", "48")
	s.cmd.Stdout, s.cmd.Stderr = s.log, s.log
	var err error
	if s.before, err = hoststate.Sandboxed([]string{program}); err != nil {
		return nil, err
	}
	if err := s.cmd.Start(); err != nil {
		return nil, err
	}
	go func() {
		s.err = s.cmd.Wait()
		close(s.done)
	}()
	c, err := s.client()
	if err != nil {
		return nil, errors.Join(err, s.stop())
	}
	defer c.Close()
	for deadline := time.Now().Add(10 * time.Second); ; time.Sleep(20 * time.Millisecond) {
		if _, err = c.Info(ctx); err == nil {
			return s, nil
		}
		if time.Now().After(deadline) || ctx.Err() != nil {
			return nil, fmt.Errorf("it does not answer: %w\n%s", errors.Join(err, s.stop()), s.log.text.String())
		}
	}
}

func (s *server) client() (*client.Client, error) { return client.New(client.WithSocket(s.socket)) }

// kill is the kill -9.
func (s *server) kill() { _ = s.cmd.Process.Kill() }

// stop lets it end by itself.
func (s *server) stop() error {
	s.once.Do(func() {
		_ = s.cmd.Process.Signal(syscall.SIGTERM)
		select {
		case <-s.done:
		case <-time.After(60 * time.Second):
			s.kill()
			<-s.done
			s.err = errors.New("it did not end within 60 s of SIGTERM")
		}
	})
	if s.err != nil && s.cmd.ProcessState.ExitCode() != -1 {
		return fmt.Errorf("the server: %w\n%s", s.err, s.log.text.String())
	}
	return nil
}

// died waits until nothing of a server that was killed runs any more: its
// sandboxes die without anybody's help.
func (s *server) died() error {
	<-s.done
	for deadline := time.Now().Add(10 * time.Second); ; time.Sleep(50 * time.Millisecond) {
		now, err := hoststate.Sandboxed([]string{s.cmd.Path})
		if err != nil {
			return err
		}
		left := hoststate.Left(&hoststate.State{Processes: s.before}, &hoststate.State{Processes: now})
		if len(left) == 0 {
			return nil
		}
		if time.Now().After(deadline) {
			return fmt.Errorf("10 s after the server was killed these live on: %v", left)
		}
	}
}

// clear destroys every sandbox and waits until no guest agent is left.
func (s *server) clear(ctx context.Context) error {
	c, err := s.client()
	if err != nil {
		return err
	}
	defer c.Close()
	for deadline := time.Now().Add(30 * time.Second); ; time.Sleep(50 * time.Millisecond) {
		list, err := c.List(ctx, client.ListOptions{})
		if err != nil {
			return fmt.Errorf("clearing up: %w", err)
		}
		for _, info := range list {
			sb, err := c.Sandbox(ctx, info.ID)
			if err == nil {
				err = sb.Close(ctx)
			}
			if err != nil && !errors.Is(err, tranca.ErrGone) && !errors.Is(err, tranca.ErrNotFound) {
				return fmt.Errorf("clearing up: %w", err)
			}
		}
		if len(list) == 0 && len(s.agents()) == 0 {
			return nil
		}
		if time.Now().After(deadline) {
			return fmt.Errorf("after 30 s there are still %d sandboxes, guest agents %v", len(list), s.agents())
		}
	}
}

// agents returns the pids of its children, which are guest agents.
func (s *server) agents() []int {
	var all []int
	tasks, _ := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/children", s.cmd.Process.Pid))
	for _, name := range tasks {
		text, err := os.ReadFile(name)
		if err != nil {
			continue
		}
		for word := range strings.FieldsSeq(string(text)) {
			if pid, err := strconv.Atoi(word); err == nil {
				all = append(all, pid)
			}
		}
	}
	return all
}

// state is what the server holds while nobody asks anything of it.
type state struct {
	descriptors int
	memory      int64
}

func (s *server) look() (state, error) {
	fds, err := os.ReadDir(fmt.Sprintf("/proc/%d/fd", s.cmd.Process.Pid))
	if err != nil {
		return state{}, err
	}
	memory, err := hoststate.PrivateDirty(s.cmd.Process.Pid)
	return state{len(fds), memory}, err
}

const (
	// moreDescriptors is what a pool of idle things may differ by.
	moreDescriptors = 24
	// moreMemory is what Go's heap may keep after a crowd that was larger than
	// the one before it.
	moreMemory = 24 << 20
)

// grewBeyond says what it holds more than before. It gets some time to come to
// rest: connections and buffers that are idle are let go by and by.
func (s *server) grewBeyond(before state) error {
	var now state
	for deadline := time.Now().Add(20 * time.Second); ; time.Sleep(200 * time.Millisecond) {
		var err error
		if now, err = s.look(); err != nil {
			return err
		}
		if now.descriptors <= before.descriptors+moreDescriptors && now.memory <= before.memory+moreMemory {
			return nil
		}
		if time.Now().After(deadline) {
			return fmt.Errorf("at rest the server holds %d descriptors and %d MiB; before it held %d and %d MiB",
				now.descriptors, now.memory>>20, before.descriptors, before.memory>>20)
		}
	}
}
