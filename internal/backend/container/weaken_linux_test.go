//go:build tranca_weaken

package container_test

import (
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	"tranca"
	"tranca/internal/backend/container"
	"tranca/internal/hostiletest"
	"tranca/internal/weaken"
)

// TestWeakened: each switch of package weaken takes its guarantee away. The
// death of a supervisor is TestWeakenedLifetime's.
func TestWeakened(t *testing.T) { weakened(t, docker) }

func TestWeakenedPodman(t *testing.T) { weakened(t, podman) }

func TestWeakenedPodmanRootless(t *testing.T) { weakened(t, rootless) }

func weakened(t *testing.T, e engineUnderTest) {
	o, here := e.options(t)
	if !here {
		return
	}
	b := open(t, o)
	defer b.Close(t.Context())
	report, err := b.Probe(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for _, why := range container.LackingSwitches(b, report) {
		t.Error(why)
	}
	policy := func() tranca.Policy {
		p := testPolicy()
		p.Waive, p.Limits = hostiletest.Lacking(&report), hostiletest.Limits(time.Minute)
		return p
	}
	losses := slices.Concat(hostiletest.Losses(), hostiletest.HostKernelLosses(), lost())
	hostiletest.Weakened(t, b, b.(tranca.Reporter).Report, policy, losses, tranca.ItemLifetime)
}

func lost() []hostiletest.Loss {
	return []hostiletest.Loss{
		{
			Item:  tranca.ItemDevices,
			Scene: func(s *hostiletest.Stage) { s.Vars["node"] = hostiletest.HostNode(s) },
			Program: "\nattempt('see a device of the host', lambda: expect('a device', stat.S_ISCHR(os.stat(V['node']).st_mode)))" +
				hostiletest.Alive,
		},
		hostiletest.MountedDeviceLoss(),
	}
}

// TestWeakenedLifetime kills a supervisor with -9. With the guarantee, which
// TestASupervisorIsKilled shows in ordinary builds, its container ends; without
// it, it runs on, until the next start removes it.
func TestWeakenedLifetime(t *testing.T) {
	o, _ := docker.options(t)
	imageSpec{}.load(t, &o)
	c := client(t, o)
	weaken.Takes(container.Name, tranca.ItemLifetime) // what is set below is for the supervisor
	for _, weakened := range []bool{false, true} {
		t.Run(fmt.Sprint(weakened), func(t *testing.T) {
			if weakened {
				t.Setenv("TRANCA_WEAKEN", "container:lifetime")
			}
			supervisor, id := startSupervisor(t, o)
			if err := supervisor.Process.Kill(); err != nil {
				t.Fatal(err)
			}
			_ = supervisor.Wait()
			runs := func() bool {
				is, err := c.Inspect(t.Context(), "tranca-"+string(id))
				return err == nil && is.State.Running
			}
			if !weakened {
				eventually(t, "its container has ended", func() bool { return !runs() })
			}
			time.Sleep(time.Second)
			if runs() != weakened {
				t.Errorf("weakened %v, and its container runs: %v", weakened, runs())
			}
			b := open(t, o)
			b.(tranca.Reporter).Report()
			if err := b.Close(t.Context()); err != nil { // which waits for the sweep
				t.Error(err)
			}
			if _, err := c.Inspect(t.Context(), "tranca-"+string(id)); !errors.Is(err, tranca.ErrNotFound) {
				t.Errorf("after the next start: %v", err)
			}
		})
	}
}
