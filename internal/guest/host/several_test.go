package host

import (
	"context"
	"errors"
	"strings"
	"sync"
	"testing"
	"time"

	"tranca"
	"tranca/internal/guest/agent"
)

// sleeper is a program that says "ready" and stays.
var sleeper = tranca.Command{Args: []string{"sh", "-c", "echo ready; exec sleep 300"}}

// sleepers starts n of them.
func sleepers(t *testing.T, sb tranca.Sandbox, n int) []tranca.Process {
	t.Helper()
	all := make([]tranca.Process, n)
	for i := range all {
		all[i], _ = start(t, sb, sleeper)
	}
	return all
}

func TestSeveralPrograms(t *testing.T) {
	sb, m, _ := newSandbox(t, nil)
	first := sleepers(t, sb, 3)
	for i := range 5 {
		code := itoa(i)
		if got := runProgram(t, sb, tranca.Command{Args: []string{"sh", "-c", "echo " + code + "; exit " + code}}); got.exit != exited(i) || got.stdout != code+"\n" {
			t.Errorf("program %d beside others: %+v", i, got)
		}
	}
	if begun, _, _ := m.counts(); begun != 1 {
		t.Errorf("Begin was called %d times, and the sandbox was idle once", begun)
	}
	if err := first[1].Signal(within(t), tranca.SIGTERM); err != nil {
		t.Fatal(err)
	}
	if exit := wait(t, first[1]); exit != signaled(tranca.SIGTERM) {
		t.Errorf("the one that got the signal: %v", exit)
	}
	if err := sb.Kill(within(t)); err != nil {
		t.Fatal(err)
	}
	for _, i := range []int{0, 2} {
		if exit := wait(t, first[i]); exit.Reason != tranca.EndClosed || exit.Code != -1 {
			t.Errorf("after Kill program %d: %v", i, exit)
		}
	}
	if got := runProgram(t, sb, tranca.Command{Args: []string{"echo", "again"}}); got.stdout != "again\n" {
		t.Errorf("after Kill the sandbox gives %+v", got)
	}
	if begun, _, _ := m.counts(); begun != 2 {
		t.Errorf("Begin was called %d times, and the sandbox was idle twice", begun)
	}
	for range 2 {
		if err := sb.Kill(within(t)); err != nil {
			t.Errorf("Kill of an idle sandbox: %v", err)
		}
	}
}

// A limit that ends programs ends all, and each says so, but for what had ended
// before.
func TestLimitEndsAll(t *testing.T) {
	for name, hit := range map[string]func(*fakeMachine){
		"told":    func(m *fakeMachine) { m.limit <- tranca.EndCPU },
		"counted": func(m *fakeMachine) { m.set(machineCounts{limit: tranca.EndCPU}); m.onKill() },
	} {
		t.Run(name, func(t *testing.T) {
			sb, m, _ := newSandbox(t, nil)
			all := sleepers(t, sb, 4)
			before := runProgram(t, sb, tranca.Command{Args: []string{"sh", "-c", "exit 7"}})
			hit(m)
			for i, p := range all {
				if exit := wait(t, p); exit.Reason != tranca.EndCPU || exit.Code != -1 {
					t.Errorf("program %d: %v", i, exit)
				}
			}
			if before.exit != exited(7) {
				t.Errorf("the one that had ended: %v", before.exit)
			}
			if got := runProgram(t, sb, tranca.Command{Args: []string{"true"}}); got.exit != exited(0) {
				t.Errorf("the next one: %v", got.exit)
			}
		})
	}
}

// A program that has ended while nobody took its output keeps its own end,
// whatever the others do until it was taken.
func TestEndedBeforeTheLimit(t *testing.T) {
	sb, m, _ := newSandbox(t, nil)
	out := newGate()
	other, _ := start(t, sb, sleeper)
	// More than the window, so that the agent waits with the end event, and less
	// than the window and the pipe, so that the program doesn't.
	p, err := sb.Start(within(t), tranca.Command{
		Args: []string{"sh", "-c", "head -c 1800000 /dev/zero; exit 3"}, Stdout: out,
	})
	if err != nil {
		t.Fatal(err)
	}
	<-out.blocked
	const harmless = 18 // SIGCONT
	for !errors.Is(p.Signal(within(t), harmless), tranca.ErrGone) {
		time.Sleep(10 * time.Millisecond)
	}
	time.Sleep(50 * time.Millisecond) // the notice
	m.limit <- tranca.EndMemory
	if exit := wait(t, other); exit.Reason != tranca.EndMemory {
		t.Errorf("the other: %v", exit)
	}
	close(out.open)
	if exit := wait(t, p); exit != exited(3) {
		t.Errorf("the one that had ended: %v", exit)
	}
}

// doorkeeper holds the starts of sleep in a launcher.
type doorkeeper struct{ arrived, open chan struct{} }

func newDoorkeeper() *doorkeeper { return &doorkeeper{make(chan struct{}), make(chan struct{})} }

func (g *doorkeeper) hold(p agent.Program) {
	if strings.HasSuffix(p.Path, "/sleep") {
		g.arrived <- struct{}{}
		<-g.open
	}
}

// What comes up after a kill that was meant for it too does not live on, and
// its end is that of the kill.
func TestStartUnderAKill(t *testing.T) {
	kills := map[string]func(*testing.T, *sandbox, *fakeMachine){
		"by a limit": func(t *testing.T, _ *sandbox, m *fakeMachine) { m.limit <- tranca.EndCPU; m.onKill() },
		"by the owner": func(t *testing.T, sb *sandbox, _ *fakeMachine) {
			go func() {
				if err := sb.Kill(context.Background()); err != nil {
					t.Error(err)
				}
			}()
		},
	}
	reasons := map[string]tranca.Reason{"by a limit": tranca.EndCPU, "by the owner": tranca.EndClosed}
	for name, kill := range kills {
		t.Run(name, func(t *testing.T) {
			g := newDoorkeeper()
			sb, m, _ := newSandbox(t, func(c *agent.Config) { c.Launcher = &recorder{before: g.hold} })
			old, _ := start(t, sb, sleeper)
			late := make(chan tranca.Exit, 1)
			go func() {
				p, err := sb.Start(within(t), tranca.Command{Args: []string{"sleep", "300"}})
				if err != nil {
					t.Error(err)
					late <- tranca.Exit{}
					return
				}
				exit, err := p.Wait(within(t))
				if err != nil {
					t.Error(err)
				}
				late <- exit
			}()
			<-g.arrived
			kill(t, sb, m)
			if exit := wait(t, old); exit.Reason != reasons[name] {
				t.Errorf("the one that ran: %v", exit)
			}
			close(g.open)
			if exit := <-late; exit.Reason != reasons[name] {
				t.Errorf("the one that came up late: %v", exit)
			}
			if got := runProgram(t, sb, tranca.Command{Args: []string{"true"}}); got.exit != exited(0) {
				t.Errorf("the next one: %v", got.exit)
			}
		})
	}
}

// A start that comes while programs are dying waits for their end.
func TestStartWaitsForAKill(t *testing.T) {
	sb, m, _ := newSandbox(t, nil)
	old, _ := start(t, sb, sleeper)
	kill := m.onKill
	killing, goOn := make(chan struct{}), make(chan struct{})
	var once sync.Once
	m.onKill = func() { once.Do(func() { close(killing) }); <-goOn; kill() }
	killed := make(chan error, 1)
	go func() { killed <- sb.Kill(context.Background()) }()
	<-killing
	short, cancel := context.WithTimeout(context.Background(), 20*time.Millisecond)
	defer cancel()
	if _, err := sb.Start(short, tranca.Command{Args: []string{"true"}}); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("a start during a kill: %v", err)
	}
	next := make(chan outcome, 1)
	go func() { next <- runProgram(t, sb, tranca.Command{Args: []string{"echo", "next"}}) }()
	close(goOn)
	if err := <-killed; err != nil {
		t.Error(err)
	}
	if exit := wait(t, old); exit.Reason != tranca.EndClosed {
		t.Errorf("the old one: %v", exit)
	}
	if got := <-next; got.exit != exited(0) || got.stdout != "next\n" {
		t.Errorf("the one that waited: %+v", got)
	}
	if begun, _, _ := m.counts(); begun != 2 {
		t.Errorf("Begin was called %d times", begun)
	}
}

func TestProgramsAreBounded(t *testing.T) {
	sb, _, _ := newSandbox(t, func(c *agent.Config) { c.MaxProcesses = 2 })
	all := sleepers(t, sb, 2)
	_, err := sb.Start(within(t), tranca.Command{Args: []string{"true"}})
	if !errors.Is(err, tranca.ErrBusy) || !strings.Contains(err.Error(), "2 programs are running") {
		t.Errorf("a third of two: %v", err)
	}
	if err := all[0].Signal(within(t), tranca.SIGKILL); err != nil {
		t.Fatal(err)
	}
	wait(t, all[0])
	if got := runProgram(t, sb, tranca.Command{Args: []string{"true"}}); got.exit != exited(0) {
		t.Errorf("with room again: %v", got.exit)
	}
}

// A caller who gives up his start ends nobody else's program.
func TestStartGivenUpBesideOthers(t *testing.T) {
	g := newDoorkeeper()
	sb, m, _ := newSandbox(t, func(c *agent.Config) { c.Launcher = &recorder{before: g.hold} })
	beside, _ := start(t, sb, tranca.Command{Args: []string{"python3", "-Ic", "import time; print('ready', flush=True); time.sleep(300)"}})
	ctx, cancel := context.WithCancel(context.Background())
	gaveUp := make(chan error, 1)
	go func() {
		_, err := sb.Start(ctx, tranca.Command{Args: []string{"sleep", "300"}})
		gaveUp <- err
	}()
	<-g.arrived
	cancel()
	if err := <-gaveUp; !errors.Is(err, context.Canceled) {
		t.Errorf("got %v", err)
	}
	close(g.open)
	if _, killed, _ := m.counts(); killed != 0 {
		t.Errorf("the machine's programs were killed %d times", killed)
	}
	if err := beside.Signal(within(t), tranca.SIGTERM); err != nil {
		t.Errorf("the program beside it: %v", err)
	}
	if exit := wait(t, beside); exit != signaled(tranca.SIGTERM) {
		t.Errorf("the program beside it: %v", exit)
	}
}

// Starts, ends, kills and limits at random: every program ends with a reason
// that fits, and nothing hangs.
func TestManyAtOnce(t *testing.T) {
	sb, m, _ := newSandbox(t, nil)
	var all sync.WaitGroup
	for worker := range 6 {
		all.Go(func() {
			for i := range 12 {
				args := []string{"sh", "-c", "exit 4"}
				if i%3 == 0 {
					args = []string{"sleep", "300"}
				}
				p, err := sb.Start(within(t), tranca.Command{Args: args})
				if err != nil {
					t.Errorf("worker %d: %v", worker, err)
					return
				}
				exit, err := p.Wait(within(t))
				ok := exit == exited(4) || exit.Reason == tranca.EndClosed || exit.Reason == tranca.EndCPU ||
					exit == signaled(tranca.SIGKILL) // this machine kills for the limit of a spell that is over
				if err != nil || !ok || (args[0] == "sleep" && exit.Reason == tranca.EndExited) {
					t.Errorf("worker %d: %v %v", worker, exit, err)
				}
			}
		})
	}
	done := make(chan struct{})
	go func() { all.Wait(); close(done) }()
	for i := 0; ; i++ {
		select {
		case <-done:
			return
		case <-time.After(15 * time.Millisecond):
		}
		if i%2 == 0 {
			if err := sb.Kill(within(t)); err != nil {
				t.Error(err)
			}
			continue
		}
		select {
		case m.limit <- tranca.EndCPU:
			m.onKill()
		default:
		}
	}
}
