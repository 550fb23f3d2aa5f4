package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"time"

	"tranca/bench/hoststate"
)

// The lines by which the supervisor tells its parent how far it is.
const (
	lineStart = "start"
	lineEnd   = "end"
)

type options struct {
	sandboxes, parallel, kills int
	seed                       uint64
	backend, waive             string
	supervise                  bool
}

func (o *options) run(ctx context.Context) error {
	if o.supervise {
		return o.superviseSelf(ctx)
	}
	self, err := os.Executable()
	if err != nil {
		return err
	}
	look := hoststate.Default()
	look.Programs = []string{self}
	look.Self = true
	before, err := hoststate.Take(look)
	if err != nil {
		return err
	}
	start := time.Now()
	started, err := o.rounds(ctx, self)
	if err != nil {
		return err
	}
	left, err := hoststate.WaitClean(before, look, 10*time.Second)
	if err != nil {
		return err
	}
	if len(left) > 0 {
		return fmt.Errorf("%d things are left on the host:\n\t%s", len(left), strings.Join(left, "\n\t"))
	}
	fmt.Printf("churn: %d sandboxes, %d at a time, supervisor killed %d times, %.0f s: nothing is left\n",
		started, o.parallel, o.kills, time.Since(start).Seconds())
	return nil
}

// rounds lets one supervisor after the other run its share. All but the last
// are killed in the midst of it; the last one's start sweeps what is left of
// them, and it has to come to its end.
func (o *options) rounds(ctx context.Context, self string) (int, error) {
	rnd := rand.New(rand.NewPCG(o.seed, 2))
	share := max(o.sandboxes/(o.kills+1), 2)
	started := 0
	for n := range o.kills {
		killAt := 1 + rnd.IntN(share-1)
		got, err := o.round(ctx, self, n, share, killAt)
		if err != nil {
			return started, fmt.Errorf("supervisor %d: %w", n, err)
		}
		started += got
		fmt.Printf("churn: supervisor %d killed after %d of its runs ended, %d started\n", n, killAt, got)
	}
	got, err := o.round(ctx, self, o.kills, max(o.sandboxes-started, 1), 0)
	if err != nil {
		return started, fmt.Errorf("last supervisor: %w", err)
	}
	return started + got, nil
}

// round runs one supervisor and returns how many sandboxes it started. It is
// killed when killAt of them have ended; 0 lets it end by itself.
func (o *options) round(ctx context.Context, self string, n, share, killAt int) (int, error) {
	before, err := hoststate.Sandboxed([]string{self})
	if err != nil {
		return 0, err
	}
	cmd := exec.CommandContext(ctx, self, "-supervise", "-sandboxes", strconv.Itoa(share),
		"-parallel", strconv.Itoa(o.parallel), "-seed", strconv.FormatUint(o.seed+uint64(n), 10),
		"-backend", o.backend, "-waive", o.waive)
	cmd.Stderr = os.Stderr
	out, err := cmd.StdoutPipe()
	if err != nil {
		return 0, err
	}
	if err := cmd.Start(); err != nil {
		return 0, err
	}
	started, ended, killed := 0, 0, false
	for sc := bufio.NewScanner(out); sc.Scan(); {
		switch word, _, _ := strings.Cut(sc.Text(), " "); word {
		case lineStart:
			started++
		case lineEnd:
			ended++
		}
		if killAt > 0 && ended >= killAt && !killed {
			killed = true
			if err := cmd.Process.Kill(); err != nil {
				return started, err
			}
		}
	}
	err = cmd.Wait()
	if killed {
		return started, orphansDie(self, before)
	}
	if err == nil && killAt > 0 {
		err = errors.New("ended before it could be killed")
	}
	return started, err
}

// orphansDie waits for the sandboxes of a killed supervisor to die: by
// themselves, before anybody sweeps.
func orphansDie(self string, before map[string]bool) error {
	const most = 5 * time.Second
	for deadline := time.Now().Add(most); ; time.Sleep(20 * time.Millisecond) {
		now, err := hoststate.Sandboxed([]string{self})
		if err != nil {
			return err
		}
		left := hoststate.Left(&hoststate.State{Processes: before}, &hoststate.State{Processes: now})
		if len(left) == 0 {
			return nil
		}
		if time.Now().After(deadline) {
			return fmt.Errorf("alive %v after their supervisor was killed:\n\t%s", most, strings.Join(left, "\n\t"))
		}
	}
}
