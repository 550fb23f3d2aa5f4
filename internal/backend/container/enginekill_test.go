package container_test

import (
	"bytes"
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"tranca"
	"tranca/internal/backend/container"
	"tranca/internal/require"
)

// ownDocker is a Docker Engine of one test, to be killed.
type ownDocker struct {
	t      *testing.T
	dir    string
	socket string
	// containerd is the socket of the one that scripts/engines.sh has started
	// for its Docker, beside it.
	containerd string
	cmd        *exec.Cmd
}

func startOwnDocker(t *testing.T) *ownDocker {
	t.Helper()
	beside := require.Engine(t, "docker")
	program := require.Program(t, "dockerd")
	dir, err := os.MkdirTemp("/var/tmp", "engine-")
	if err != nil {
		t.Fatal(err)
	}
	d := &ownDocker{t: t, dir: dir, socket: dir + "/docker.sock", containerd: filepath.Join(filepath.Dir(beside), "containerd.sock")}
	t.Cleanup(d.end)
	d.start(program)
	return d
}

func (d *ownDocker) start(program string) {
	d.t.Helper()
	config := filepath.Join(d.dir, "daemon.json")
	if err := os.WriteFile(config, []byte(`{"bridge":"none","iptables":false,"ip6tables":false,"ip-forward":false,"ip-masq":false,"userland-proxy":false}`), 0o600); err != nil {
		d.t.Fatal(err)
	}
	log, err := os.OpenFile(filepath.Join(d.dir, "log"), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		d.t.Fatal(err)
	}
	defer log.Close()
	d.cmd = exec.Command(program, "--config-file", config, "--data-root", d.dir+"/data", "--exec-root", d.dir+"/run",
		"--pidfile", d.dir+"/pid", "--host", "unix://"+d.socket, "--cgroup-parent", "tranca-test-killed",
		"--containerd", d.containerd, "--containerd-namespace", "killed", "--containerd-plugins-namespace", "killed-plugins")
	d.cmd.Stdout, d.cmd.Stderr = log, log
	if err := d.cmd.Start(); err != nil {
		d.t.Fatal(err)
	}
	eventually(d.t, "the engine answers", func() bool {
		c, err := exec.Command("curl", "-sf", "--unix-socket", d.socket, "http://engine/_ping").Output() //nolint:gosec // fixed
		return err == nil && string(c) == "OK"
	})
}

// kill ends the engine as a crash would.
func (d *ownDocker) kill() {
	_ = d.cmd.Process.Kill()
	_ = d.cmd.Wait()
	_ = os.Remove(d.dir + "/pid")
}

func (d *ownDocker) end() {
	if d.cmd != nil {
		_ = d.cmd.Process.Signal(unix.SIGTERM)
		done := make(chan struct{})
		go func() { _ = d.cmd.Wait(); close(done) }()
		select {
		case <-done:
		case <-time.After(30 * time.Second):
			_ = d.cmd.Process.Kill()
			<-done
		}
	}
	for range 8 { // what it has mounted below its folder
		out, _ := exec.Command("sh", "-c", "awk -v d='"+d.dir+"/' 'index($2, d) == 1 {print $2}' /proc/mounts | sort -r").Output()
		for _, m := range bytes.Fields(out) {
			_ = unix.Unmount(string(m), unix.MNT_DETACH)
		}
		if os.RemoveAll(d.dir) == nil {
			break
		}
		time.Sleep(100 * time.Millisecond)
	}
	groups, _ := filepath.Glob("/sys/fs/cgroup/*/tranca-test-killed")
	for _, g := range groups {
		_ = os.Remove(g)
	}
}

// An engine is killed in the middle of a run and started anew: the run is an
// error, and then nothing is left.
func TestTheEngineIsKilled(t *testing.T) {
	d := startOwnDocker(t)
	o := container.Options{Engine: "unix://" + d.socket, CacheFolder: t.TempDir()}
	imageSpec{}.load(t, &o)
	b := open(t, o)
	id, sb, p := createSleeper(t, b)
	d.kill()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	exit, err := p.Wait(ctx)
	if ctx.Err() != nil || err == nil && exit.Reason != tranca.EndError {
		t.Errorf("it ended with %v, %v", exit, err)
	}
	closed := make(chan error, 1)
	go func() { closed <- sb.Close(context.Background()) }()
	d.start(d.cmd.Path)
	if err := <-closed; err != nil {
		t.Errorf("close: %v", err)
	}
	if err := b.Close(t.Context()); err != nil {
		t.Error(err)
	}
	nothingLeft(t, o, id)
	if _, err := client(t, o).Inspect(t.Context(), "tranca-"+string(id)); !errors.Is(err, tranca.ErrNotFound) {
		t.Errorf("the container: %v", err)
	}
}
