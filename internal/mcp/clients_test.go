package mcp_test

import (
	"bytes"
	"context"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	"tranca"
	"tranca/internal/app"
	"tranca/internal/cli"
	"tranca/internal/policy"
	"tranca/internal/require"
)

// serveVariable makes the test binary the command line of tranca, so that
// foreign clients can start it.
const serveVariable = "TRANCA_TEST_SERVE"

func TestMain(m *testing.M) {
	if os.Getenv(serveVariable) != "" {
		os.Exit(cli.Main(context.Background(), app.World(), append([]string{"tranca"}, os.Args[1:]...)))
	}
	goleak.VerifyTestMain(m)
}

// installed returns a path below the folder that scripts/mcp-clients.sh fills.
func installed(t *testing.T, part, name string) string {
	t.Helper()
	path, err := filepath.Abs(filepath.Join("../../.cache/mcp", name))
	if err == nil {
		_, err = os.Stat(path)
	}
	require.Check(t, part, err == nil, "scripts/mcp-clients.sh has not been run")
	return path
}

// home returns a folder for a server's user, whose policy is the default but
// for the floor: what is tested here is the same above every backend, and the
// process backend starts soonest.
func home(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	folder := filepath.Join(dir, ".config", "tranca")
	err := os.MkdirAll(folder, 0o700)
	if err == nil {
		err = os.WriteFile(filepath.Join(folder, "policy.yaml"), []byte("version: 1\nfloor: process\n"), 0o600)
	}
	if err != nil {
		t.Fatal(err)
	}
	return dir
}

// needProcess asks for a host on which the process backend holds all that the
// policy of home needs.
func needProcess(t *testing.T) {
	t.Helper()
	asked := policy.Default()
	asked.Floor = tranca.LevelProcess
	missing := "the process backend is not in this build"
	for _, p := range app.World().Probe(t.Context()) {
		switch {
		case p.Backend != "process":
		case p.Err != nil:
			missing = p.Err.Error()
		default:
			missing = ""
			for _, problem := range policy.Check(asked, p.Report) {
				missing = string(problem.Item) + ": " + problem.Missing
			}
		}
	}
	require.Check(t, "process", missing == "", missing)
}

// client runs a foreign client, which starts this test binary as its server.
func client(t *testing.T, name string, args ...string) (stdout, stderr string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 3*time.Minute)
	defer cancel()
	cmd := exec.CommandContext(ctx, name, args...)
	cmd.Env = append(os.Environ(), serveVariable+"=1", "HOME="+home(t), "XDG_CONFIG_HOME=")
	var out, errs bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &errs
	if err := cmd.Run(); err != nil {
		t.Errorf("%s: %v\n%s%s", name, err, out.String(), errs.String())
	}
	return out.String(), errs.String()
}

func self(t *testing.T) string {
	t.Helper()
	path, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	return path
}

func TestThePythonClient(t *testing.T) {
	python := installed(t, "mcp-python", "venv/bin/python")
	needProcess(t)
	out, log := client(t, python, "testdata/client.py", self(t), "mcp")
	if out != "ok\n" {
		t.Errorf("it said %q", out)
	}
	if !strings.Contains(log, "tool=run_python") || strings.Contains(log, "server session") {
		t.Errorf("the log has a line for each call and no other:\n%s", log)
	}
}

func TestTheInspector(t *testing.T) {
	inspector := installed(t, "mcp-inspector", "inspector/node_modules/.bin/mcp-inspector")
	needProcess(t)
	// --strict fails on a schema that some client can't take.
	// It gives its server only the variables that it is told.
	serve := []string{"--cli", "-e", serveVariable + "=1", self(t), "mcp"}
	out, _ := client(t, inspector, append(serve, "--method", "tools/list", "--strict")...)
	var tools struct {
		Tools []struct{ Name, Description string } `json:"tools"`
	}
	if err := json.Unmarshal([]byte(out), &tools); err != nil || len(tools.Tools) != 12 {
		t.Fatalf("tools: %v in %s", err, out)
	}
	out, _ = client(t, inspector, append(serve, "--method", "tools/call",
		"--tool-name", "run_python", "--tool-arg", "code=print(6*7)")...)
	var result struct {
		IsError           bool `json:"isError"`
		StructuredContent struct {
			Stdout  string `json:"stdout"`
			Success bool   `json:"success"`
		} `json:"structuredContent"`
	}
	if err := json.Unmarshal([]byte(out), &result); err != nil {
		t.Fatalf("result: %v in %s", err, out)
	}
	if result.IsError || !result.StructuredContent.Success || result.StructuredContent.Stdout != "42\n" {
		t.Errorf("result %s", out)
	}
}
