package process

import (
	"bytes"
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"tranca"
	"tranca/internal/hostiletest"
	"tranca/internal/require"
)

// cowFolder makes a folder of the host and a policy that shows it at /p.
func cowFolder(t *testing.T, b *Backend, files map[string]string) (dir string, p tranca.Policy) {
	t.Helper()
	dir = t.TempDir()
	for name, content := range files {
		at := filepath.Join(dir, name)
		if err := errors.Join(os.MkdirAll(filepath.Dir(at), 0o755), os.WriteFile(at, []byte(content), 0o644)); err != nil {
			t.Fatal(err)
		}
	}
	p = testPolicy(b)
	p.Mounts = []tranca.Mount{{Source: dir, Target: "/p", Cow: true}}
	return dir, p
}

// holding is what a folder holds, with change times: what was never written to
// is the same.
func holding(t *testing.T, dir string) map[string]string {
	t.Helper()
	all := map[string]string{}
	err := filepath.WalkDir(dir, func(at string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		var st unix.Stat_t
		if err := unix.Lstat(at, &st); err != nil {
			return err
		}
		content := ""
		if d.Type().IsRegular() {
			b, err := os.ReadFile(at)
			if err != nil {
				return err
			}
			content = string(b)
		}
		all[at] = d.Type().String() + content + time.Unix(st.Ctim.Unix()).String()
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return all
}

func same(a, b map[string]string) bool {
	if len(a) != len(b) {
		return false
	}
	for k, v := range a {
		if b[k] != v {
			return false
		}
	}
	return true
}

// cowRun runs a script under the policy and returns what came out, what was
// written and which limits it hit.
func cowRun(t *testing.T, b *Backend, p tranca.Policy, script string) (out string, written []string, hit []tranca.LimitHit) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	sb, err := b.Create(ctx, tranca.Spec{ID: "i00000000000000000000", Policy: p})
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := sb.Close(ctx); err != nil {
			t.Error(err)
		}
	}()
	var buf bytes.Buffer
	proc, err := sb.Start(ctx, tranca.Command{Args: []string{"sh", "-c", script}, Stdout: &buf, Stderr: &buf})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := proc.Wait(ctx); err != nil {
		t.Fatal(err)
	}
	usage, err := sb.Usage(ctx)
	if err != nil {
		t.Fatal(err)
	}
	upper := hostiletest.OpenChanges(t, sb, "/p")
	defer upper.Close()
	err = filepath.WalkDir("/proc/self/fd/"+fdName(upper)+"/", func(at string, d fs.DirEntry, err error) error {
		if _, name, ok := strings.Cut(at, fdName(upper)+"/"); ok && name != "" {
			written = append(written, name)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	reader, _ := tranca.As[tranca.ChangeReader](sb)
	if _, err := reader.OpenChanges("/work"); !errors.Is(err, tranca.ErrNotFound) {
		t.Errorf("the changes of what is no such mount: %v", err)
	}
	return buf.String(), written, usage.Hit
}

func fdName(f *os.File) string { return strconv.Itoa(int(f.Fd())) }

func TestCow(t *testing.T) {
	b := newBackend(t)
	dir, p := cowFolder(t, b, map[string]string{"a": "a\n", "d/x": "x\n", "gone": "g\n", "moved": "m\n"})
	before := holding(t, dir)
	out, written, _ := cowRun(t, b, p, `
cd /p && cat a && echo more >>a && echo new >n && rm gone && mkdir -p d/e && echo y >d/e/y && mv moved d/ && chmod 700 d/x
cat a n d/e/y; ls; test -w . && echo writable`)
	if want := "a\na\nmore\nnew\ny\na\nd\nn\nwritable\n"; out != want {
		t.Errorf("out %q, want %q", out, want)
	}
	if want := []string{"a", "d", "d/e", "d/e/y", "d/moved", "d/x", "gone", "moved", "n"}; !slices.Equal(written, want) {
		t.Errorf("written %q, want %q", written, want)
	}
	if now := holding(t, dir); !same(before, now) {
		t.Errorf("the host's folder was changed:\n%v\n%v", before, now)
	}
}

// TestCowBounded writes more to a copy-on-write folder than the sandbox's space
// has, by making, by changing and by many small files.
func TestCowBounded(t *testing.T) {
	b := newBackend(t)
	for name, c := range map[string]struct {
		script string
		want   tranca.LimitHit
	}{
		"make":   {"head -c 16M /dev/zero >/p/big; sleep .3", tranca.HitDisk},
		"append": {"while echo xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx; do :; done >>/p/a; sleep .3", tranca.HitDisk},
		"inodes": {"cd /p; i=0; while : >f$i; do i=$((i+1)); done; sleep .3", tranca.HitInodes},
	} {
		t.Run(name, func(t *testing.T) {
			dir, p := cowFolder(t, b, map[string]string{"a": "a", "large": strings.Repeat("x", 12<<20)})
			p.Limits.Disk.Size, p.Limits.Disk.Inodes, p.Limits.FileSize = 8<<20, 512, 64<<20
			before := holding(t, dir)
			out, _, hit := cowRun(t, b, p, c.script)
			if out == "" || !slices.Contains(hit, c.want) {
				t.Errorf("out %.200q, hit %v", out, hit)
			}
			if !same(before, holding(t, dir)) {
				t.Error("the host's folder was changed")
			}
		})
	}
	t.Run("copy up", func(t *testing.T) {
		_, p := cowFolder(t, b, map[string]string{"large": strings.Repeat("x", 12<<20)})
		p.Limits.Disk.Size = 8 << 20
		out, written, _ := cowRun(t, b, p, "exec 2>&1; echo x >>/p/large; wc -c </p/large")
		if !strings.Contains(out, "No space left") || !strings.HasSuffix(out, "12582912\n") || len(written) > 0 {
			t.Errorf("out %.200q, written %q", out, written)
		}
	})
}

// TestCowHidden looks for the layers from inside.
func TestCowHidden(t *testing.T) {
	b := newBackend(t)
	_, p := cowFolder(t, b, map[string]string{"a": "a"})
	out, _, _ := cowRun(t, b, p, `
echo mark-of-the-upper >/p/n
find / -xdev -name cow 2>/dev/null
find /work /tmp /dev/shm / -name n -not -path '/p/*' -not -path '/proc/*' -not -path '/usr/*' 2>/dev/null
grep -o 'upperdir=[^,]*' /proc/self/mountinfo
ls /work /tmp /dev/shm
setfattr -n user.overlay.opaque -v y /p 2>/dev/null && echo marked
echo end`)
	if strings.Contains(out, "/n") || strings.Contains(out, "/cow\n") && !strings.HasPrefix(out, "upperdir") || strings.Contains(out, "marked") {
		t.Errorf("the layers are to be seen: %q", out)
	}
}

func TestCowDenyAndProtect(t *testing.T) {
	b := newBackend(t)
	dir, p := cowFolder(t, b, map[string]string{"secret/key": "k", "d/.git/hooks/old": "o", ".envrc": "e", "s": "s"})
	if err := unix.Chmod(filepath.Join(dir, "s"), 0o4755); err != nil {
		t.Fatal(err)
	}
	p.Mounts[0].Deny = []string{"secret"}
	p.Mounts[0].Protect = []string{".git/hooks", ".envrc"}
	out, written, _ := cowRun(t, b, p, `exec 2>/dev/null; cd /p
cat secret/key; echo x >secret/new; echo x >.envrc; echo x >d/.git/hooks/evil; rm -rf d; mv d e; mv secret s2; echo x >s
cat .envrc d/.git/hooks/old; echo fine >f`)
	if out != "eo" {
		t.Errorf("out %q", out)
	}
	if want := []string{"d", "d/.git", "f"}; !slices.Equal(written, want) && !slices.Equal(written, []string{"f"}) {
		t.Errorf("written %q", written)
	}
}

func TestCowRefused(t *testing.T) {
	b := newBackend(t)
	dir, p := cowFolder(t, b, map[string]string{"a": "a"})
	create := func(change func(m *tranca.Mount)) error {
		t.Helper()
		p := p.Clone()
		change(&p.Mounts[0])
		sb, err := b.Create(context.Background(), tranca.Spec{ID: "i00000000000000000000", Policy: p})
		if err == nil {
			_ = sb.Close(context.Background())
		}
		return err
	}
	if err := create(func(m *tranca.Mount) { m.Source = filepath.Join(dir, "a") }); !errors.Is(err, tranca.ErrInvalid) {
		t.Errorf("a file: %v", err)
	}
	if err := create(func(m *tranca.Mount) { m.Deny = []string{"none"} }); !errors.Is(err, tranca.ErrInvalid) {
		t.Errorf("a denied path that is not there: %v", err)
	}
	if err := create(func(m *tranca.Mount) { m.Source = "/dev" }); err == nil {
		t.Error("a folder with other file systems in it was mounted")
	}
}

// TestCowOfAnother shows a folder that belongs to another user of the host: its
// owner is the code's user inside, as in a writable mount, and stays what it is
// outside.
func TestCowOfAnother(t *testing.T) {
	require.Root(t)
	b := newBackend(t)
	dir, p := cowFolder(t, b, map[string]string{"a": "a"})
	for _, name := range []string{dir, filepath.Join(dir, "a")} {
		if err := os.Chown(name, 1234, 1234); err != nil {
			t.Fatal(err)
		}
	}
	out, _, _ := cowRun(t, b, p, `cd /p; echo x >>a && echo n >n && stat -c '%u %n' . a n`)
	if want := "1000 .\n1000 a\n1000 n\n"; out != want {
		t.Errorf("out %q, want %q", out, want)
	}
}

func TestCowOnDisk(t *testing.T) {
	require.Root(t)
	require.Program(t, "mkfs.ext4")
	b := newBackend(t)
	dir, p := cowFolder(t, b, map[string]string{"a": "a", "d/x": "x"})
	p.Limits.Disk = tranca.Disk{Size: 16 << 20, Inodes: 4096, Backing: tranca.BackingFile}
	before := holding(t, dir)
	out, written, _ := cowRun(t, b, p, `cd /p; echo n >a && rm -r d && mkdir d && ls d && cat a`)
	if out != "n\n" || !slices.Equal(written, []string{"a", "d"}) {
		t.Errorf("out %q, written %q", out, written)
	}
	if !same(before, holding(t, dir)) {
		t.Error("the host's folder was changed")
	}
}
