package suite

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"syscall"
	"time"

	"tranca"
	"tranca/hostile/attempt"
	"tranca/hostile/world"
	"tranca/internal/hoststate"
)

// Supervised runs a trial's program by another process, a supervisor, and kills
// that with SIGKILL once the program runs: what is alive after that is found by
// the host.
type Supervised struct {
	// Command is the supervisor; it reads a [Charge] on standard input, runs
	// the program, and waits for it.
	Command []string
	Env     []string
	// Column is the boundary that the supervisor is to use, and Waive what the
	// operator waived.
	Column string
	Waive  []tranca.Item
}

// Charge is what a supervisor is told to run.
type Charge struct {
	Column  string           `json:"column"`
	Waive   []tranca.Item    `json:"waive,omitempty"`
	Probe   string           `json:"probe"`
	Text    string           `json:"text"`
	Program *attempt.Program `json:"program"`
}

// goneBy is how long what the supervisor made may take to be gone.
const goneBy = 10 * time.Second

func (s *Supervised) run(ctx context.Context, t *Trial, engine bool) (*Outcome, error) {
	charge, err := json.Marshal(Charge{s.Column, s.Waive, t.Probe.ID, t.Probe.Text, t.Attempt})
	if err != nil {
		return nil, err
	}
	cmd := exec.Command(s.Command[0], s.Command[1:]...)
	cmd.Env, cmd.Dir = s.Env, "/"
	cmd.Stdin = bytes.NewReader(charge)
	out := &bounded{left: most}
	cmd.Stdout, cmd.Stderr = out, out
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.WaitDelay = time.Second
	before, err := foreign(engine)
	if err != nil {
		return nil, err
	}
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	running := until(ctx, func() bool {
		return bytes.Contains(out.bytes(), []byte(attempt.Prefix)) || len(t.World.Marked()) > 0
	})
	family, err := made(cmd.Process.Pid, engine, before)
	_ = cmd.Process.Kill()
	_ = cmd.Wait()
	if err != nil {
		return nil, err
	}
	if len(family) < 2 && len(t.World.Marked()) == 0 {
		running = false // what it made is not seen here, and so not what becomes of it
	}
	if !running {
		return nil, fmt.Errorf("the supervisor ran nothing within %s: %s", runsBy, bytes.TrimSpace(out.bytes()))
	}
	o := newOutcome()
	o.Seen.Output["output"] = out.bytes()
	o.Attempt.Exit = tranca.Exit{Code: -1, Reason: tranca.EndClosed}
	o.Attempt.CPUMS = -1
	o.outlived(family, engine)
	return o, nil
}

// watchLeft watches the processes that this one and an engine make, and returns
// what tells, when they should have ended, which of them have not. It kills those
// of its own.
func watchLeft(engine bool) (left func(*Outcome), err error) {
	others, err := foreign(engine)
	if err != nil {
		return nil, err
	}
	before, err := made(os.Getpid(), engine, others)
	if err != nil {
		return nil, err
	}
	seen := map[int]string{}
	see := func() {
		now, err := made(os.Getpid(), engine, others)
		for pid, start := range now {
			if err == nil && before[pid] != start {
				seen[pid] = start
			}
		}
	}
	enough := world.Every(100*time.Millisecond, see)
	return func(o *Outcome) {
		enough()
		if len(seen) == 0 {
			o.Unseen = "no process of the sandbox was seen on the host, so that it is not known what is left of it"
		}
		see()
		o.outlived(seen, engine)
	}, nil
}

// outlived waits until none of the processes of a sandbox that has ended is there
// any more. Those that an engine made are not killed: they could be anybody's.
func (o *Outcome) outlived(family map[int]string, engine bool) {
	for end := time.Now().Add(goneBy); ; time.Sleep(20 * time.Millisecond) {
		if family = hoststate.Alive(family); len(family) == 0 {
			return
		}
		if time.Now().After(end) {
			break
		}
	}
	text := fmt.Sprintf("%d processes of the sandbox outlived it by %s", len(family), goneBy)
	if engine {
		text += ", or of one that somebody else has started meanwhile"
	} else {
		for pid := range family {
			_ = syscall.Kill(pid, syscall.SIGKILL)
		}
	}
	o.Alive = append(o.Alive, text)
}

// foreign are what an engine has started for whomever, where there is one.
func foreign(engine bool) (map[int]string, error) {
	if !engine {
		return nil, nil
	}
	return hoststate.InOtherPIDNamespaces()
}

// made are a supervisor with what is below it, and what an engine has started
// meanwhile, if there is one: what others have it start just then is taken for
// the supervisor's.
func made(supervisor int, engine bool, before map[int]string) (map[int]string, error) {
	family, err := hoststate.Family(supervisor)
	if err != nil {
		return nil, err
	}
	now, err := foreign(engine)
	for pid, start := range now {
		if before[pid] != start {
			family[pid] = start
		}
	}
	return family, err
}
