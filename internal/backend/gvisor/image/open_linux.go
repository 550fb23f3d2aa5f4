package image

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"

	"tranca"
)

// Open returns the binary in an open file that can be executed and that only
// this user, or nobody, can have changed.
//
// It is unpacked once into folder, under the name of its digest, where later
// starts find it; that takes a quarter of a second. The folder must belong to
// this user and be closed to all others' writing, and so must the file. Where
// there is no such folder, and none can be made, the binary is unpacked into
// memory for this process alone. An empty folder stands for "tranca" in the
// user's cache folder.
func Open(folder string) (*os.File, error) {
	digest, err := Digest()
	if err != nil {
		return nil, err
	}
	f, err := cached(folder, digest)
	if err == nil {
		return f, nil
	}
	f, memErr := inMemory(digest)
	if memErr != nil {
		return nil, errors.Join(err, memErr)
	}
	return f, nil
}

// cached finds the binary in the cache folder, or puts it there.
func cached(folder, digest string) (*os.File, error) {
	if folder == "" {
		cache, err := os.UserCacheDir()
		if err != nil {
			return nil, err
		}
		folder = filepath.Join(cache, "tranca")
	}
	if err := os.MkdirAll(folder, 0o700); err != nil {
		return nil, err
	}
	fd, err := unix.Open(folder, unix.O_PATH|unix.O_DIRECTORY|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0)
	if err != nil {
		return nil, &os.PathError{Op: "open", Path: folder, Err: err}
	}
	dir := os.NewFile(uintptr(fd), folder)
	defer dir.Close()
	if err := own(dir); err != nil {
		return nil, err
	}
	var st unix.Statfs_t
	if err := unix.Fstatfs(fd, &st); err != nil || st.Flags&unix.ST_NOEXEC != 0 {
		return nil, fmt.Errorf("%w: %s: nothing there can be executed", tranca.ErrRefused, folder)
	}
	file := "sentry-" + digest
	if f, err := openOwn(dir, file); err == nil {
		return f, nil
	}
	if err := store(dir, file, digest); err != nil {
		return nil, err
	}
	return openOwn(dir, file)
}

// own refuses what somebody else may have written.
func own(f *os.File) error {
	var st unix.Stat_t
	if err := unix.Fstat(int(f.Fd()), &st); err != nil {
		return &os.PathError{Op: "stat", Path: f.Name(), Err: err}
	}
	if int(st.Uid) != os.Geteuid() || st.Mode&0o022 != 0 {
		return fmt.Errorf("%w: %s: user %d with mode %o could change it", tranca.ErrRefused, f.Name(), st.Uid, st.Mode&0o777)
	}
	return nil
}

func openOwn(dir *os.File, name string) (*os.File, error) {
	fd, err := unix.Openat(int(dir.Fd()), name, unix.O_RDONLY|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0)
	if err != nil {
		return nil, &os.PathError{Op: "open", Path: name, Err: err}
	}
	f := os.NewFile(uintptr(fd), filepath.Join(dir.Name(), name))
	if err := own(f); err != nil {
		f.Close()
		return nil, err
	}
	return f, nil
}

// store unpacks the binary beside its place and moves it there whole, so that
// two that do it at once, or one that is killed, leave no part of one.
func store(dir *os.File, name, digest string) error {
	fd, err := unix.Openat(int(dir.Fd()), ".", unix.O_TMPFILE|unix.O_RDWR|unix.O_CLOEXEC, 0o500)
	if err != nil {
		return &os.PathError{Op: "create", Path: dir.Name(), Err: err}
	}
	f := os.NewFile(uintptr(fd), filepath.Join(dir.Name(), name))
	defer f.Close()
	if err := writeTo(f, digest); err != nil {
		return err
	}
	if err := unix.Fchmod(fd, 0o500); err != nil {
		return &os.PathError{Op: "chmod", Path: f.Name(), Err: err}
	}
	if err := f.Sync(); err != nil {
		return err
	}
	err = unix.Linkat(unix.AT_FDCWD, fmt.Sprintf("/proc/self/fd/%d", fd), int(dir.Fd()), name, unix.AT_SYMLINK_FOLLOW)
	if errors.Is(err, unix.EEXIST) {
		return replace(dir, name, fd)
	}
	if err != nil {
		return &os.PathError{Op: "link", Path: f.Name(), Err: err}
	}
	return nil
}

// replace puts the file in the place of one that is there and was refused, or
// that somebody else has just made.
func replace(dir *os.File, name string, fd int) error {
	if f, err := openOwn(dir, name); err == nil {
		return f.Close()
	}
	if err := unix.Unlinkat(int(dir.Fd()), name, 0); err != nil && !errors.Is(err, unix.ENOENT) {
		return &os.PathError{Op: "remove", Path: name, Err: err}
	}
	err := unix.Linkat(unix.AT_FDCWD, fmt.Sprintf("/proc/self/fd/%d", fd), int(dir.Fd()), name, unix.AT_SYMLINK_FOLLOW)
	if err != nil && !errors.Is(err, unix.EEXIST) {
		return &os.PathError{Op: "link", Path: name, Err: err}
	}
	return nil
}

// inMemory unpacks the binary into a sealed file that has no name.
func inMemory(digest string) (*os.File, error) {
	flags := unix.MFD_CLOEXEC | unix.MFD_ALLOW_SEALING
	fd, err := unix.MemfdCreate("sentry", flags|unix.MFD_EXEC)
	if err == unix.EINVAL { // before Linux 6.3 every such file is executable
		fd, err = unix.MemfdCreate("sentry", flags)
	}
	if err != nil {
		return nil, fmt.Errorf("%w: gVisor in memory: memfd_create: %w", tranca.ErrUnavailable, err)
	}
	f := os.NewFile(uintptr(fd), "sentry")
	if err := writeTo(f, digest); err != nil {
		f.Close()
		return nil, err
	}
	seals := unix.F_SEAL_SEAL | unix.F_SEAL_WRITE | unix.F_SEAL_GROW | unix.F_SEAL_SHRINK
	if _, err := unix.FcntlInt(f.Fd(), unix.F_ADD_SEALS, seals); err != nil {
		f.Close()
		return nil, fmt.Errorf("%w: seal gVisor: %w", tranca.ErrUnavailable, err)
	}
	return f, nil
}
