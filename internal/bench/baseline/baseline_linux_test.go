package baseline

import (
	"bytes"
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"tranca"
	"tranca/internal/bench"
	"tranca/internal/bench/measure"
	"tranca/internal/hoststate"
	"tranca/internal/policy"
	"tranca/internal/require"
)

// open returns the runner of a baseline, which must be able to run here.
func open(t *testing.T, s measure.Subject) measure.Runner {
	t.Helper()
	if s.About.Unavailable != "" {
		t.Fatalf("%s: %s", s.About.Name, s.About.Unavailable)
	}
	r, err := s.Open(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// answers runs programs by a baseline: one that prints, one that writes where it
// starts, and one that fails.
func answers(t *testing.T, r measure.Runner) {
	t.Helper()
	var out bytes.Buffer
	if err := r.Run(t.Context(), "print(6*7)", &out); err != nil || out.String() != "42\n" {
		t.Errorf("%q, %v", out.String(), err)
	}
	if err := r.Run(t.Context(), "open('own', 'w').write('x' * 100000)", &out); err != nil {
		t.Errorf("it can't write where it starts: %v", err)
	}
	if err := r.Run(t.Context(), "raise SystemExit('no luck')", &out); err == nil || !strings.Contains(err.Error(), "no luck") {
		t.Errorf("a program that fails: %v", err)
	}
}

// ends stops a program in the middle, and looks for what is left of it.
func ends(t *testing.T, r measure.Runner) {
	t.Helper()
	before, err := hoststate.Running()
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancelCause(t.Context())
	boom := errors.New("enough")
	started := writer(func([]byte) { cancel(boom) })
	if err := r.Run(ctx, "import time\nprint('on', flush=True)\ntime.sleep(3600)", started); !errors.Is(err, boom) {
		t.Errorf("stopped: %v", err)
	}
	for deadline := time.Now().Add(20 * time.Second); ; time.Sleep(100 * time.Millisecond) {
		own, _, err := hoststate.Since(before)
		if err != nil {
			t.Fatal(err)
		}
		if len(own) == 0 {
			break
		}
		if time.Now().After(deadline) {
			t.Errorf("processes %v are left", own)
			break
		}
	}
}

type writer func([]byte)

func (w writer) Write(p []byte) (int, error) {
	w(p)
	return len(p), nil
}

func TestBaselines(t *testing.T) {
	require.Program(t, "python3")
	python, err := Python()
	if err != nil {
		t.Fatal(err)
	}
	ctx := t.Context()
	for _, c := range []struct {
		name string
		need func(*testing.T)
		make func() measure.Subject
	}{
		{Bare, func(*testing.T) {}, func() measure.Subject { return Subjects(ctx, Options{Getenv: none})[0] }},
		{Bubblewrap, func(t *testing.T) { require.Program(t, "bwrap") }, func() measure.Subject { return bubblewrap(ctx, python) }},
		{RunscDo, func(t *testing.T) {
			t.Setenv("PATH", filepath.Dir(require.Sentry(t))+":"+os.Getenv("PATH"))
		}, func() measure.Subject { return runscDo(ctx, python) }},
	} {
		t.Run(c.name, func(t *testing.T) {
			c.need(t)
			s := c.make()
			if s.About.Name != c.name || s.About.Version == "" || !slices.Contains(s.About.Command, codeWord) {
				t.Errorf("%+v", s.About)
			}
			r := open(t, s)
			answers(t, r)
			ends(t, r)
			if err := r.Close(ctx); err != nil {
				t.Error(err)
			}
		})
	}
}

func TestDockerRun(t *testing.T) {
	socket, image := require.Engine(t, "docker"), require.Image(t)
	env := map[string]string{"TRANCA_CONTAINER_ENGINE": "unix://" + socket, "TRANCA_CONTAINER_IMAGE": image}
	all := dockerRuns(t.Context(), Options{Getenv: func(n string) string { return env[n] }, Policy: policy.Default()})
	if len(all) != 1 || !strings.HasPrefix(all[0].About.Version, "Engine ") {
		t.Fatalf("%+v", all)
	}
	r := open(t, all[0])
	answers(t, r)
	ends(t, r)
	if err := r.Close(t.Context()); err != nil {
		t.Error(err)
	}
	out, err := exec.Command("docker", "-H", "unix://"+socket, "ps", "--all", "--quiet", "--filter", "name=tranca-bench-").Output()
	if err != nil || len(out) > 0 {
		t.Errorf("containers are left: %q, %v", out, err)
	}
}

func none(string) string { return "" }

// TestWhatIsNotInstalledIsListed takes all programs away.
func TestWhatIsNotInstalledIsListed(t *testing.T) {
	t.Setenv("PATH", t.TempDir())
	names := map[string]bool{}
	for _, s := range Subjects(t.Context(), Options{Getenv: none})[1:] {
		names[s.About.Name] = true
		if s.About.Unavailable == "" || s.About.Kind != bench.KindBaseline {
			t.Errorf("%+v", s.About)
		}
	}
	for _, want := range []string{Bubblewrap, Firejail, RunscDo, DockerRun} {
		if !names[want] {
			t.Errorf("%s is dropped", want)
		}
	}
}

func TestDockerHost(t *testing.T) {
	for in, want := range map[string]string{
		"unix:///run/x.sock": "unix:///run/x.sock", "/run/x.sock": "unix:///run/x.sock", "docker": "", "": "",
	} {
		if got := DockerHost(in); got != want {
			t.Errorf("%q: %q, want %q", in, got, want)
		}
	}
}

func TestLevelsOfRuntimes(t *testing.T) {
	for name, want := range map[string]tranca.Level{
		"runc": tranca.LevelContainer, "crun": tranca.LevelContainer, "tranca-runsc": tranca.LevelGVisor, "kata-qemu": tranca.LevelMicroVM,
	} {
		if got := levelOf(name); got != want {
			t.Errorf("%s: %s, want %s", name, got, want)
		}
	}
}
