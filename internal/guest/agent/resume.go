package agent

import (
	"errors"
	"io"
	"os"
	"strconv"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"

	"tranca/internal/guest/message"
)

// openToResume opens a file to go on with writing at an offset. It is cut there
// at once, so that its size says how far the writing came, whenever that breaks
// off. A final link is not followed: what was begun was no link.
func openToResume(path string, offset int64, mode uint32) (*os.File, error) {
	if offset == 0 {
		return openToWrite(path, mode, unix.O_NOFOLLOW)
	}
	f, st, err := openRegular(path, unix.O_WRONLY|unix.O_NOFOLLOW, 0)
	switch {
	case errors.Is(err, syscall.ENOENT):
		return nil, invalid(strconv.Quote(path) + " is not there to be gone on with")
	case errors.Is(err, syscall.EISDIR):
		return nil, invalid(strconv.Quote(path) + " is no regular file")
	case err != nil:
		return nil, err
	case st.Size < offset:
		err = invalid(strconv.Quote(path) + " has " + strconv.FormatInt(st.Size, 10) +
			" bytes: writing can't go on at " + strconv.FormatInt(offset, 10))
	default:
		err = onPath("cutting", path, f.Truncate(offset))
	}
	if err == nil {
		_, err = f.Seek(offset, io.SeekStart)
	}
	if err != nil {
		f.Close()
		return nil, err
	}
	return f, nil
}

// symlink makes a symbolic link. Its target is text.
func (a *agent) symlink(req *message.SymlinkRequest) error {
	if req.Target == "" || strings.IndexByte(req.Target, 0) >= 0 {
		return invalid("a link to nothing, or to a name with a NUL")
	}
	path, err := a.named(req.Path)
	if err != nil {
		return err
	}
	return a.id.do(func() error {
		dir, name, err := parent(path)
		if err != nil {
			return err
		}
		defer unix.Close(dir)
		return onPath("making the link", path, unix.Symlinkat(req.Target, dir, name))
	})
}
