package gvisor

import (
	"context"
	"errors"
	"os"
	"strings"
	"testing"
	"time"

	"tranca"
)

// TestFigures: what programs see of the machine is what the policy gives them.
func TestFigures(t *testing.T) {
	b := newBackend(t)
	s := (&row{}).newScene(t, b, false)
	s.policy.Limits.Memory, s.policy.Limits.MilliCPUs = 200<<20, 1000
	sb := s.open(nil)
	defer closeBox(t, sb)
	got := s.runIn(sb, s.argv(`
print(os.uname().nodename, os.cpu_count(), os.getuid(), os.getppid())
print([l.split()[1] for l in open('/proc/meminfo') if l.startswith('MemTotal')][0])
status = dict(l.rstrip('\n').split(':\t', 1) for l in open('/proc/self/status') if ':\t' in l)
print(status['CapEff'], status['CapBnd'], status['Seccomp'])
print(libc.prctl(39, 0, 0, 0, 0))
`)...)
	want := "sandbox 1 1000 1\n204800\n0000000000000000 "
	if !got.Exit.Success() || !strings.HasPrefix(got.Stdout, want) || !strings.HasSuffix(got.Stdout, " 2\n1\n") {
		t.Errorf("%s %v: %q %s; want %q and then a filter and no new privileges", got.Exit, got.Err, got.Stdout, got.Stderr, want)
	}
}

// TestKVMIsTriedFirst: on a host where /dev/kvm opens and runs nothing, as
// where there is none, the platform is refused within its deadline, and with
// the mend. Where it boots, a program runs.
func TestKVMIsTriedFirst(t *testing.T) {
	b, err := New(Options{Platform: KVM})
	if err != nil {
		t.Fatal(err)
	}
	defer b.Close(context.Background())
	start := time.Now()
	sb, err := b.Create(t.Context(), tranca.Spec{ID: tranca.NewID(), Policy: testPolicy(b)})
	if err == nil {
		closeBox(t, sb)
		return
	}
	t.Log(err)
	var r *tranca.RefusalError
	if !errors.As(err, &r) || !r.Unavailable || r.Problems[0].Mend == "" {
		t.Errorf("refused with %v", err)
	}
	if took := time.Since(start); took > trialTime+30*time.Second {
		t.Errorf("the refusal took %s", took)
	}
	if again := time.Now(); true {
		if _, err := b.Create(t.Context(), tranca.Spec{ID: tranca.NewID(), Policy: testPolicy(b)}); err == nil {
			t.Error("it was made the second time")
		}
		if took := time.Since(again); took > time.Second {
			t.Errorf("it was tried again, for %s", took)
		}
	}
	if len(childrenOf(os.Getpid())) > 0 {
		for _, pid := range childrenOf(os.Getpid()) {
			if strings.HasPrefix(commandOf(pid), "tranca-sentry") {
				t.Errorf("process %d of the trial is left", pid)
			}
		}
	}
}

func TestUnknownPlatform(t *testing.T) {
	if _, err := New(Options{Platform: "ptrace"}); !errors.Is(err, tranca.ErrInvalid) {
		t.Errorf("got %v", err)
	}
}
