package cli

import (
	"bufio"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
)

// writeWhole makes a file that is there whole or not at all: it is written beside
// its place and then takes it. What is no regular file, such as a pipe or a link,
// is written to as it is. A new file has this mode, less the umask.
func writeWhole(path string, mode fs.FileMode, write func(io.Writer) error) error {
	if there, err := os.Lstat(path); err == nil && !there.Mode().IsRegular() {
		return writeInto(path, write)
	}
	part := partBeside(path)
	f, err := os.OpenFile(part, os.O_WRONLY|os.O_CREATE|os.O_EXCL, mode)
	if err != nil {
		return notWritten(path, err)
	}
	err = buffered(f, write)
	if err == nil {
		err = f.Sync() // a full disk may show itself only now
	}
	err = errors.Join(err, f.Close())
	if err == nil {
		err = os.Rename(part, path)
	}
	if err != nil {
		os.Remove(part)
		return notWritten(path, err)
	}
	return nil
}

// keepState keeps a result of this user's where later commands look for it. That
// it can't is said and changes no exit status: the result itself was shown.
func (a *app) keepState(path string, write func(io.Writer) error) {
	err := os.MkdirAll(filepath.Dir(path), 0o700)
	if err == nil {
		err = writeWhole(path, 0o600, write)
	}
	if err != nil {
		explainError(a.Stderr, fmt.Errorf("the result can't be kept for tranca advise: %w; XDG_STATE_HOME names another folder", err))
	}
}

func writeInto(path string, write func(io.Writer) error) error {
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_TRUNC, 0)
	if err != nil {
		return notWritten(path, err)
	}
	if err := errors.Join(buffered(f, write), f.Close()); err != nil {
		return notWritten(path, err)
	}
	return nil
}

func buffered(f *os.File, write func(io.Writer) error) error {
	b := bufio.NewWriter(f)
	if err := write(b); err != nil {
		return err
	}
	return b.Flush()
}

// tryWhole finds out whether writeWhole can make a file there, and leaves nothing.
func tryWhole(path string) error {
	switch there, err := os.Lstat(path); {
	case err == nil && there.IsDir():
		return notWritten(path, syscall.EISDIR)
	case err == nil && !there.Mode().IsRegular():
		return nil
	}
	part := partBeside(path)
	f, err := os.OpenFile(part, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o666)
	if err != nil {
		return notWritten(path, err)
	}
	return errors.Join(f.Close(), os.Remove(part))
}

// notWritten names the file that was asked for, not the one beside it.
func notWritten(path string, err error) error {
	var at *fs.PathError
	var between *os.LinkError
	switch {
	case errors.As(err, &at):
		err = at.Err
	case errors.As(err, &between):
		err = between.Err
	}
	return fmt.Errorf("write %s: %w", path, err)
}

// partBeside is a name that nobody else uses.
func partBeside(path string) string {
	return filepath.Join(filepath.Dir(path), ".tranca-"+strings.ToLower(rand.Text()[:12])+partSuffix)
}
