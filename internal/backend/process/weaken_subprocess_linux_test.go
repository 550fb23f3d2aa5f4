//go:build tranca_weaken

package process

import (
	"bytes"
	"context"
	"os"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"tranca"
	"tranca/internal/hostiletest"
	"tranca/internal/require"
	"tranca/internal/weaken"
)

// plainLoss is what a program of the weaker rung gets with a guarantee taken
// away: it says "lost" then, and only then.
type plainLoss struct {
	item    tranca.Item
	root    bool
	limits  func(*tranca.Limits)
	program string
}

const orHeld = "\nexcept BaseException as e: print('held', e)\nelse: print('lost')"

func plainLosses() []plainLoss {
	return []plainLoss{
		{item: tranca.ItemNetwork, program: "\ntry: socket.create_connection(('127.0.0.1', V['port']), 5)" + orHeld},
		{item: tranca.ItemUser, root: true, program: "\ntry: expect('root', os.getuid() == 0)" + orHeld},
		{item: tranca.ItemPrivileges, program: `
status = dict(l.rstrip('\n').split(':\t', 1) for l in open('/proc/self/status') if ':\t' in l)
try: expect('rights', int(status['CapEff'], 16) and status['NoNewPrivs'] == '0')` + orHeld},
		{item: tranca.ItemEnvironment, program: "\ntry: os.environ['TRANCA_TEST_SECRET']" + orHeld},
		{
			item: tranca.ItemCPUTime, limits: func(l *tranca.Limits) { l.CPUTime = time.Second },
			program: "\nwhile time.process_time() < 2.5: pass\nprint('lost')",
		},
		{
			item: tranca.ItemOpenFiles, limits: func(l *tranca.Limits) { l.OpenFiles = 32 },
			program: "\ntry: [os.open('/dev/null', os.O_RDONLY) for _ in range(64)]" + orHeld,
		},
		{
			item: tranca.ItemFileSize, limits: func(l *tranca.Limits) { l.FileSize = 1 << 20 },
			program: "\ntry: os.truncate(os.open('big', os.O_CREAT | os.O_WRONLY), 2 << 20)" + orHeld,
		},
	}
}

func TestWeakenedSubprocess(t *testing.T) {
	all := plainLosses()
	for _, l := range all {
		t.Run(string(l.item), func(t *testing.T) { l.run(t) })
	}
	for _, s := range weaken.Switches() {
		if s.Backend == SubprocessName && s.Takes != "" && !slices.Contains(weaken.ByEngine(), s.Item) &&
			!slices.ContainsFunc(all, func(l plainLoss) bool { return l.item == s.Item }) {
			t.Errorf("nothing shows what %s takes away", s.Name())
		}
	}
}

func (l *plainLoss) run(t *testing.T) {
	if l.root {
		require.Root(t)
	}
	if os.Geteuid() == 0 {
		t.Chdir("/")
	}
	t.Setenv("TRANCA_TEST_SECRET", "x")
	b, err := NewSubprocess()
	if err != nil {
		t.Fatal(err)
	}
	defer hostiletest.Close(t, "backend", b)
	lost, before := l.play(t, b)
	if lost {
		t.Error("it is lost with the guarantee")
	}
	restore, err := weaken.Take(SubprocessName + ":" + string(l.item))
	if err != nil {
		t.Fatal(err)
	}
	defer restore()
	lost, after := l.play(t, b)
	if !lost {
		t.Error("it is held without the guarantee")
	}
	if !reflect.DeepEqual(before, after) {
		t.Errorf("a weakened sandbox says something else of itself:\n%v\n%v", before, after)
	}
}

func (l *plainLoss) play(t *testing.T, b *Subprocess) (lost bool, stated []tranca.Enforcement) {
	t.Helper()
	p := *trialPolicy()
	p.Floor, p.Limits = tranca.LevelSubprocess, hostiletest.Limits(30*time.Second)
	p.Limits.Memory = 1 << 30 // of address space
	if l.limits != nil {
		l.limits(&p.Limits)
	}
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	sb, err := b.Create(ctx, tranca.Spec{ID: tranca.NewID(), Policy: p})
	if err != nil {
		t.Fatal(err)
	}
	defer hostiletest.Close(t, "sandbox", sb)
	host := &hostiletest.Listener{}
	vars := map[string]any{"port": host.Port(t, "tcp4", "127.0.0.1:0")}
	var out bytes.Buffer
	proc, err := sb.Start(ctx, tranca.Command{Args: hostiletest.Argv(t, l.program, vars), Stdout: &out, Stderr: &out})
	if err != nil {
		t.Fatal(err)
	}
	exit, err := proc.Wait(ctx)
	if err != nil {
		t.Fatal(err)
	}
	if lost := strings.HasSuffix(out.String(), "lost\n"); lost || !exit.Success() || strings.Contains(out.String(), "held") {
		return lost, sb.Enforcement()
	}
	t.Fatalf("it ended with %s and says neither: %q", exit, out.String())
	return false, nil
}
