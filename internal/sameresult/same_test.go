//go:build linux

package sameresult

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/rogpeppe/go-internal/txtar"

	"tranca"
	"tranca/internal/app/backends"
	"tranca/internal/engine"
	"tranca/internal/policy"
	"tranca/internal/require"
)

var update = flag.Bool("update", false, "write what the process backend gives as the golden file")

const golden = "testdata/golden.txtar"

// common is the policy of all programs, but for its backend.
func common() tranca.Policy {
	p := policy.Default()
	p.Floor = tranca.LevelProcess
	l := &p.Limits
	l.Wall, l.CPUTime, l.MilliCPUs = 30*time.Second, 20*time.Second, 2000
	l.Memory, l.Processes, l.OpenFiles, l.FileSize = memory, 32, 64, 2<<20
	l.Disk.Size, l.Disk.Inodes = 8<<20, 1000
	l.Output.Size = output
	return p
}

// TestProcess holds the process backend against the golden file, which it is
// written by.
func TestProcess(t *testing.T) {
	require.Root(t)
	same(t, func(p *tranca.Policy) { p.Backend = "process" })
}

// same runs all programs but some on one backend, each by a policy of its own.
func same(t *testing.T, backend func(*tranca.Policy), but ...string) {
	want := read(t)
	all := slices.DeleteFunc(programs(), func(p program) bool { return slices.Contains(but, p.name) })
	if len(all)+len(but) != len(programs()) {
		t.Errorf("%q are not all programs", but)
	}
	e := open(t, all, backend)
	var mu sync.Mutex
	got := map[string]string{}
	t.Run("programs", func(t *testing.T) {
		for _, p := range all {
			t.Run(p.name, func(t *testing.T) {
				t.Parallel()
				text := p.told(t, e)
				mu.Lock()
				got[p.name] = text
				mu.Unlock()
				if diff := cmp.Diff(want[p.name], text); diff != "" && !*update {
					t.Errorf("(-golden +here):\n%s", diff)
				}
			})
		}
	})
	if *update && !t.Failed() {
		write(t, all, got)
	}
}

// read returns the golden file by the names of the programs, which are those
// that there are.
func read(t *testing.T) map[string]string {
	t.Helper()
	want := map[string]string{}
	archive, err := txtar.ParseFile(golden)
	if err != nil && !*update {
		t.Fatal(err)
	}
	if err == nil {
		for _, f := range archive.Files {
			want[f.Name] = string(f.Data)
		}
	}
	names := map[string]bool{}
	for _, p := range programs() {
		if names[p.name] {
			t.Fatalf("two programs are called %s", p.name)
		}
		names[p.name] = true
	}
	for name := range want {
		if !names[name] && !*update {
			t.Errorf("the golden file has %s, and there is no such program", name)
		}
	}
	return want
}

func write(t *testing.T, all []program, got map[string]string) {
	t.Helper()
	archive := txtar.Archive{Comment: []byte("What an agent is told of each program, on every backend.\n" +
		"go test ./internal/sameresult -run TestProcess -update writes it anew.\n")}
	for _, p := range all {
		archive.Files = append(archive.Files, txtar.File{Name: p.name, Data: []byte(got[p.name])})
	}
	if err := os.WriteFile(golden, txtar.Format(&archive), 0o644); err != nil {
		t.Fatal(err)
	}
}

// open makes an engine with a profile for each program.
func open(t *testing.T, all []program, backend func(*tranca.Policy)) *engine.Engine {
	t.Helper()
	cfg := engine.Config{Policy: common(), MaxTTL: -1}
	for _, p := range all {
		in := common()
		backend(&in)
		if p.policy != nil {
			p.policy(&in)
		}
		if p.shared != "" {
			in.Mounts = []tranca.Mount{share(t, p.shared)}
		}
		cfg.Profiles = append(cfg.Profiles, engine.Profile{Name: p.name, Policy: in})
	}
	backends, err := backends.All(0)
	if err != nil {
		t.Fatal(err)
	}
	cfg.Backends = backends
	e, err := engine.New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := e.Close(context.Background()); err != nil {
			t.Error(err)
		}
	})
	return e
}

// told runs the program and returns what there is to compare.
func (p program) told(t *testing.T, e *engine.Engine) string {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	req := tranca.Request{
		Code: p.code, Language: p.language, Command: p.command, Args: p.args, Narrow: p.narrow, Profile: p.name,
		Stdin: strings.NewReader(p.stdin),
	}
	if p.cancel {
		req.Stdout = onWrite(cancel)
	}
	res, err := e.Run(ctx, req)
	if err != nil {
		return failed(t, err)
	}
	for _, note := range res.Notes {
		if !strings.Contains(note, "has known holes") {
			t.Log("note:", note)
		}
	}
	return p.describe(t, res)
}

// onWrite is called when something is written to it.
type onWrite func()

func (f onWrite) Write(p []byte) (int, error) {
	f()
	return len(p), nil
}

// share makes a folder with a few files, and shows it.
func share(t *testing.T, mode string) tranca.Mount {
	t.Helper()
	source := t.TempDir()
	for name, text := range map[string]string{
		"old": "old", "gone": "gone", ".git/hooks/pre-commit": "hook", ".git/config": "config", "secret/key": "key",
	} {
		path := filepath.Join(source, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	m, err := policy.ParseMount(source + ":/shared:" + mode)
	if err != nil {
		t.Fatal(err)
	}
	m.Deny = []string{"secret"}
	return m
}

// failed says of what class an error is. It has no view: nothing has run.
func failed(t *testing.T, err error) string {
	t.Helper()
	var refused *tranca.RefusalError // of the policy, which is no answer of the program's
	for _, class := range []error{tranca.ErrNotFound, tranca.ErrInvalid, tranca.ErrRefused} {
		if errors.Is(err, class) && !errors.As(err, &refused) {
			return "error: " + class.Error() + "\n"
		}
	}
	t.Fatal(err)
	return ""
}

// describe writes the agent's view, with output that is long by its digest, and
// what the operator is told of the end.
func (p program) describe(t *testing.T, res *tranca.Result) string {
	t.Helper()
	v := res.AgentView()
	if p.trace {
		v.Stderr = lastLine(v.Stderr)
	}
	v.Stdout, v.Stderr = short(v.Stdout), short(v.Stderr)
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	enc.SetIndent("", "  ")
	for _, part := range []any{v, res.Exit, res.LimitsHit} {
		if err := enc.Encode(part); err != nil {
			t.Fatal(err)
		}
	}
	return b.String()
}

func lastLine(s string) string {
	s = strings.TrimRight(s, "\n")
	return s[strings.LastIndexByte(s, '\n')+1:]
}

func short(s string) string {
	const most = 200
	if len(s) <= most {
		return s
	}
	return fmt.Sprintf("%d bytes, %q..., sha256 %x", len(s), s[:20], sha256.Sum256([]byte(s)))
}

// TestGVisor holds gVisor against what the process backend gives.
func TestGVisor(t *testing.T) {
	require.Root(t)
	require.Part(t, "gvisor")
	same(t, func(p *tranca.Policy) { p.Backend = "gvisor" })
}

// TestContainer holds containers against it, by the runtimes with which they
// give the same.
func TestContainer(t *testing.T) {
	require.Root(t)
	for _, c := range []struct {
		engine, runtime string
		waive           []tranca.Item
		but             []string
	}{
		{"docker", "runc", nil, nil},
		// It counts processes by itself and loosely, which is waived, and mounts
		// that it can't protect are refused.
		{"docker", "tranca-runsc", []tranca.Item{tranca.ItemPIDs}, []string{"fork-bomb", "threads", "processes", "share-written"}},
		{"podman", "", nil, nil},
	} {
		t.Run(c.engine+" "+c.runtime, func(t *testing.T) {
			socket := require.Engine(t, c.engine)
			t.Setenv("TRANCA_CONTAINER_ENGINE", "unix://"+socket)
			t.Setenv("TRANCA_CONTAINER_IMAGE", require.Image(t))
			same(t, func(p *tranca.Policy) { p.Backend, p.Runtime, p.Waive = "container", c.runtime, c.waive }, c.but...)
		})
	}
}
