package agent

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"testing"
)

// tree makes a folder with a/b/f in it, and a folder outside with a file that
// must stay.
func tree(t *testing.T) (dir, outside string) {
	t.Helper()
	dir, outside = filepath.Join(t.TempDir(), "tree"), t.TempDir()
	if err := os.MkdirAll(filepath.Join(dir, "a/b"), 0o755); err != nil {
		t.Fatal(err)
	}
	for _, path := range []string{filepath.Join(dir, "a/b/f"), filepath.Join(outside, "keep")} {
		if err := os.WriteFile(path, nil, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	return dir, outside
}

func remaining(t *testing.T, dir, outside string) {
	t.Helper()
	if _, err := os.Lstat(filepath.Join(outside, "keep")); err != nil {
		t.Errorf("removed outside of the tree: %v", err)
	}
	if _, err := os.Lstat(dir); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("the tree is still there: %v", err)
	}
}

// goDown takes a remover into the tree's a/b.
func goDown(t *testing.T, r *remover) {
	t.Helper()
	dir, name, err := parent(r.path)
	if err != nil {
		t.Fatal(err)
	}
	r.top, r.name = dir, name
	if _, err := r.begin(); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		if err := r.empty(); err != nil {
			t.Fatal(err)
		}
	}
	if len(r.levels) != 3 {
		t.Fatalf("%d levels down", len(r.levels))
	}
}

func toTheEnd(t *testing.T, r *remover) {
	t.Helper()
	for range 100 {
		done, err := r.step()
		if err != nil {
			t.Fatal(err)
		}
		if done {
			return
		}
	}
	t.Fatal("no end of it")
}

// The code moves the folder that is being emptied out of the tree: going up
// from it leads to a place that nobody asked to be removed.
func TestRemoveOfAMovingTree(t *testing.T) {
	dir, outside := tree(t)
	r := &remover{path: dir, top: -1, cur: -1}
	defer r.close()
	goDown(t, r)
	if err := os.Rename(filepath.Join(dir, "a/b"), filepath.Join(outside, "b")); err != nil {
		t.Fatal(err)
	}
	toTheEnd(t, r)
	remaining(t, dir, outside)
}

// The code puts a link where a folder was between the look and the step down.
func TestRemoveFollowsNoLink(t *testing.T) {
	dir, outside := tree(t)
	r := &remover{path: dir, top: -1, cur: -1}
	defer r.close()
	goDown(t, r)
	if err := os.Symlink(outside, filepath.Join(dir, "a/b/link")); err != nil {
		t.Fatal(err)
	}
	at := len(r.levels)
	if err := r.down(r.cur, "link"); err != nil || len(r.levels) != at {
		t.Errorf("went down a link: %v", err)
	}
	toTheEnd(t, r)
	remaining(t, dir, outside)
}

func TestListFollowsNoLink(t *testing.T) {
	dir, outside := tree(t)
	l := &lister{base: dir, depth: 9}
	defer l.close()
	if err := l.open(dir); err != nil {
		t.Fatal(err)
	}
	// The folder a was read; now it is a link.
	if err := os.Rename(filepath.Join(dir, "a"), filepath.Join(outside, "a")); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(outside, filepath.Join(dir, "a")); err != nil {
		t.Fatal(err)
	}
	page, err := l.page()
	if err != nil || len(page) != 1 || page[0].SymlinkTarget != outside {
		t.Errorf("%+v %v", page, err)
	}
	if _, err := l.visit("a", "keep"); err == nil {
		t.Error("listed through a link")
	}
}
