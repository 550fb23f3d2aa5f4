//go:build unix

package listen

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"syscall"

	"tranca"
)

// ReadKey reads a key from a file, which belongs to this user or root and is
// readable by nobody else. The error wraps [tranca.ErrNotFound],
// [tranca.ErrRefused] or [tranca.ErrInvalid].
func ReadKey(path string) (string, error) {
	// A FIFO that nobody writes to must not hold the start.
	f, err := os.OpenFile(path, os.O_RDONLY|syscall.O_NONBLOCK, 0)
	if errors.Is(err, fs.ErrNotExist) {
		return "", fmt.Errorf("%w: the key file %s", tranca.ErrNotFound, path)
	}
	if err != nil {
		return "", fmt.Errorf("%w: the key file: %w", tranca.ErrRefused, err)
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return "", fmt.Errorf("%w: the key file: %w", tranca.ErrRefused, err)
	}
	owner := info.Sys().(*syscall.Stat_t).Uid
	switch {
	case !info.Mode().IsRegular():
		return "", fmt.Errorf("%w: the key file %s is no regular file", tranca.ErrInvalid, path)
	case int(owner) != os.Geteuid() && owner != 0:
		return "", fmt.Errorf("%w: the key file %s belongs to user %d: want this user or root", tranca.ErrRefused, path, owner)
	case info.Mode().Perm()&0o077 != 0:
		return "", fmt.Errorf("%w: others may use the key file %s (mode %04o): chmod 600 it, and make a new key if they could read it", tranca.ErrRefused, path, info.Mode().Perm())
	}
	text, err := io.ReadAll(io.LimitReader(f, MaxKey+3))
	if err != nil {
		return "", fmt.Errorf("%w: the key file: %w", tranca.ErrInvalid, err)
	}
	key, err := ParseKey(text)
	if err != nil {
		return "", fmt.Errorf("%s: %w", path, err)
	}
	return key, nil
}
