package container_test

import (
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"tranca"
	"tranca/internal/backend/container"
	engineapi "tranca/internal/backend/container/docker"
	"tranca/internal/guest/bootspec"
)

// project is a folder of the host with what matters in one.
func project(t *testing.T) string {
	t.Helper()
	dir := hostFolder(t)
	for name, content := range map[string]string{
		"a": "text", ".git/hooks/pre-commit": "hook", "secret/key": "key", "deny.txt": "denied", "sub/file": "x",
	} {
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(content), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

func mounting(m tranca.Mount) func(*tranca.Policy) {
	return func(p *tranca.Policy) { p.Mounts = []tranca.Mount{m} }
}

// waived takes from a policy what the engine lacks here.
func waived(t *testing.T, b tranca.Backend) func(*tranca.Policy) {
	t.Helper()
	r := b.(tranca.Reporter).Report()
	return func(p *tranca.Policy) {
		for _, item := range tranca.Waivable() {
			if !r.Holds(item) {
				p.Waive = append(p.Waive, item)
			}
		}
		if !r.Holds(tranca.ItemMemory) {
			p.Limits.Memory = 4 << 30 // of addresses then, of which a Go program reserves many
		}
	}
}

func TestMountsDocker(t *testing.T)         { testMounts(t, docker, "") }
func TestMountsDockerGVisor(t *testing.T)   { testMounts(t, docker, "tranca-runsc") }
func TestMountsPodmanRootless(t *testing.T) { testMounts(t, rootless, "") }

// testMounts tries mounts that tranca makes itself and those that the engine
// makes.
func testMounts(t *testing.T, e engineUnderTest, runtime string) {
	o, here := e.options(t)
	if !here {
		return
	}
	imageSpec{}.load(t, &o)
	b := open(t, o)
	defer b.Close(t.Context())
	lacks := waived(t, b)
	if runtime != "" {
		lacks = func(p *tranca.Policy) { p.Runtime, p.Waive = runtime, []tranca.Item{tranca.ItemPIDs} }
	}
	t.Run("read-only", func(t *testing.T) {
		dir := project(t)
		sb := create(t, b, testPolicy(lacks, mounting(tranca.Mount{Source: dir, Target: "/m"})))
		out, _ := run(t, sb, "/bin/probe", "read=/m/a", "write=/m/b", "write=/m/a")
		if out != "\"text\" <nil>\nopen /m/b: read-only file system\nopen /m/a: read-only file system\n" {
			t.Errorf("it says %q", out)
		}
	})
	t.Run("one file", func(t *testing.T) {
		dir := project(t)
		sb := create(t, b, testPolicy(lacks, mounting(tranca.Mount{Source: dir + "/a", Target: "/m/only"})))
		if out, _ := run(t, sb, "/bin/probe", "read=/m/only", "list=/m"); out != "\"text\" <nil>\n/m [only] <nil>\n" {
			t.Errorf("it says %q", out)
		}
	})
	t.Run("writable", func(t *testing.T) {
		if runtime != "" {
			testWritableOfGuest(t, b, lacks)
			return
		}
		dir := project(t)
		sb := create(t, b, testPolicy(lacks, mounting(tranca.Mount{
			Source: dir, Target: "/m", Writable: true, DiskUnbounded: true,
			Deny: []string{"secret", "deny.txt"}, Protect: []string{".git/hooks"},
		})))
		out, _ := run(t, sb, "/bin/probe", "ids", "write=/m/b", "write=/m/.git/hooks/pre-commit", "write=/m/.git/hooks/new",
			"try=rename|/m/.git", "try=list|/m/secret", "read=/m/deny.txt", "dial=/m/a")
		lines := strings.Split(out, "\n")
		for i, want := range []string{
			"1000 1000 1000 1000", "<nil>", "open /m/.git/hooks/pre-commit: read-only file system",
			"open /m/.git/hooks/new: read-only file system", "rename|/m/.git\tdenied: rename /m/.git /m/.git.moved: device or resource busy",
			"list|/m/secret\tdenied", "\"\" ", "dial unix /m/a: socket: permission denied",
		} {
			if i >= len(lines) || !strings.HasPrefix(lines[i], want) {
				t.Errorf("line %d is not %q in:\n%s", i, want, out)
			}
		}
		info, err := os.Stat(dir + "/b")
		if err != nil || int(info.Sys().(*syscall.Stat_t).Uid) != os.Geteuid() {
			t.Errorf("what it wrote: %+v, %v", info, err)
		}
		if text, err := os.ReadFile(dir + "/secret/key"); err != nil || string(text) != "key" {
			t.Errorf("the denied file is %q, %v", text, err)
		}
	})
	t.Run("swapped", func(t *testing.T) { testSwapped(t, b, lacks) })
}

// testWritableOfGuest: what is beneath a kernel of its own is not protected by
// mounts. This has let code rename .git and plant a hook.
func testWritableOfGuest(t *testing.T, b tranca.Backend, lacks func(*tranca.Policy)) {
	dir := project(t)
	m := tranca.Mount{Source: dir, Target: "/m", Writable: true, DiskUnbounded: true}
	below := project(t)
	if err := syscall.Mount("below", below+"/sub", "tmpfs", 0, "size=4096"); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = syscall.Unmount(below+"/sub", syscall.MNT_DETACH) })
	for _, held := range []tranca.Mount{
		{Source: dir, Protect: []string{".git/hooks"}}, {Source: dir, Deny: []string{"deny.txt"}}, {Source: below},
	} {
		held.Target, held.Writable, held.DiskUnbounded = m.Target, true, true
		sb, err := b.Create(t.Context(), tranca.Spec{ID: tranca.NewID(), Policy: testPolicy(lacks, mounting(held))})
		if sb != nil || err == nil || !strings.Contains(err.Error(), "rename what is mounted over") {
			t.Errorf("%+v: %v", held, err)
		}
	}
	sb := create(t, b, testPolicy(lacks, mounting(m)))
	if out, _ := run(t, sb, "/bin/probe", "write=/m/b", "read=/m/a"); out != "<nil>\n\"text\" <nil>\n" {
		t.Errorf("it says %q", out)
	}
	info, err := os.Stat(dir + "/b")
	if err != nil || int(info.Sys().(*syscall.Stat_t).Uid) != os.Geteuid() {
		t.Errorf("what it wrote: %+v, %v", info, err)
	}
}

// testSwapped puts another folder in a mount's place after it was looked at.
func testSwapped(t *testing.T, b tranca.Backend, lacks func(*tranca.Policy)) {
	dir, other := project(t), project(t)
	if err := os.WriteFile(other+"/a", []byte("canary"), 0o644); err != nil {
		t.Fatal(err)
	}
	swapped := false
	container.Weaken(b, func(*engineapi.Config, *bootspec.Spec) {
		if swapped {
			return
		}
		swapped = true
		if err := os.Rename(dir, dir+".old"); err != nil {
			t.Error(err)
		}
		if err := os.Symlink(other, dir); err != nil {
			t.Error(err)
		}
	})
	defer container.Weaken(b, nil)
	defer os.RemoveAll(dir + ".old")
	sb, err := b.Create(t.Context(), tranca.Spec{ID: tranca.NewID(), Policy: testPolicy(lacks, mounting(tranca.Mount{Source: dir, Target: "/m"}))})
	if err != nil {
		if !strings.Contains(err.Error(), "not what was asked for") {
			t.Errorf("refused: %v", err)
		}
		return
	}
	defer sb.Close(t.Context())
	if out, _ := run(t, sb, "/bin/probe", "read=/m/a"); out != "\"text\" <nil>\n" {
		t.Errorf("it says %q", out)
	}
}

func TestMountsThatAreRefused(t *testing.T) {
	o, _ := docker.options(t)
	b := open(t, o)
	defer b.Close(t.Context())
	dir := project(t)
	if err := os.Symlink(dir, dir+"/link"); err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		mount tranca.Mount
		word  string
	}{
		"a link":        {tranca.Mount{Source: dir + "/link", Target: "/m"}, "symbolic link"},
		"below a link":  {tranca.Mount{Source: dir + "/link/sub", Target: "/m"}, "symbolic link"},
		"missing":       {tranca.Mount{Source: dir + "/none", Target: "/m"}, "no such file"},
		"a device":      {tranca.Mount{Source: "/dev/null", Target: "/m"}, "device"},
		"without bound": {tranca.Mount{Source: dir, Target: "/m", Writable: true}, "nothing bounds"},
	} {
		sb, err := b.Create(t.Context(), tranca.Spec{ID: tranca.NewID(), Policy: testPolicy(mounting(c.mount))})
		if sb != nil || err == nil || !strings.Contains(err.Error(), c.word) {
			t.Errorf("%s: %v", name, err)
		}
	}
}
