package whole

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"tranca"
	"tranca/client"
	"tranca/internal/app"
	"tranca/internal/cli"
	"tranca/internal/policy"
	"tranca/internal/require"
)

// serveVariable makes the test binary be the command.
const serveVariable = "TRANCA_TEST_SERVE"

func TestMain(m *testing.M) {
	if os.Getenv(serveVariable) != "" {
		os.Exit(cli.Main(context.Background(), app.World(), os.Args))
	}
	// What a killed server leaves becomes a child of this process.
	if err := unix.Prctl(unix.PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0); err != nil {
		panic(err)
	}
	os.Exit(m.Run())
}

// waivers are the flags of a policy for what this host can't enforce for this
// user. The test is skipped where the process backend can't run at all.
func waivers(t *testing.T) string {
	t.Helper()
	items, why := probed()
	require.Check(t, "process", why == "", why)
	if len(items) == 0 {
		return "version: 1\nfloor: process\n"
	}
	return "version: 1\nfloor: process\nwaive: [" + strings.Join(items, ", ") + "]\n"
}

var probed = sync.OnceValues(func() (items []string, why string) {
	why = "it is not in this build"
	for _, p := range app.World().Probe(context.Background()) {
		if p.Backend != "process" {
			continue
		}
		if p.Err != nil {
			return nil, p.Err.Error()
		}
		why = ""
		asked := policy.Default()
		asked.Floor = tranca.LevelProcess
		for _, problem := range policy.Check(asked, p.Report) {
			items = append(items, string(problem.Item))
			if !problem.Waivable {
				why = string(problem.Item) + ": " + problem.Missing
			}
		}
	}
	return items, why
})

// server is a running command.
type server struct {
	t      *testing.T
	cmd    *exec.Cmd
	dir    string
	socket string
	// places is the line that it printed.
	places string
	log    text
	ended  chan error
}

// text is what the command writes while it is looked at.
type text struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (x *text) Write(p []byte) (int, error) {
	x.mu.Lock()
	defer x.mu.Unlock()
	return x.b.Write(p)
}

func (x *text) String() string {
	x.mu.Lock()
	defer x.mu.Unlock()
	return x.b.String()
}

// serve starts the command and waits until it listens.
func serve(t *testing.T, dir string, args ...string) *server {
	t.Helper()
	s := begin(t, dir, args...)
	if s.places == "" {
		t.Fatalf("it does not listen: %v %s", <-s.ended, s.log.String())
	}
	return s
}

// begin starts the command and reads the line that it prints, which is empty
// where it ended without.
func begin(t *testing.T, dir string, args ...string) *server {
	t.Helper()
	file := filepath.Join(dir, "policy.yaml")
	if err := os.WriteFile(file, []byte(waivers(t)), 0o600); err != nil {
		t.Fatal(err)
	}
	s := &server{t: t, dir: dir, socket: filepath.Join(dir, "s.sock"), ended: make(chan error, 1)}
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	s.cmd = exec.Command(self, append([]string{"serve", "--socket", s.socket, "--policy", file}, args...)...)
	s.cmd.Env = append(os.Environ(), serveVariable+"=1")
	s.cmd.Stderr = &s.log
	out, err := s.cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := s.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	s.places, _ = bufio.NewReader(out).ReadString('\n')
	go func() {
		_, _ = io.Copy(io.Discard, out)
		s.ended <- s.cmd.Wait()
		close(s.ended)
	}()
	t.Cleanup(func() {
		_ = s.cmd.Process.Kill()
		<-s.ended
	})
	return s
}

// stop sends a signal and returns how the command ended.
func (s *server) stop(sig syscall.Signal) error {
	s.t.Helper()
	if err := s.cmd.Process.Signal(sig); err != nil {
		s.t.Fatal(err)
	}
	select {
	case err := <-s.ended:
		return err
	case <-time.After(time.Minute):
		s.t.Fatal("it does not end")
		return errors.New("it does not end")
	}
}

// client returns a client of the server.
func (s *server) client() *client.Client {
	s.t.Helper()
	c, err := client.New(client.WithSocket(s.socket))
	if err != nil {
		s.t.Fatal(err)
	}
	s.t.Cleanup(func() { c.Close() })
	return c
}

// folder returns a short folder for a socket, of this user alone.
func folder(t *testing.T) string {
	t.Helper()
	dir, err := os.MkdirTemp("", "whole-")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	return dir
}

// childless waits until no process is left below this one.
func childless(t *testing.T) {
	t.Helper()
	for end := time.Now().Add(30 * time.Second); time.Now().Before(end); time.Sleep(20 * time.Millisecond) {
		var status unix.WaitStatus
		if _, err := unix.Wait4(-1, &status, unix.WNOHANG, nil); errors.Is(err, unix.ECHILD) {
			return
		}
	}
	t.Error("processes are left")
}

func httpClient(socket string) *http.Client {
	return &http.Client{Transport: &http.Transport{DisableKeepAlives: true, DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
		return (&net.Dialer{}).DialContext(ctx, "unix", socket)
	}}}
}
