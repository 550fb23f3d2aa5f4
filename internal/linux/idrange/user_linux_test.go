package idrange

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"tranca/internal/require"
)

// nobody is a user without ranges on any host.
const nobody = 65534

// helpAsNobody puts a folder's files over those of /etc, in a mount namespace
// of its own, and runs tests as another user there.
func helpAsNobody(etc, run string) error {
	if err := unix.Mount("", "/", "", unix.MS_REC|unix.MS_PRIVATE, ""); err != nil {
		return err
	}
	for _, name := range []string{"subuid", "subgid"} {
		if err := unix.Mount(filepath.Join(etc, name), "/etc/"+name, "", unix.MS_BIND, ""); err != nil {
			return err
		}
	}
	if err := syscall.Setgroups(nil); err != nil {
		return err
	}
	if err := syscall.Setresgid(nobody, nobody, nobody); err != nil {
		return err
	}
	if err := syscall.Setresuid(nobody, nobody, nobody); err != nil {
		return err
	}
	os.Unsetenv(helperEnv)
	os.Unsetenv("TRANCA_REQUIRE_LOG") // it is root's
	return syscall.Exec("/proc/self/exe", []string{"test", "-test.v", "-test.run", run}, os.Environ())
}

// asNobody runs a test of this binary as a user with the given ranges.
func asNobody(t *testing.T, ranges, provides, run string) {
	t.Helper()
	require.Root(t)
	require.Program(t, "newuidmap")
	for _, name := range []string{"/etc/subuid", "/etc/subgid"} {
		_, err := os.Stat(name)
		require.Check(t, "subid-files", err == nil, name+" is missing, nothing can be mounted there")
	}
	etc := files(t, map[string]string{"subuid": ranges, "subgid": ranges})
	for _, f := range []string{"subuid", "subgid"} {
		if err := os.Chmod(filepath.Join(etc, f), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	cmd := exec.Command("/proc/self/exe", etc, run)
	cmd.Env = append(os.Environ(), helperEnv+"=nobody", "TMPDIR=/tmp", "TRANCA_PROVIDES="+provides)
	cmd.Dir = "/"
	cmd.SysProcAttr = &syscall.SysProcAttr{Cloneflags: unix.CLONE_NEWNS}
	out, err := cmd.CombinedOutput()
	if err != nil || !strings.Contains(string(out), "--- PASS: "+strings.Trim(run, "^$")) {
		t.Errorf("as user %d: %v\n%s", nobody, err, out)
	}
}

func TestMapAsUser(t *testing.T) {
	asNobody(t, "nobody:700000:64\n", "subids", "^TestMap$")
}

func TestMapAsUserByNumber(t *testing.T) {
	asNobody(t, "65534:700001:64\n", "subids", "^TestMap$")
}

func TestOpenAsUserWithoutRanges(t *testing.T) {
	asNobody(t, "somebody:700000:64\n", "no-subids", "^TestOpenWithoutRanges$")
}
