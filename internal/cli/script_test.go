package cli_test

import (
	"context"
	"errors"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/rogpeppe/go-internal/testscript"

	"tranca"
	"tranca/internal/advise"
	"tranca/internal/advisory"
	"tranca/internal/app"
	"tranca/internal/backend"
	"tranca/internal/backend/fake"
	"tranca/internal/bench"
	"tranca/internal/cli"
	"tranca/internal/engine"
	"tranca/internal/hostcheck"
	"tranca/internal/policy"
	"tranca/internal/policyfile"
	"tranca/internal/require"
)

// TestMain lets the test binary be the command of the scripts: a real process
// with real streams, signals and exit status, over a backend in memory.
func TestMain(m *testing.M) {
	testscript.Main(m, map[string]func(){"tranca": func() {
		w := world
		if os.Getenv("REAL") != "" {
			w = app.World
		}
		os.Exit(cli.Main(context.Background(), w(), os.Args))
	}})
}

// world is what the scripts' tranca stands on. Variables choose what the host
// lacks: FAKE_MISSING lists items, FAKE_UNAVAILABLE says why nothing runs.
func world() cli.World {
	return cli.World{
		Stdin: os.Stdin, Stdout: os.Stdout, Stderr: os.Stderr,
		Getenv: os.Getenv, Quit: os.Exit,
		FindPolicy: func(path string) (tranca.Policy, bool, error) {
			work := os.Getenv("WORK")
			return policyfile.Find(policyfile.Options{
				Path: path, SystemDir: filepath.Join(work, "system"), UserDir: filepath.Join(work, "user"),
			})
		},
		Open: func(p tranca.Policy) (cli.Engine, error) {
			r, err := backend.NewRegistry(fakes()...)
			if err != nil {
				return nil, err
			}
			e, err := engine.New(engine.Config{Backends: r, Policy: p, Logger: slog.New(slog.DiscardHandler)})
			if err != nil {
				return nil, err
			}
			return app.Inside(e)
		},
		Probe: func(ctx context.Context) []cli.Probed {
			var all []cli.Probed
			for _, b := range fakes() {
				report, err := b.Probe(ctx)
				all = append(all, cli.Probed{Backend: b.Name(), Report: report, Err: err})
			}
			return all
		},
		Inspect:       inspectFake,
		Evidence:      fakeEvidence,
		Hostile:       fakeHostile,
		HostileProbes: fakeProbes,
		Bench:         func(ctx context.Context, s cli.BenchSetup) (*bench.Result, error) { return benchResult(s), nil },
		Guest:         func() string { return "0123abcd" },
	}
}

// inspectFake looks at a host made of the files in FAKE_HOST, by the list that
// is named.
func inspectFake(ctx context.Context, setup cli.InspectSetup) (cli.Inspection, error) {
	seen := cli.Inspection{Probed: world().Probe(ctx)}
	root := os.Getenv("FAKE_HOST")
	if root == "" {
		return seen, nil
	}
	checks, err := hostcheck.Named(setup.Checks, os.ReadFile)
	if err != nil {
		return seen, err
	}
	h := &hostcheck.Host{FS: os.DirFS(root), Root: root, Holes: advisory.BuiltIn()}
	for _, p := range seen.Probed {
		h.Reports = append(h.Reports, p.Report)
	}
	seen.Checks = hostcheck.Run(ctx, checks, h)
	seen.Behaviour = func(a tranca.Advisory) (string, []string) { return h.Behaviour(a, seen.Checks) }
	seen.Lists = []cli.ListInForce{{Name: "checks", Source: checks.Source, Date: checks.Date, Note: checks.Note}}
	return seen, nil
}

// fakeEvidence is that process was measured, and that hostile programs got
// through in the backend that FAKE_BROKEN names.
func fakeEvidence() advise.Evidence {
	when := time.Date(2026, 11, 30, 0, 0, 0, 0, time.UTC)
	e := advise.Evidence{Bench: &advise.Bench{When: when, Costs: map[string]advise.Cost{
		"process": {FirstByteMS: 30, Ratio: 1.5, RatioLow: 1.4, RatioHigh: 1.6, PerSecond: 50, IdleMiB: 6},
	}}}
	if name := os.Getenv("FAKE_BROKEN"); name != "" {
		e.Hostile = &advise.Hostile{When: when, Held: map[string]advise.Held{name: {Contained: 8, Escaped: 1, Promised: []string{"fs-home"}}}}
	}
	return e
}

func fakes() []tranca.Backend {
	o := fake.Options{Name: "process", Level: tranca.LevelProcess}
	for _, item := range strings.Fields(os.Getenv("FAKE_MISSING")) {
		o.Missing = append(o.Missing, tranca.Item(item))
	}
	if os.Getenv("FAKE_HOLE") != "" {
		o.Advisories = []tranca.Advisory{{
			ID: "CVE-2024-21626", Component: "runc", Version: "1.1.5", FixedIn: "1.1.12", Needs: "control of the working directory",
		}}
	}
	if why := os.Getenv("FAKE_UNAVAILABLE"); why != "" {
		o.ProbeErr = unavailable(why)
	}
	return []tranca.Backend{
		fake.New(fake.Options{Name: "subprocess", Level: tranca.LevelSubprocess}), fake.New(o), fake.New(gvisorLike(o)),
	}
}

// gvisorLike is the default: it lacks what the weaker one lacks.
func gvisorLike(o fake.Options) fake.Options {
	o.Name, o.Level = "gvisor", tranca.LevelGVisor
	if why := os.Getenv("FAKE_NO_GVISOR"); why != "" {
		o.ProbeErr = unavailable(why)
	}
	return o
}

func unavailable(why string) func() error {
	return func() error {
		return &tranca.RefusalError{Unavailable: true, Problems: []tranca.Problem{{
			Item: tranca.ItemUser, Asked: "user: user", Missing: why, Mend: "install newuidmap",
		}}}
	}
}

func TestScripts(t *testing.T) { runScripts(t, "testdata/script") }

// TestRealScripts runs the command as it is shipped. It needs a host on which
// the process backend holds all that it promises.
func TestRealScripts(t *testing.T) {
	missing := "the process backend is not in this build"
	for _, p := range app.World().Probe(t.Context()) {
		if p.Backend == "process" {
			missing = lacks(p)
		}
	}
	require.Check(t, "process", missing == "", missing)
	runScripts(t, "testdata/real", "REAL=1")
}

// lacks says what a backend lacks here, or "".
func lacks(p cli.Probed) string {
	if p.Err != nil {
		return p.Err.Error()
	}
	asked := policy.Default()
	asked.Floor = tranca.LevelProcess
	for _, problem := range policy.Check(asked, p.Report) {
		return string(problem.Item) + ": " + problem.Missing
	}
	return ""
}

func runScripts(t *testing.T, dir string, env ...string) {
	testscript.Run(t, testscript.Params{
		Dir: dir,
		Setup: func(e *testscript.Env) error {
			e.Vars = append(e.Vars, env...)
			// The home that testscript gives is /no-home, which root would make.
			e.Vars = append(e.Vars, "HOME="+filepath.Join(e.WorkDir, "home"))
			// A policy that others could write is refused, so the folders of
			// the scripts must not depend on the umask.
			return os.Chmod(e.WorkDir, 0o755)
		},
		Cmds: map[string]func(*testscript.TestScript, bool, []string){
			"status": status, "interrupt": interrupt, "setid": setID, "server": serveScript,
		},
		UpdateScripts: os.Getenv("UPDATE_SCRIPTS") != "",
	})
}

// status runs a command and checks its exit status: status 124 tranca run ...
func status(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 2 {
		ts.Fatalf("usage: status CODE COMMAND...")
	}
	want, err := strconv.Atoi(args[0])
	ts.Check(err)
	got := 0
	if err := ts.Exec(args[1], args[2:]...); err != nil {
		var exit *exec.ExitError
		if !errors.As(err, &exit) {
			ts.Fatalf("%v", err)
		}
		if got = exit.ExitCode(); got < 0 {
			ts.Fatalf("it died: %v", err)
		}
	}
	if got != want {
		ts.Fatalf("exit status %d, want %d", got, want)
	}
}

// setID sets ID to the last output: setid stdout.
func setID(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 1 {
		ts.Fatalf("usage: setid FILE")
	}
	ts.Setenv("ID", strings.TrimSpace(ts.ReadFile(args[0])))
}

// serveScript starts a server, which the script's commands then speak to. It is
// stopped at the script's end, and must leave nothing then.
func serveScript(ts *testscript.TestScript, neg bool, args []string) {
	if neg {
		ts.Fatalf("usage: server [FLAG...]")
	}
	folder, err := os.MkdirTemp("", "tranca") // a socket's path must be short
	ts.Check(err)
	ts.Defer(func() { os.RemoveAll(folder) })
	socket := filepath.Join(folder, "s")
	cmd := exec.Command("tranca", "serve", "--socket", socket, "--grace", "1s", "--log-level", "error")
	cmd.Args = append(cmd.Args, args...)
	cmd.Dir = ts.MkAbs(".")
	cmd.Env = append(os.Environ(), "REAL="+ts.Getenv("REAL"), "WORK="+ts.Getenv("WORK"), "XDG_STATE_HOME="+ts.Getenv("XDG_STATE_HOME"))
	out, err := cmd.StdoutPipe()
	ts.Check(err)
	var log strings.Builder
	cmd.Stderr = &log
	ts.Check(cmd.Start())
	ts.Defer(func() {
		_ = cmd.Process.Signal(syscall.SIGTERM)
		if err := cmd.Wait(); err != nil {
			ts.Fatalf("the server ended with %v: %s", err, log.String())
		}
	})
	if line, err := readLine(out); err != nil || !strings.Contains(line, socket) {
		ts.Fatalf("the server says %q, %v", line, err)
	}
	ts.Setenv("TRANCA_SERVER", socket)
}

// interrupt runs a command whose first output says that it is under way, sends
// it signals, and checks how it ends: interrupt INT,INT 130 tranca run ...
func interrupt(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 3 {
		ts.Fatalf("usage: interrupt SIGNALS STATUS COMMAND...")
	}
	want, err := strconv.Atoi(args[1])
	ts.Check(err)
	cmd := exec.Command(args[2], args[3:]...)
	cmd.Dir = ts.MkAbs(".")
	cmd.Env = append(os.Environ(), "WORK="+ts.Getenv("WORK"), "PATH="+ts.Getenv("PATH"), "REAL="+ts.Getenv("REAL"),
		"TRANCA_SERVER="+ts.Getenv("TRANCA_SERVER"), "FAKE_HOSTILE="+ts.Getenv("FAKE_HOSTILE"))
	stdout, err := cmd.StdoutPipe()
	ts.Check(err)
	var stderr strings.Builder
	cmd.Stderr = &stderr
	ts.Check(cmd.Start())
	timer := time.AfterFunc(time.Minute, func() { cmd.Process.Kill() })
	defer timer.Stop()
	if _, err := stdout.Read(make([]byte, 1)); err != nil {
		ts.Fatalf("it wrote nothing: %v %s", err, stderr.String())
	}
	for _, name := range strings.Split(args[0], ",") {
		ts.Check(cmd.Process.Signal(map[string]syscall.Signal{
			"INT": syscall.SIGINT, "TERM": syscall.SIGTERM, "HUP": syscall.SIGHUP,
		}[name]))
	}
	err = cmd.Wait()
	ts.Logf("%v\n%s", err, stderr.String())
	if got := cmd.ProcessState.ExitCode(); got != want {
		ts.Fatalf("exit status %d, want %d", got, want)
	}
}
