package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"tranca"
	"tranca/bench/served"
	"tranca/client"
	"tranca/internal/hoststate"
)

// server is `tranca serve`, as its operator sees it from outside.
type server struct {
	*served.Server
	program string
	before  map[string]bool // what was there before it, as in [hoststate.State]
}

// start starts a server and returns when it answers.
func start(ctx context.Context, program, socket string) (*server, error) {
	before, err := hoststate.Sandboxed([]string{program})
	if err != nil {
		return nil, err
	}
	s, err := served.Start(ctx, program, socket, "--max-sandboxes", "48")
	return &server{s, program, before}, err
}

// died waits until nothing of a server that was killed runs any more: its
// sandboxes die without anybody's help.
func (s *server) died() error {
	<-s.Done()
	left, err := hoststate.WaitDead(s.before, []string{s.program}, 10*time.Second)
	if len(left) > 0 {
		err = fmt.Errorf("10 s after the server was killed these live on: %v", left)
	}
	return err
}

// clear destroys every sandbox and waits until no guest agent is left.
func (s *server) clear(ctx context.Context) error {
	c, err := s.Client()
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
	tasks, _ := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/children", s.PID()))
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
	fds, err := os.ReadDir(fmt.Sprintf("/proc/%d/fd", s.PID()))
	if err != nil {
		return state{}, err
	}
	memory, err := hoststate.PrivateDirty(s.PID())
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
