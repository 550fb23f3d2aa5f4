package pool

import (
	"context"
	"errors"
	"testing"
	"time"

	"go.uber.org/goleak"

	"tranca"
	"tranca/internal/backend/fake"
	"tranca/internal/policy"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func create(t *testing.T, p *Pool, pol tranca.Policy) tranca.Sandbox {
	t.Helper()
	sb, err := p.Create(t.Context(), tranca.Spec{ID: tranca.NewID(), Policy: pol})
	if err != nil {
		t.Fatal(err)
	}
	return sb
}

func eventually(t *testing.T, what string, ok func() bool) {
	t.Helper()
	for end := time.Now().Add(10 * time.Second); !ok(); time.Sleep(time.Millisecond) {
		if time.Now().After(end) {
			t.Fatal("never: " + what)
		}
	}
}

func TestEachSandboxIsUsedOnceUnderItsOwnersID(t *testing.T) {
	b := fake.New(fake.Options{})
	p := New(b, 2)
	pol := policy.Default()
	if err := p.Prepare(t.Context(), pol); err != nil {
		t.Fatal(err)
	}
	if b.Live() != 2 {
		t.Fatalf("%d sandboxes ready, want 2", b.Live())
	}
	seen := map[tranca.Sandbox]bool{}
	for range 5 {
		id := tranca.NewID()
		sb, err := p.Create(t.Context(), tranca.Spec{ID: id, Policy: pol})
		if err != nil {
			t.Fatal(err)
		}
		if sb.ID() != id {
			t.Errorf("id %s, want %s", sb.ID(), id)
		}
		inner := sb.(*named).Sandbox
		if seen[inner] {
			t.Error("a sandbox was given out twice")
		}
		seen[inner] = true
		defer sb.Close(context.Background())
	}
	if err := p.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
}

func TestAnotherPolicyNeverGetsAKeptSandbox(t *testing.T) {
	b := fake.New(fake.Options{})
	p := New(b, 1)
	pol := policy.Default()
	if err := p.Prepare(t.Context(), pol); err != nil {
		t.Fatal(err)
	}
	other := pol.Clone()
	other.Limits.Memory /= 2
	sb := create(t, p, other)
	if sb.(*named).kept {
		t.Fatal("a sandbox of another policy was given out")
	}
	if err := sb.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	// The one for the old policy goes; one for the new one comes.
	eventually(t, "one ready", func() bool { return b.Live() == 1 })
	withMount := pol.Clone()
	withMount.Mounts = []tranca.Mount{{Source: "/srv", Target: "/data"}}
	if _, kept := create(t, p, withMount).(*named); kept {
		t.Fatal("a sandbox with mounts was kept")
	}
	if err := p.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
}

func TestCloseDestroysWhatIsKept(t *testing.T) {
	b := fake.New(fake.Options{})
	p := New(b, 3)
	sb := create(t, p, policy.Default())
	if err := sb.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := p.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	if b.Live() != 0 {
		t.Errorf("%d sandboxes are left", b.Live())
	}
}

func TestAFailedBootAheadLeavesCreateAsItIs(t *testing.T) {
	fail := errors.New("no room")
	var failing bool
	b := fake.New(fake.Options{CreateErr: func() error {
		if failing {
			return fail
		}
		return nil
	}})
	p := New(b, 1)
	failing = true
	if err := p.Prepare(t.Context(), policy.Default()); !errors.Is(err, fail) {
		t.Errorf("Prepare: %v", err)
	}
	failing = false
	create(t, p, policy.Default()).Close(t.Context())
	if err := p.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
}
