package image

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"tranca"
	"tranca/internal/require"
)

// built asks for the embedded binary.
func built(t *testing.T) string {
	t.Helper()
	digest, err := Digest()
	require.Check(t, "gvisor", err == nil, "this tree was built without it: make sentry")
	return digest
}

func sum(t *testing.T, f *os.File) string {
	t.Helper()
	h := sha256.New()
	if _, err := io.Copy(h, io.NewSectionReader(f, 0, 1<<30)); err != nil {
		t.Fatal(err)
	}
	return hex.EncodeToString(h.Sum(nil))
}

// TestUnpackedOnce: several at once find or make one whole file, which only
// this user can have written.
func TestUnpackedOnce(t *testing.T) {
	digest := built(t)
	folder := filepath.Join(t.TempDir(), "cache")
	var all sync.WaitGroup
	for range 3 {
		all.Go(func() {
			f, err := Open(folder)
			if err != nil {
				t.Error(err)
				return
			}
			defer f.Close()
			if got := sum(t, f); got != digest {
				t.Errorf("its digest is %s, not %s", got, digest)
			}
			if !strings.HasPrefix(f.Name(), folder) {
				t.Errorf("it is at %s", f.Name())
			}
		})
	}
	all.Wait()
	names, err := os.ReadDir(folder)
	if err != nil || len(names) != 1 {
		t.Errorf("in the folder are %v (%v)", names, err)
	}
}

// TestOthersFilesAreNotUsed: what others could have written, a link, and a
// folder that can't be had are passed over; the binary is then in memory, or in
// its place.
func TestOthersFilesAreNotUsed(t *testing.T) {
	digest := built(t)
	for what, prepare := range map[string]func(folder string) error{
		"a file that others can write": func(folder string) error {
			if err := os.MkdirAll(folder, 0o700); err != nil {
				return err
			}
			path := filepath.Join(folder, "sentry-"+digest)
			return errors.Join(os.WriteFile(path, []byte("#!/bin/sh\n"), 0o777), os.Chmod(path, 0o777))
		},
		"a link": func(folder string) error {
			return errors.Join(os.MkdirAll(folder, 0o700), os.Symlink("/bin/sh", filepath.Join(folder, "sentry-"+digest)))
		},
		"a folder that others can write": func(folder string) error {
			return errors.Join(os.MkdirAll(folder, 0o777), os.Chmod(folder, 0o777))
		},
		"a folder that is a link": func(folder string) error { return os.Symlink("/tmp", folder) },
		"a file for a folder":     func(folder string) error { return os.WriteFile(folder, nil, 0o600) },
	} {
		t.Run(what, func(t *testing.T) {
			folder := filepath.Join(t.TempDir(), "cache")
			if err := prepare(folder); err != nil {
				t.Fatal(err)
			}
			f, err := Open(folder)
			if err != nil {
				t.Fatal(err)
			}
			defer f.Close()
			if got := sum(t, f); got != digest {
				t.Errorf("its digest is %s, not %s", got, digest)
			}
			if _, err := f.WriteAt([]byte("x"), 0); err == nil {
				t.Error("it can be written")
			}
		})
	}
}

// TestDamageIsSeen: what was unpacked is only used if it is what the digest
// says.
func TestDamageIsSeen(t *testing.T) {
	built(t)
	err := writeTo(&bytes.Buffer{}, strings.Repeat("0", 64))
	if !errors.Is(err, tranca.ErrUnavailable) {
		t.Errorf("with another digest: %v", err)
	}
}
