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
	// Engine says that an engine starts the sandbox's processes.
	Engine bool
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

func (s *Supervised) run(ctx context.Context, t *Trial) (*Outcome, error) {
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
	before, err := foreign(s.Engine)
	if err != nil {
		return nil, err
	}
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	running := until(ctx, func() bool {
		return bytes.Contains(out.bytes(), []byte(attempt.Prefix)) || len(t.World.Marked()) > 0
	})
	family, err := made(cmd.Process.Pid, s.Engine, before)
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
	for end := time.Now().Add(goneBy); len(family) > 0; time.Sleep(20 * time.Millisecond) {
		family = hoststate.Alive(family)
		if time.Now().After(end) {
			o.Alive = append(o.Alive, fmt.Sprintf("%d processes of the sandbox outlived tranca by %s", len(family), goneBy))
			kill(family)
			break
		}
	}
	return o, nil
}

// watchLeft returns what tells of processes of this one and of engines that were
// not there before, a while after what made them has ended. It kills them.
func watchLeft(engine bool) (left func() []string, err error) {
	others, err := foreign(engine)
	if err != nil {
		return nil, err
	}
	before, err := made(os.Getpid(), engine, others)
	if err != nil {
		return nil, err
	}
	return func() (all []string) {
		family, err := made(os.Getpid(), engine, others)
		if err != nil {
			return []string{"what is left could not be seen: " + err.Error()}
		}
		for pid, start := range before {
			if family[pid] == start {
				delete(family, pid)
			}
		}
		for end := time.Now().Add(goneBy); len(family) > 0 && time.Now().Before(end); time.Sleep(20 * time.Millisecond) {
			family = hoststate.Alive(family)
		}
		if len(family) > 0 {
			all = append(all, fmt.Sprintf("%d processes of the sandbox outlived it by %s", len(family), goneBy))
			kill(family)
		}
		return all
	}, nil
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

// kill ends what should have ended by itself.
func kill(family map[int]string) {
	for pid := range hoststate.Alive(family) {
		_ = syscall.Kill(pid, syscall.SIGKILL)
	}
}
