package container_test

import (
	"errors"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"tranca"
	"tranca/internal/backend/container"
	"tranca/internal/require"
)

// engineUnderTest is one that scripts/engines.sh has started.
type engineUnderTest struct {
	part     string // what a test asks for
	rootless bool
}

var (
	docker   = engineUnderTest{"docker", false}
	podman   = engineUnderTest{"podman", false}
	rootless = engineUnderTest{"podman-rootless", true}
)

// options are those for a backend on the engine. The test is skipped without
// it. A test on the rootless engine runs as its user, in another process, and
// there is nothing left to do here.
func (e engineUnderTest) options(t *testing.T) (o container.Options, here bool) {
	t.Helper()
	socket, image := require.Engine(t, e.part), require.Image(t)
	if e.rootless {
		if asOwner(t, socket) {
			return o, false
		}
	} else {
		require.Root(t)
	}
	dir := t.TempDir()
	return container.Options{Engine: "unix://" + socket, Image: image, CacheFolder: dir + "/cache"}, true
}

// asOwner runs the test again as the user that a socket belongs to, unless it
// is that one already.
func asOwner(t *testing.T, socket string) bool {
	t.Helper()
	info, err := os.Stat(socket)
	if err != nil {
		t.Fatal(err)
	}
	st := info.Sys().(*syscall.Stat_t)
	if int(st.Uid) == os.Geteuid() {
		return false
	}
	require.Root(t)
	u, err := user.LookupId(strconv.Itoa(int(st.Uid)))
	if err != nil {
		t.Fatal(err)
	}
	// The test's own folder lies in one that only root enters.
	dir, err := os.MkdirTemp("", "container")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	if err := errors.Join(os.Chmod(dir, 0o755), os.Chown(dir, int(st.Uid), int(st.Gid))); err != nil { //nolint:gosec // another user's
		t.Fatal(err)
	}
	binary := copyBinary(t, dir)
	cmd := exec.Command(binary, "-test.v", "-test.timeout=9m", "-test.run=^"+strings.ReplaceAll(t.Name(), "/", "$/^")+"$")
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), "HOME="+dir, "TMPDIR="+dir, "USER="+u.Username, "XDG_RUNTIME_DIR=", "XDG_CACHE_HOME=",
		"TRANCA_REQUIRE_LOG=") // this process has noted what it asked for
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: st.Uid, Gid: st.Gid}}
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("as user %s: %v\n%s", u.Username, err, out)
	}
	t.Logf("as user %s:\n%s", u.Username, out)
	return true
}

// copyBinary copies the test's own program to where another user can run it.
func copyBinary(t *testing.T, dir string) string {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(self)
	if err != nil {
		t.Fatal(err)
	}
	// A run's own folder for temporary files, above this one, is closed to
	// others; that of the host is not.
	above, err := os.Stat(filepath.Dir(dir))
	if err != nil {
		t.Fatal(err)
	}
	if above.Mode().Perm()&1 == 0 {
		if err := os.Chmod(filepath.Dir(dir), above.Mode().Perm()|0o011); err != nil {
			t.Fatal(err)
		}
	}
	at := dir + "/container.test"
	if err := os.WriteFile(at, text, 0o755); err != nil { //nolint:gosec // to be run by another user
		t.Fatal(err)
	}
	return at
}

func open(t *testing.T, o container.Options) tranca.Backend {
	t.Helper()
	b, err := container.New(o)
	if err != nil {
		t.Fatal(err)
	}
	return b
}
