//go:build !windows

package container

import (
	"errors"
	"os"
	"syscall"
)

// ownAlone refuses a folder that another user owns or can write to.
func ownAlone(dir string) error {
	info, err := os.Lstat(dir)
	if err != nil {
		return err
	}
	return onlyOurs(info, info.IsDir())
}

func onlyOurs(info os.FileInfo, kind bool) error {
	st, ok := info.Sys().(*syscall.Stat_t)
	switch {
	case !kind || !ok:
		return errors.New("it is something else than it should be")
	case int(st.Uid) != os.Geteuid():
		return errors.New("it belongs to another user")
	case info.Mode().Perm()&0o022 != 0:
		return errors.New("others can write to it")
	}
	return nil
}

// openRegular opens a file of the caller's own, never through a link.
func openRegular(path string) (*os.File, error) {
	f, err := os.OpenFile(path, os.O_RDONLY|syscall.O_NOFOLLOW|syscall.O_NONBLOCK, 0)
	if err != nil {
		return nil, err
	}
	info, err := f.Stat()
	if err == nil {
		err = onlyOurs(info, info.Mode().IsRegular())
	}
	if err != nil {
		f.Close()
		return nil, err
	}
	return f, nil
}
