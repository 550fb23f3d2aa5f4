package container_test

import (
	"bufio"
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"tranca"
	"tranca/internal/backend/container"
	engineapi "tranca/internal/backend/container/docker"
)

// eventually waits for what takes a moment.
func eventually(t *testing.T, what string, so func() bool) {
	t.Helper()
	for deadline := time.Now().Add(60 * time.Second); !so(); time.Sleep(50 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("after a minute it is still not so: %s", what)
		}
	}
}

// startSupervisor starts a process that has a sandbox with a running program.
func startSupervisor(t *testing.T, o container.Options) (*exec.Cmd, tranca.ID) {
	t.Helper()
	id := tranca.NewID()
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), probeVariable+"=supervisor", "T_ENGINE="+o.Engine, "T_IMAGE="+o.Image, "T_CACHE="+o.CacheFolder, "T_ID="+string(id))
	cmd.Stderr = os.Stderr
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = cmd.Process.Kill(); _ = cmd.Wait() })
	line, err := bufio.NewReader(out).ReadString('\n')
	if err != nil || !strings.HasPrefix(line, "runs ") {
		t.Fatalf("the supervisor says %q, %v", line, err)
	}
	return cmd, id
}

// A supervisor that is killed leaves nothing that runs, and its remains are
// removed by the next one; those of the living, and what is nobody's, stay.
func TestASupervisorIsKilled(t *testing.T) {
	for _, e := range []engineUnderTest{docker, podman} {
		t.Run(e.part, func(t *testing.T) {
			o, _ := e.options(t)
			imageSpec{}.load(t, &o)
			c := client(t, o)
			foreign, err := c.Create(t.Context(), "foreign-"+string(tranca.NewID()), &engineapi.Config{
				Image: o.Image, Entrypoint: []string{"/bin/probe"}, Env: []string{probeVariable + "=inside"},
				Labels: map[string]string{"tranca.other": "x"}, HostConfig: &engineapi.HostConfig{NetworkMode: "none"},
			})
			if err != nil {
				t.Fatal(err)
			}
			defer c.Remove(context.Background(), foreign)
			doomed, doomedID := startSupervisor(t, o)
			_, livingID := startSupervisor(t, o)
			if err := doomed.Process.Kill(); err != nil {
				t.Fatal(err)
			}
			_ = doomed.Wait()
			eventually(t, "the container of the dead one has ended", func() bool {
				is, err := c.Inspect(t.Context(), "tranca-"+string(doomedID))
				return errors.Is(err, tranca.ErrNotFound) || err == nil && !is.State.Running
			})
			b := open(t, o)
			if r := b.(tranca.Reporter).Report(); !r.Holds(tranca.ItemIsolation) {
				t.Fatalf("%+v", r)
			}
			if err := b.Close(t.Context()); err != nil { // which waits for the sweep
				t.Error(err)
			}
			if _, err := c.Inspect(t.Context(), "tranca-"+string(doomedID)); !errors.Is(err, tranca.ErrNotFound) {
				t.Errorf("the container of the dead one: %v", err)
			}
			if is, err := c.Inspect(t.Context(), "tranca-"+string(livingID)); err != nil || !is.State.Running {
				t.Errorf("the container of the living one: %v", err)
			}
			if _, err := c.Inspect(t.Context(), foreign); err != nil {
				t.Errorf("a container of somebody else: %v", err)
			}
			stages, _ := filepath.Glob("/run/tranca/container-*" + string(doomedID))
			if len(stages) > 0 {
				t.Errorf("left: %v", stages)
			}
		})
	}
}

// What was mounted for a sandbox is out of the host's sight while it lives.
func TestNothingIsMountedWhileASandboxLives(t *testing.T) {
	o, _ := docker.options(t)
	imageSpec{}.load(t, &o)
	b := open(t, o)
	t.Cleanup(func() { b.Close(context.Background()) })
	dir := project(t)
	spec := tranca.Spec{ID: tranca.NewID(), Policy: testPolicy(mounting(tranca.Mount{Source: dir, Target: "/m"}))}
	sb, err := b.Create(t.Context(), spec)
	if err != nil {
		t.Fatal(err)
	}
	mounts, err := os.ReadFile("/proc/self/mounts")
	stages, _ := filepath.Glob("/run/tranca/container-*" + string(spec.ID))
	if err != nil || strings.Contains(string(mounts), string(spec.ID)) || len(stages) > 0 {
		t.Errorf("%v, %v\n%s", stages, err, mounts)
	}
	if out, _ := run(t, sb, "/bin/probe", "read=/m/a", "write=/work/x", "write=/tmp/x"); out != "\"text\" <nil>\n<nil>\n<nil>\n" {
		t.Errorf("it says %q", out)
	}
	if err := sb.Close(t.Context()); err != nil {
		t.Error(err)
	}
	nothingLeft(t, o, spec.ID)
}

// Somebody removes the container in the middle of a run.
func TestAContainerIsTakenAway(t *testing.T) {
	o, _ := docker.options(t)
	imageSpec{}.load(t, &o)
	b := open(t, o)
	defer b.Close(t.Context())
	id, sb, p := createSleeper(t, b)
	if err := client(t, o).Remove(t.Context(), "tranca-"+string(id)); err != nil {
		t.Fatal(err)
	}
	exit, err := p.Wait(t.Context())
	if err == nil && exit.Reason != tranca.EndError {
		t.Errorf("it ended with %v", exit)
	}
	if err := sb.Close(t.Context()); err != nil {
		t.Errorf("close: %v", err)
	}
	nothingLeft(t, o, id)
}

// createSleeper makes a sandbox in which a program sleeps.
func createSleeper(t *testing.T, b tranca.Backend) (tranca.ID, tranca.Sandbox, tranca.Process) {
	t.Helper()
	spec := tranca.Spec{ID: tranca.NewID(), Policy: testPolicy()}
	sb, err := b.Create(t.Context(), spec)
	if err != nil {
		t.Fatal(err)
	}
	p, err := sb.Start(t.Context(), tranca.Command{Args: []string{"/bin/probe", "sleep=10m"}})
	if err != nil {
		t.Fatal(err)
	}
	return spec.ID, sb, p
}

func nothingLeft(t *testing.T, o container.Options, id tranca.ID) {
	t.Helper()
	list, err := client(t, o).List(t.Context(), "tranca.sandbox="+string(id))
	if err != nil || len(list) > 0 {
		t.Errorf("left on the engine: %v, %v", list, err)
	}
	stages, _ := filepath.Glob("/run/tranca/container-*" + string(id))
	mounts, err := os.ReadFile("/proc/self/mounts")
	if len(stages) > 0 || err != nil || strings.Contains(string(mounts), string(id)) {
		t.Errorf("left: %v, %v", stages, err)
	}
}
