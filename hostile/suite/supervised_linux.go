package suite

import (
	"bytes"
	"context"
	"encoding/json"
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
	"tranca/hostile/attempt"
	"tranca/hostile/world"
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

const (
	// runsBy is how long a program may take to be seen, where it can be.
	runsBy = 20 * time.Second
	// goneBy is how long what the supervisor made may take to be gone.
	goneBy = 10 * time.Second
)

func (s *Supervised) run(ctx context.Context, t *Trial) (*Outcome, error) {
	charge, err := json.Marshal(Charge{s.Column, s.Waive, t.Probe.ID, t.Probe.Text, t.Attempt})
	if err != nil {
		return nil, err
	}
	cmd := exec.Command(s.Command[0], s.Command[1:]...)
	cmd.Env, cmd.Dir = s.Env, "/"
	cmd.Stdin = bytes.NewReader(charge)
	out := &transcript{}
	cmd.Stdout, cmd.Stderr = out, out
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.WaitDelay = time.Second
	before := foreign()
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	running := s.untilRunning(ctx, t, out)
	family := descendants(cmd.Process.Pid)
	for pid, start := range foreign() {
		if before[pid] != start {
			family[pid] = start // what an engine started for it
		}
	}
	_ = cmd.Process.Kill()
	_ = cmd.Wait()
	if len(family) < 2 && len(t.World.Marked()) == 0 {
		running = false // what it made is not seen here, and so not what becomes of it
	}
	if !running {
		return nil, fmt.Errorf("the supervisor ran nothing within %s: %s", runsBy, strings.TrimSpace(out.String()))
	}
	o := &Outcome{Seen: world.Seen{Output: map[string][]byte{"output": []byte(out.String())}}}
	o.Attempt.Exit = tranca.Exit{Code: -1, Reason: tranca.EndClosed}
	o.Attempt.CPUMS = -1
	for until := time.Now().Add(goneBy); len(family) > 0; time.Sleep(20 * time.Millisecond) {
		family = alive(family)
		if time.Now().After(until) {
			o.Alive = append(o.Alive, fmt.Sprintf("%d processes of the sandbox outlived tranca by %s", len(family), goneBy))
			end(family)
			break
		}
	}
	return o, nil
}

// untilRunning waits until the program has told something, or is seen.
func (s *Supervised) untilRunning(ctx context.Context, t *Trial, out *transcript) bool {
	for end := time.Now().Add(runsBy); time.Now().Before(end) && ctx.Err() == nil; time.Sleep(20 * time.Millisecond) {
		if strings.Contains(out.String(), attempt.Prefix) || len(t.World.Marked()) > 0 {
			return true
		}
	}
	return false
}

// foreign are the processes in other pid namespaces than this one's, as far as
// this user may see them, with their start times.
func foreign() map[int]string {
	own, err := os.Readlink("/proc/self/ns/pid")
	if err != nil {
		return nil
	}
	all := map[int]string{}
	entries, _ := os.ReadDir("/proc")
	for _, e := range entries {
		pid, err := strconv.Atoi(e.Name())
		if err != nil {
			continue
		}
		ns, err := os.Readlink(filepath.Join("/proc", e.Name(), "ns/pid"))
		if err != nil || ns == own {
			continue
		}
		if _, start, ok := stat(pid); ok {
			all[pid] = start
		}
	}
	return all
}

// transcript is what a process has printed so far.
type transcript struct {
	mu   sync.Mutex
	text strings.Builder
}

// Write implements [io.Writer]. Of more than is ever needed it keeps nothing.
func (t *transcript) Write(p []byte) (int, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.text.Len() < most {
		t.text.Write(p)
	}
	return len(p), nil
}

func (t *transcript) String() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.text.String()
}

// descendants returns a process and what is below it, each with its start time,
// by which a reused pid is told apart.
func descendants(pid int) map[int]string {
	parents := map[int]int{}
	starts := map[int]string{}
	entries, _ := os.ReadDir("/proc")
	for _, e := range entries {
		n, err := strconv.Atoi(e.Name())
		if err != nil {
			continue
		}
		if parent, start, ok := stat(n); ok {
			parents[n], starts[n] = parent, start
		}
	}
	family := map[int]string{}
	for n := range parents {
		for at := n; at > 1; at = parents[at] {
			if at == pid {
				family[n] = starts[n]
				break
			}
		}
	}
	return family
}

// stat reads parent and start time; ok is false for what is gone or a zombie.
func stat(pid int) (parent int, start string, ok bool) {
	text, err := os.ReadFile(filepath.Join("/proc", strconv.Itoa(pid), "stat"))
	if err != nil {
		return 0, "", false
	}
	_, rest, found := strings.Cut(string(text), ") ")
	for found && strings.Contains(rest, ") ") { // a name may hold anything
		_, rest, _ = strings.Cut(rest, ") ")
	}
	f := strings.Fields(rest)
	if len(f) < 20 || f[0] == "Z" || f[0] == "X" {
		return 0, "", false
	}
	parent, err = strconv.Atoi(f[1])
	return parent, f[19], err == nil
}

// end kills what should have ended by itself.
func end(family map[int]string) {
	for pid := range alive(family) {
		_ = syscall.Kill(pid, syscall.SIGKILL)
	}
}

func alive(family map[int]string) map[int]string {
	still := map[int]string{}
	for pid, start := range family {
		if _, now, ok := stat(pid); ok && now == start {
			still[pid] = start
		}
	}
	return still
}
