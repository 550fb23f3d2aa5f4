package cli

import (
	"bytes"
	"context"
	"errors"
	"io"
	"os"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"tranca"
	"tranca/internal/policy"
)

// recorder is an engine that keeps what it was given and answers with a
// function.
type recorder struct {
	policy tranca.Policy
	req    tranca.Request
	closed bool
	answer func(ctx context.Context, req tranca.Request) (*tranca.Result, error)
}

func (r *recorder) Run(ctx context.Context, req tranca.Request) (*tranca.Result, error) {
	r.req = req
	if r.answer == nil {
		return &tranca.Result{Exit: tranca.Exit{Reason: tranca.EndExited}}, nil
	}
	return r.answer(ctx, req)
}

func (r *recorder) Close(context.Context) error {
	r.closed = true
	return nil
}

// tried is what a command line did.
type tried struct {
	status         int
	stdout, stderr string
}

// try runs a command line over the recorder.
func try(t *testing.T, r *recorder, stdin io.Reader, args ...string) tried {
	t.Helper()
	var stdout, stderr bytes.Buffer
	w := worldOf(r, stdin, &stdout, &stderr)
	status := Main(t.Context(), w, append([]string{"tranca"}, args...))
	return tried{status, stdout.String(), stderr.String()}
}

func worldOf(r *recorder, stdin io.Reader, stdout, stderr io.Writer) World {
	return World{
		Stdin: stdin, Stdout: stdout, Stderr: stderr,
		Getenv:     func(string) string { return "" },
		Quit:       func(int) {},
		FindPolicy: func(string) (tranca.Policy, bool, error) { return tranca.Policy{}, false, nil },
		Open: func(p tranca.Policy) (Engine, error) {
			r.policy = p
			return r, nil
		},
		Guest: func() string { return "" },
	}
}

func TestArgumentsBecomeTheRequest(t *testing.T) {
	file := t.TempDir() + "/program.py"
	if err := os.WriteFile(file, []byte("from file"), 0o600); err != nil {
		t.Fatal(err)
	}
	tests := []struct {
		name  string
		args  []string
		code  string
		rest  []string
		stdin string // what the program may read
	}{
		{"code", []string{"-c", "x"}, "x", nil, "in"},
		{"code and arguments", []string{"-c", "x", "--", "--timeout", "y"}, "x", []string{"--timeout", "y"}, "in"},
		{"code that begins with a dash", []string{"-c", "-x"}, "-x", nil, "in"},
		{"code with blanks", []string{"-c", "  x\n "}, "  x\n ", nil, "in"},
		{"file", []string{file}, "from file", nil, "in"},
		{"file and arguments", []string{file, "--", "-a", "b"}, "from file", []string{"-a", "b"}, "in"},
		{"standard input", []string{"-"}, "in", nil, ""},
		{"standard input and arguments", []string{"-", "--", "-a"}, "in", []string{"-a"}, ""},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			r := &recorder{}
			got := try(t, r, strings.NewReader("in"), append([]string{"run"}, tt.args...)...)
			if got.status != 0 || !r.closed {
				t.Fatalf("status %d, engine closed %v: %s", got.status, r.closed, got.stderr)
			}
			if r.req.Code != tt.code || !slices.Equal(r.req.Args, tt.rest) || r.req.Language != "python" {
				t.Errorf("request %q %q in %s", r.req.Code, r.req.Args, r.req.Language)
			}
			var in []byte
			if r.req.Stdin != nil {
				in, _ = io.ReadAll(r.req.Stdin)
			}
			if string(in) != tt.stdin {
				t.Errorf("the program reads %q, want %q", in, tt.stdin)
			}
		})
	}
}

func TestFlagsBecomeThePolicy(t *testing.T) {
	r := &recorder{}
	got := try(t, r, nil, "run", "-c", "x", "--timeout", "5s", "--cpu-time", "4s", "--cpus", "0.5",
		"--memory", "512MiB", "--pids", "7", "--output-limit", "2KiB", "--disk", "32MiB",
		"--mount", "/srv/data:/data", "--mount", "/srv/out:/out:rw", "--env", "A=1,2", "--env", "B= c",
		"--workdir", "/data", "--waive", "landlock", "--isolation", "gvisor", "--backend", "other")
	if got.status != 0 {
		t.Fatalf("status %d: %s", got.status, got.stderr)
	}
	l := r.policy.Limits
	if l.Wall != 5*time.Second || l.CPUTime != 4*time.Second || l.MilliCPUs != 500 || l.Memory != 512<<20 ||
		l.Processes != 7 || l.Output.Size != 2<<10 || l.Disk.Size != 32<<20 {
		t.Errorf("limits %+v", l)
	}
	m := r.policy.Mounts
	if len(m) != 2 || m[0].Writable || !m[1].Writable || !m[1].DiskUnbounded || len(m[1].Protect) == 0 {
		t.Errorf("mounts %+v", m)
	}
	if r.policy.Env["A"] != "1,2" || r.policy.Env["B"] != " c" || r.policy.Workdir != "/data" {
		t.Errorf("environment %q, folder %s", r.policy.Env, r.policy.Workdir)
	}
	if !r.policy.Waives(tranca.ItemLandlock) || r.policy.Floor != tranca.LevelGVisor || r.policy.Backend != "other" || r.policy.Source != policy.SourceFlags {
		t.Errorf("policy %+v", r.policy)
	}
}

func TestARelativeMountSourceIsMeantFromHere(t *testing.T) {
	t.Chdir(t.TempDir())
	here, err := os.Getwd()
	if err != nil {
		t.Fatal(err)
	}
	r := &recorder{}
	if got := try(t, r, nil, "run", "-c", "x", "--mount", "./data:/data"); got.status != 0 {
		t.Fatal(got.stderr)
	}
	if m := r.policy.Mounts; len(m) != 1 || m[0].Source != here+"/data" {
		t.Errorf("mounts %+v, here is %s", m, here)
	}
}

func TestStatuses(t *testing.T) {
	tests := []struct {
		exit tranca.Exit
		err  error
		want int
	}{
		{exit: tranca.Exit{Reason: tranca.EndExited}, want: 0},
		{exit: tranca.Exit{Reason: tranca.EndExited, Code: 255}, want: 255},
		{exit: tranca.Exit{Reason: tranca.EndSignaled, Code: -1, Signal: 11}, want: 139},
		{exit: tranca.Exit{Reason: tranca.EndWall, Code: -1}, want: 124},
		{exit: tranca.Exit{Reason: tranca.EndCPU, Code: -1}, want: 124},
		{exit: tranca.Exit{Reason: tranca.EndMemory, Code: -1}, want: 124},
		{exit: tranca.Exit{Reason: tranca.EndOutput, Code: -1}, want: 124},
		{exit: tranca.Exit{Reason: tranca.EndClosed, Code: -1}, want: 125},
		{exit: tranca.Exit{Reason: tranca.EndError, Code: -1}, want: 125},
		{err: tranca.ErrRefused, want: 126},
		{err: tranca.ErrUnavailable, want: 126},
		{err: &tranca.RefusalError{Problems: []tranca.Problem{{Item: tranca.ItemUser}}}, want: 126},
		{err: tranca.ErrNotFound, want: 127},
		{err: tranca.ErrInvalid, want: 125},
		{err: tranca.ErrBusy, want: 125},
		{err: errors.New("anything"), want: 125},
	}
	for _, tt := range tests {
		r := &recorder{answer: func(context.Context, tranca.Request) (*tranca.Result, error) {
			return &tranca.Result{Exit: tt.exit}, tt.err
		}}
		if got := try(t, r, nil, "run", "-c", "x"); got.status != tt.want {
			t.Errorf("%v %v: status %d, want %d", tt.exit, tt.err, got.status, tt.want)
		}
	}
}

// TestAReaderThatGoesAwayEndsTheRunQuietly uses a pipe without a reader.
func TestAReaderThatGoesAwayEndsTheRunQuietly(t *testing.T) {
	reader, writer, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	reader.Close()
	defer writer.Close()
	r := &recorder{answer: func(ctx context.Context, req tranca.Request) (*tranca.Result, error) {
		if _, err := io.WriteString(req.Stdout, "x"); err != nil {
			return nil, err
		}
		<-ctx.Done() // the run is ended, or this test is by its deadline
		return &tranca.Result{Exit: tranca.Exit{Code: -1, Reason: tranca.EndClosed}}, nil
	}}
	var stderr bytes.Buffer
	status := Main(t.Context(), worldOf(r, nil, writer, &stderr), []string{"tranca", "run", "-c", "x"})
	if status != 128+int(syscall.SIGPIPE) || stderr.Len() > 0 {
		t.Errorf("status %d, said %q", status, stderr.String())
	}
}

func TestOutputThatCannotBeWrittenIsAnError(t *testing.T) {
	full, err := os.OpenFile("/dev/full", os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer full.Close()
	r := &recorder{answer: func(_ context.Context, req tranca.Request) (*tranca.Result, error) {
		_, err := io.WriteString(req.Stdout, "x")
		return &tranca.Result{Exit: tranca.Exit{Reason: tranca.EndExited}}, err
	}}
	var stderr bytes.Buffer
	status := Main(t.Context(), worldOf(r, nil, full, &stderr), []string{"tranca", "run", "-c", "x"})
	if status != statusFailed || !strings.Contains(stderr.String(), "no space left") {
		t.Errorf("status %d, said %q", status, stderr.String())
	}
}

func TestHostileTextInMessagesIsMadeVisible(t *testing.T) {
	r := &recorder{answer: func(context.Context, tranca.Request) (*tranca.Result, error) {
		return &tranca.Result{Exit: tranca.Exit{Reason: tranca.EndExited}, Notes: []string{"a\x1b[2Jb"}}, nil
	}}
	if got := try(t, r, nil, "run", "-c", "x"); got.stderr != "tranca: a^[[2Jb\n" {
		t.Errorf("said %q", got.stderr)
	}
	r.answer = func(context.Context, tranca.Request) (*tranca.Result, error) { return nil, errors.New("a\x1b]0;x\ab") }
	if got := try(t, r, nil, "run", "-c", "x"); got.stderr != "tranca: a^[]0;x^Gb\n" {
		t.Errorf("said %q", got.stderr)
	}
}

func TestCodeFromANeverEndingFile(t *testing.T) {
	got := try(t, &recorder{}, nil, "run", "/dev/zero")
	if got.status != statusFailed || !strings.Contains(got.stderr, "larger than 64 MiB") {
		t.Errorf("status %d: %s", got.status, got.stderr)
	}
}

func TestReadingCodeStopsWithTheContext(t *testing.T) {
	reader, writer := io.Pipe()
	defer writer.Close()
	why := errors.New("why")
	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(why)
	if _, err := readCode(ctx, reader, "x"); !errors.Is(err, why) {
		t.Errorf("got %v", err)
	}
}
