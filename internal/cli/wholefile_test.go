package cli

import (
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

func TestWriteWholeLeavesNoHalf(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "page.html")
	whole := func(text string, err error) func(io.Writer) error {
		return func(w io.Writer) error {
			if _, err := io.WriteString(w, text); err != nil {
				return err
			}
			return err
		}
	}
	if err := errors.Join(tryWhole(path), writeWhole(path, 0o644, whole("first", nil))); err != nil {
		t.Fatal(err)
	}
	err := writeWhole(path, 0o644, whole(strings.Repeat("half", 10_000), syscall.ENOSPC))
	if !errors.Is(err, syscall.ENOSPC) || !strings.Contains(err.Error(), path) {
		t.Errorf("a full disk: %v", err)
	}
	if text, err := os.ReadFile(path); err != nil || string(text) != "first" {
		t.Errorf("the page of the run before is now %.20q, %v", text, err)
	}
	if err := writeWhole(path, 0o644, whole("second", nil)); err != nil {
		t.Fatal(err)
	}
	if text, _ := os.ReadFile(path); string(text) != "second" {
		t.Errorf("the page is %q", text)
	}
	all, err := os.ReadDir(dir)
	if err != nil || len(all) != 1 {
		t.Errorf("beside the page there is %v, %v", all, err)
	}
}

// A link is written through, as with any other program: it is not replaced.
func TestWriteWholeKeepsLinks(t *testing.T) {
	dir := t.TempDir()
	path, target := filepath.Join(dir, "link"), filepath.Join(dir, "target")
	if err := errors.Join(os.WriteFile(target, []byte("something longer"), 0o600), os.Symlink("target", path)); err != nil {
		t.Fatal(err)
	}
	err := writeWhole(path, 0o644, func(w io.Writer) error { _, err := io.WriteString(w, "page"); return err })
	if err != nil {
		t.Fatal(err)
	}
	if text, _ := os.ReadFile(target); string(text) != "page" {
		t.Errorf("the target is %q", text)
	}
	if to, err := os.Readlink(path); err != nil || to != "target" {
		t.Errorf("the link leads to %q, %v", to, err)
	}
}
