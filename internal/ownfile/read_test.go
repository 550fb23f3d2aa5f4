package ownfile

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"tranca"
)

// TestReadSaysWhatItIs: package policyfile has the walk's own tests; here is
// what the words for the file do, and the bound.
func TestReadSaysWhatItIs(t *testing.T) {
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(dir, "list.json")
	if err := os.WriteFile(path, []byte("12345"), 0o600); err != nil {
		t.Fatal(err)
	}
	f, err := Read("list", path, 5)
	if err != nil || string(f.Data) != "12345" || f.Real != path || f.Links != 1 {
		t.Fatalf("%+v, %v", f, err)
	}
	if _, err := Read("list", path, 4); !errors.Is(err, tranca.ErrInvalid) || !strings.Contains(err.Error(), "list "+path+" has 5 bytes or more: at most 4") {
		t.Error(err)
	}
	if err := os.Chmod(path, 0o602); err != nil {
		t.Fatal(err)
	}
	if _, err := Read("list", path, 5); !errors.Is(err, tranca.ErrRefused) || !strings.Contains(err.Error(), "and so change the list: chmod o-w "+path) {
		t.Error(err)
	}
	if _, err := Read("list", path+".none", 5); !errors.Is(err, tranca.ErrNotFound) {
		t.Error(err)
	}
}

func TestQuote(t *testing.T) {
	for in, want := range map[string]string{
		"/etc/tranca/policy.yaml": "/etc/tranca/policy.yaml", "/a b": "'/a b'", "/it's": `'/it'\''s'`, "": "''", "/$(x)": "'/$(x)'",
	} {
		if got := Quote(in); got != want {
			t.Errorf("Quote(%q) = %s, want %s", in, got, want)
		}
	}
}
