package changeset

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/sys/unix"
	"pgregory.net/rapid"

	"tranca/internal/require"
)

// overlay mounts the host folder under the upper one, as a sandbox does, and
// returns where, and what takes it down.
func (w *world) overlay() (merged string, down func()) {
	w.t.Helper()
	base := filepath.Dir(w.host)
	space := filepath.Join(base, "space")
	w.must(os.Mkdir(space, 0o755))
	w.must(unix.Mount("tmpfs", space, "tmpfs", 0, "size=16m"))
	w.upper = filepath.Join(space, "upper")
	for _, dir := range []string{"upper", "work", "merged"} {
		w.must(os.Mkdir(filepath.Join(space, dir), 0o755))
	}
	merged = filepath.Join(space, "merged")
	options := fmt.Sprintf("lowerdir=%s,upperdir=%s,workdir=%s,userxattr,index=off,metacopy=off,xino=off",
		w.host, w.upper, filepath.Join(space, "work"))
	w.must(unix.Mount("overlay", merged, "overlay", 0, options))
	return merged, func() {
		_ = unix.Unmount(merged, unix.MNT_DETACH)
		_ = unix.Unmount(space, unix.MNT_DETACH)
	}
}

// op is one thing that a program does.
type op struct{ what, a, b, data string }

func (o op) String() string { return o.what + " " + o.a + " " + o.b }

// do does it below a folder. What can't be done is as it is for a program.
func (o op) do(root string) {
	a, b := filepath.Join(root, o.a), filepath.Join(root, o.b)
	switch o.what {
	case "write":
		_ = os.WriteFile(a, []byte(o.data), 0o644)
	case "append":
		if f, err := os.OpenFile(a, os.O_WRONLY|os.O_APPEND|unix.O_NOFOLLOW, 0); err == nil {
			_, _ = f.WriteString(o.data)
			f.Close()
		}
	case "mkdir":
		_ = os.Mkdir(a, 0o755)
	case "remove":
		_ = os.Remove(a)
	case "removeAll":
		_ = os.RemoveAll(a)
	case "rename":
		if os.Rename(a, b) != nil {
			move(a, b)
		}
	case "chmod":
		if info, err := os.Lstat(a); err == nil && info.Mode()&os.ModeSymlink == 0 {
			mode, _ := strconv.ParseUint(o.data, 8, 32)
			_ = os.Chmod(a, os.FileMode(mode))
		}
	case "symlink":
		_ = os.Symlink(o.data, a)
	case "link":
		_ = os.Link(a, b)
	}
}

// move does what mv does where a folder can't be renamed, as in an overlay.
func move(a, b string) {
	info, err := os.Lstat(a)
	if err != nil || !info.IsDir() || strings.HasPrefix(b+"/", a+"/") {
		return
	}
	if there, err := os.Lstat(b); err == nil {
		if !there.IsDir() || os.Remove(b) != nil {
			return
		}
	}
	if os.CopyFS(b, os.DirFS(a)) == nil {
		_ = os.RemoveAll(a)
	}
}

func genOps(t *rapid.T) []op {
	name := rapid.SampledFrom([]string{"a", "b", "c", "d", "d/a", "d/b", "d/e", "d/e/a", "d/e/b", "f", "f/a", "f/g", "f/g/a"})
	return rapid.SliceOfN(rapid.Custom(func(t *rapid.T) op {
		return op{
			what: rapid.SampledFrom([]string{"write", "write", "append", "mkdir", "mkdir", "remove", "removeAll", "chmod", "symlink", "link", "rename"}).Draw(t, "what"),
			a:    name.Draw(t, "a"), b: name.Draw(t, "b"),
			data: rapid.SampledFrom([]string{"1", "22", "755", "700", "644", "a", "d/e"}).Draw(t, "data"),
		}
	}), 0, 14).Draw(t, "ops")
}

// TestApplyEqualsWriting does random things in an overlay and the same in a
// writable copy of the folder: the overlay applied, both are the same.
func TestApplyEqualsWriting(t *testing.T) {
	require.Root(t)
	base := t.TempDir()
	rapid.Check(t, func(r *rapid.T) {
		first, second := genOps(r), genOps(r)
		here, err := os.MkdirTemp(base, "")
		if err != nil {
			r.Fatal(err)
		}
		w := newWorldAt(r, here, nil)
		defer w.store.Close()
		direct := filepath.Join(here, "direct")
		w.must(os.Mkdir(direct, 0o755))
		both := func(ops []op, a string) {
			for _, o := range ops {
				o.do(a)
				o.do(direct)
			}
		}
		// Hard links of the host are broken by applying, as is written.
		first = slices.DeleteFunc(first, func(o op) bool { return o.what == "link" })
		both(first, w.host)
		before := tree(r, w.host)
		merged, down := w.overlay()
		defer down()
		w.track()
		both(second, merged)
		want := tree(r, direct)
		if diff := cmp.Diff(want, tree(r, merged)); diff != "" {
			r.Fatalf("written directly (-) and in an overlay (+):\n%s\nfirst %v\nsecond %v", diff, first, second)
		}
		s := w.read(Bounds{})
		if why := s.Incomplete(); why != "" {
			r.Fatalf("incomplete: %s", why)
		}
		if diff := cmp.Diff(before, tree(r, w.host)); diff != "" {
			r.Fatalf("the host was written to:\n%s", diff)
		}
		for i := range s.Entries {
			if e := &s.Entries[i]; e.Conflict != "" || e.Omitted != "" {
				r.Fatalf("%s: %s%s", e.Path, e.Conflict, e.Omitted)
			}
		}
		if _, err := w.apply(ApplyOptions{}); err != nil {
			r.Fatalf("%v\nfirst %v\nsecond %v", err, first, second)
		}
		if diff := cmp.Diff(want, tree(r, w.host)); diff != "" {
			r.Fatalf("written directly (-) and applied (+):\n%s\nfirst %v\nsecond %v", diff, first, second)
		}
	})
}
