package process

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"tranca"
	"tranca/internal/confine"
	"tranca/internal/hostiletest"
	"tranca/internal/require"
)

// newBackend makes a backend that is closed with the test.
func newBackend(t testing.TB) *Backend {
	t.Helper()
	b, err := New(Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { hostiletest.Close(t, "backend", b) })
	return b
}

// testPolicy is a usual policy, less what this host can't enforce for this
// user: what is waived is not what these tests are about.
func testPolicy(b *Backend) tranca.Policy {
	p := *trialPolicy()
	p.Waive, p.Limits = hostiletest.Lacking(&b.report), hostiletest.Limits(30*time.Second)
	return p
}

// run runs one command in a fresh sandbox.
func run(t testing.TB, b *Backend, p tranca.Policy, args ...string) hostiletest.Outcome {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	sb, err := b.Create(ctx, tranca.Spec{ID: "i00000000000000000000", Policy: p})
	if err != nil {
		t.Fatal(err)
	}
	defer closeBox(t, sb)
	return ended(t, hostiletest.Run(t, sb, tranca.Command{Args: args}))
}

// folder makes a host folder that the test's user owns, reachable by all.
func folder(t testing.TB, files map[string]string) string {
	t.Helper()
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	for name, content := range files {
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

func TestReadOnlyMount(t *testing.T) {
	b := newBackend(t)
	dir := folder(t, map[string]string{"a": "from the host", "secret/key": "k", "deep/.env": "e"})
	p := testPolicy(b)
	p.Mounts = []tranca.Mount{{Source: dir, Target: "/data", Deny: []string{"secret", "deep/.env", "absent"}}}
	r := run(t, b, p, "sh", "-c", `cat /data/a; echo; (echo x >/data/b) 2>&1; cat /data/secret/key 2>&1; ls /data/secret 2>&1; cat /data/deep/.env 2>&1; exit 0`)
	if !strings.HasPrefix(r.Stdout, "from the host\n") {
		t.Errorf("the mount can't be read: %q %q", r.Stdout, r.Stderr)
	}
	for _, want := range []string{"Read-only file system", "/data/secret/key", "/data/deep/.env: Permission denied"} {
		if !strings.Contains(r.Stdout, want) {
			t.Errorf("no %q in %q", want, r.Stdout)
		}
	}
	if _, err := os.Stat(filepath.Join(dir, "b")); err == nil {
		t.Error("a read-only mount was written to")
	}
}

func TestWritableMountKeepsItsOwner(t *testing.T) {
	b := newBackend(t)
	dir := folder(t, map[string]string{"old": "1"})
	p := testPolicy(b)
	p.Mounts = []tranca.Mount{{Source: dir, Target: "/work/project", Writable: true, DiskUnbounded: true}}
	r := run(t, b, p, "sh", "-c", `set -e; cd /work/project; echo 2 >new; echo 3 >>old; mkdir d; stat -c %u new old . d`)
	if !r.Exit.Success() {
		t.Fatalf("%v: %s", r.Exit, r.Stderr)
	}
	if r.Stdout != "1000\n1000\n1000\n1000\n" {
		t.Errorf("owners inside: %q", r.Stdout)
	}
	var st syscall.Stat_t
	for _, name := range []string{"new", "old", "d"} {
		if err := syscall.Stat(filepath.Join(dir, name), &st); err != nil {
			t.Fatal(err)
		}
		if int(st.Uid) != os.Geteuid() || int(st.Gid) != os.Getegid() {
			t.Errorf("%s belongs to %d:%d outside", name, st.Uid, st.Gid)
		}
	}
}

// A protected file must stay as it is however the code goes about it: writing,
// replacing, or moving the folders above it away and making others.
func TestProtectedFilesStay(t *testing.T) {
	b := newBackend(t)
	dir := folder(t, map[string]string{
		".git/hooks/pre-commit": "safe", ".git/config": "safe", "vendor/x/.git/hooks/h": "safe", "vendor/x/f": "1",
	})
	p := testPolicy(b)
	p.Mounts = []tranca.Mount{{
		Source: dir, Target: "/p", Writable: true, DiskUnbounded: true,
		Protect: []string{".git/hooks", ".git/config"},
	}}
	r := run(t, b, p, "sh", "-c", `cd /p
echo evil >.git/hooks/pre-commit; echo evil >.git/hooks/new; rm -rf .git/hooks; echo evil >.git/config; rm -f .git/config
mv .git .git2; mv .git/hooks .git/h2; mv vendor vendor2; mv vendor/x vendor/y; mv vendor/x/.git vendor/x/g
mkdir -p .git/hooks vendor/x/.git/hooks; echo evil >vendor/x/.git/hooks/h; echo 2 >vendor/x/f; ln -sfn /tmp .git; exit 0`)
	if !r.Exit.Success() {
		t.Fatalf("%v: %s", r.Exit, r.Stderr)
	}
	for _, f := range []string{".git/hooks/pre-commit", ".git/config", "vendor/x/.git/hooks/h"} {
		got, err := os.ReadFile(filepath.Join(dir, f))
		if err != nil || string(got) != "safe" {
			t.Errorf("%s: %q %v", f, got, err)
		}
	}
	if got, _ := os.ReadFile(filepath.Join(dir, "vendor/x/f")); string(got) != "2\n" {
		t.Errorf("the rest can't be written: %q", got)
	}
}

func TestBadMountSources(t *testing.T) {
	b := newBackend(t)
	dir := folder(t, map[string]string{"real/f": "x"})
	if err := os.Symlink("real", filepath.Join(dir, "link")); err != nil {
		t.Fatal(err)
	}
	if err := unix.Mkfifo(filepath.Join(dir, "fifo"), 0o600); err != nil {
		t.Fatal(err)
	}
	for name, source := range map[string]string{
		"missing": dir + "/none", "link": dir + "/link", "link above": dir + "/link/f",
		"device": "/dev/null", "fifo": dir + "/fifo", "below a file": dir + "/real/f/x",
	} {
		t.Run(name, func(t *testing.T) {
			p := testPolicy(b)
			p.Mounts = []tranca.Mount{{Source: source, Target: "/m"}}
			_, err := b.Create(context.Background(), tranca.Spec{ID: "i0", Policy: p})
			if !errors.Is(err, tranca.ErrInvalid) {
				t.Fatalf("got %v", err)
			}
			if !strings.Contains(err.Error(), source) {
				t.Errorf("the error does not name the source: %v", err)
			}
		})
	}
}

// A socket of the host in a mount is a way out that no mount flag closes.
func TestHostSocketInMount(t *testing.T) {
	b := newBackend(t)
	dir := folder(t, nil)
	fd, err := unix.Socket(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer unix.Close(fd)
	if err := unix.Bind(fd, &unix.SockaddrUnix{Name: dir + "/s"}); err != nil {
		t.Fatal(err)
	}
	if err := unix.Listen(fd, 8); err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(dir+"/s", 0o777); err != nil {
		t.Fatal(err)
	}
	const code = "import socket\ntry:\n s=socket.socket(socket.AF_UNIX); s.connect('/m/s'); print('reached')\nexcept OSError as e: print('denied', e)"
	for _, writable := range []bool{false, true} {
		p := testPolicy(b)
		p.Mounts = []tranca.Mount{{Source: dir, Target: "/m", Writable: writable, DiskUnbounded: writable}}
		if r := run(t, b, p, "/usr/bin/python3", "-I", "-c", code); !strings.HasPrefix(r.Stdout, "denied") {
			t.Errorf("writable %v: %q %q", writable, r.Stdout, r.Stderr)
		}
		// Without the filter the socket is reached: the probe can fail.
		b.weaken = b.switches()[tranca.ItemSyscalls]
		if r := run(t, b, p, "/usr/bin/python3", "-I", "-c", code); !strings.HasPrefix(r.Stdout, "reached") {
			t.Errorf("control, writable %v: %q %q", writable, r.Stdout, r.Stderr)
		}
		b.weaken = nil
	}
}

// A writable space on disk holds more than the memory limit, to its size.
func TestSpaceOnDisk(t *testing.T) {
	require.Root(t)
	b := newBackend(t)
	p := testPolicy(b)
	p.Limits.Memory = 32 << 20
	p.Limits.FileSize = 1 << 30
	p.Limits.Disk = tranca.Disk{Size: 64 << 20, Inodes: 1000, Backing: tranca.BackingFile}
	r := run(t, b, p, "sh", "-c", `set -e; head -c 40M /dev/zero >/work/a; stat -c "%u %s" /work/a; touch /tmp/x; rm /work/a; echo 1 >/dev/shm/y`)
	if !r.Exit.Success() || r.Stdout != "1000 41943040\n" {
		t.Fatalf("%v %q %q", r.Exit, r.Stdout, r.Stderr)
	}
	r = run(t, b, p, "sh", "-c", `head -c 80M /dev/zero >/work/a`)
	if r.Exit.Code != 1 || !slices.Contains(r.Usage.Hit, tranca.HitDisk) {
		t.Errorf("beyond the size: %v %q hit %v", r.Exit, r.Stderr, r.Usage.Hit)
	}
	loops, _ := filepath.Glob("/sys/block/loop*/loop/backing_file")
	for _, l := range loops {
		if name, _ := os.ReadFile(l); strings.HasPrefix(string(name), confine.SpaceFolder) {
			t.Errorf("a loop device is left: %s", name)
		}
	}
}

func TestSpaceOnDiskIsRefusedWithoutRoot(t *testing.T) {
	require.Unprivileged(t)
	b := newBackend(t)
	p := testPolicy(b)
	p.Limits.Disk.Backing = tranca.BackingFile
	_, err := b.Create(context.Background(), tranca.Spec{ID: "i0", Policy: p})
	if !errors.Is(err, tranca.ErrRefused) {
		t.Fatal(err)
	}
}
