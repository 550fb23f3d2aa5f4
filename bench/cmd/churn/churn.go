package main

import (
	"bufio"
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"tranca/internal/backend/container"
	"tranca/internal/hoststate"
)

// The lines by which the supervisor tells its parent how far it is.
const (
	lineStart = "start"
	lineEnd   = "end"
)

// incident is what befalls a supervisor in the midst of its share.
type incident int

const (
	nothing incident = iota
	killed           // with -9
	crashed          // the container engine beneath it, with -9, and it comes back
)

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
	// What is made with the first sandbox and kept isn't left: the folder of
	// the runtime's state, and what an engine makes.
	if _, err := o.round(ctx, self, 0, 1, nothing, 0); err != nil {
		return fmt.Errorf("first sandbox: %w", err)
	}
	before, err := hoststate.Take(look)
	if err != nil {
		return err
	}
	start := time.Now()
	started, err := o.rounds(ctx, self)
	if err != nil {
		return err
	}
	left, err := hoststate.WaitClean(before, look, o.patience())
	if err != nil {
		return err
	}
	left = o.ours(left)
	if len(left) > 0 {
		return fmt.Errorf("%d things are left on the host:\n\t%s", len(left), strings.Join(left, "\n\t"))
	}
	fmt.Printf("churn: %s: %d sandboxes, %d at a time, supervisor killed %d times, engine %d times, %.0f s: nothing is left\n",
		o.backend, started, o.parallel, o.kills, o.crashes, time.Since(start).Seconds())
	return nil
}

// patience bounds the wait for a clean host. Docker takes away the files of its
// network namespaces once a minute; those of an engine that was killed stay, and
// are left out.
func (o *options) patience() time.Duration {
	if o.backend == container.Name && o.crashes == 0 {
		return 75 * time.Second
	}
	return 10 * time.Second
}

// ours leaves out what an engine leaves of itself where it is killed with -9.
func (o *options) ours(left []string) []string {
	if o.crashes == 0 || o.crashLeaves == "" {
		return left
	}
	engines := regexp.MustCompile(o.crashLeaves)
	return slices.DeleteFunc(left, engines.MatchString)
}

// rounds lets one supervisor after the other run its share. Each but the last
// has its incident in the midst of it. The start of the next sweeps what is left
// of one that was killed, and the last has to come to its end.
func (o *options) rounds(ctx context.Context, self string) (int, error) {
	rnd := rand.New(rand.NewPCG(o.seed, 2))
	incidents := slices.Concat(slices.Repeat([]incident{killed}, o.kills), slices.Repeat([]incident{crashed}, o.crashes))
	rnd.Shuffle(len(incidents), func(i, j int) { incidents[i], incidents[j] = incidents[j], incidents[i] })
	share := max(o.sandboxes/(len(incidents)+1), 2)
	started := 0
	for n, what := range incidents {
		at := 1 + rnd.IntN(share-1)
		got, err := o.round(ctx, self, n, share, what, at)
		if err != nil {
			return started, fmt.Errorf("supervisor %d: %w", n, err)
		}
		started += got
		fmt.Printf("churn: supervisor %d %s after %d of its runs ended, %d started\n", n, what, at, got)
	}
	got, err := o.round(ctx, self, len(incidents), max(o.sandboxes-started, 1), nothing, 0)
	if err != nil {
		return started, fmt.Errorf("last supervisor: %w", err)
	}
	return started + got, nil
}

// String is for the line about a round.
func (i incident) String() string {
	return [...]string{"undisturbed", "killed", "lost its engine"}[i]
}

// supervisor is the command of one.
func (o *options) supervisor(ctx context.Context, self string, n, share int, what incident) *exec.Cmd {
	cmd := exec.CommandContext(ctx, self, "-supervise", "-sandboxes", strconv.Itoa(share),
		"-parallel", strconv.Itoa(o.parallel), "-seed", strconv.FormatUint(o.seed+uint64(n), 10),
		"-backend", o.backend, "-image", o.image, "-runtime", o.runtime, "-waive", o.waive,
		"-outages="+strconv.FormatBool(what == crashed))
	cmd.Stderr = os.Stderr
	return cmd
}

// round runs one supervisor and returns how many sandboxes it started. The
// incident comes when that many of them have ended.
func (o *options) round(ctx context.Context, self string, n, share int, what incident, at int) (int, error) {
	before, err := hoststate.Sandboxed([]string{self})
	if err != nil {
		return 0, err
	}
	cmd := o.supervisor(ctx, self, n, share, what)
	out, err := cmd.StdoutPipe()
	if err != nil {
		return 0, err
	}
	if err := cmd.Start(); err != nil {
		return 0, err
	}
	started, ended, happened := 0, 0, what == nothing
	var broken error
	for sc := bufio.NewScanner(out); sc.Scan(); {
		switch word, _, _ := strings.Cut(sc.Text(), " "); word {
		case lineStart:
			started++
		case lineEnd:
			ended++
		}
		if happened || ended < at {
			continue
		}
		happened = true
		if broken = o.happen(ctx, what, cmd.Process); broken != nil {
			_ = cmd.Process.Kill() // the rest of the round would prove nothing
		}
	}
	err = cmd.Wait()
	switch {
	case broken != nil:
		return started, broken
	case what == killed && happened:
		return started, orphansDie(self, before)
	case err == nil && !happened:
		err = fmt.Errorf("ended before it %s", what)
	}
	return started, err
}

// happen makes the incident.
func (o *options) happen(ctx context.Context, what incident, supervisor *os.Process) error {
	if what == killed {
		return supervisor.Kill()
	}
	text, err := exec.CommandContext(ctx, "sh", "-c", o.crash).CombinedOutput()
	if err != nil {
		return fmt.Errorf("%s: %w\n%s", o.crash, err, text)
	}
	return nil
}

// orphansDie waits for the sandboxes of a killed supervisor to die: by
// themselves, before anybody sweeps.
func orphansDie(self string, before map[string]bool) error {
	const most = 5 * time.Second
	left, err := hoststate.WaitDead(before, []string{self}, most)
	if len(left) > 0 {
		err = fmt.Errorf("alive %v after their supervisor was killed:\n\t%s", most, strings.Join(left, "\n\t"))
	}
	return err
}
