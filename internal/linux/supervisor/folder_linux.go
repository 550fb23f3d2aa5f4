package supervisor

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"

	"golang.org/x/sys/unix"

	"tranca"
)

// DefaultFolder returns the runtime folder of this user: /run/tranca for
// root, else "tranca" in /run/user/UID, in XDG_RUNTIME_DIR, or "tranca-UID" in
// the temporary folder, whichever is there first. All processes of a user must
// come to the same one, so the place that does not hang on the environment of
// each comes first. It does not make it.
func DefaultFolder() string {
	uid := os.Geteuid()
	if uid == 0 {
		if isFolder("/run") {
			return "/run/tranca"
		}
		return "/var/run/tranca"
	}
	if dir := "/run/user/" + strconv.Itoa(uid); isFolder(dir) {
		return filepath.Join(dir, "tranca")
	}
	if dir := os.Getenv("XDG_RUNTIME_DIR"); filepath.IsAbs(dir) && isFolder(dir) {
		return filepath.Join(dir, "tranca")
	}
	return filepath.Join(os.TempDir(), "tranca-"+strconv.Itoa(uid))
}

func isFolder(path string) bool {
	info, err := os.Stat(path)
	return err == nil && info.IsDir()
}

// OpenFolder opens a runtime folder, and makes it where it is missing. Empty
// means [DefaultFolder]. It refuses a folder that somebody else could have put
// there or can look into: a link, another owner, a mode wider than 0700, or a
// parent in which others can rename it. Work below it by the descriptor, not
// by the path.
func OpenFolder(path string) (*os.File, error) {
	if path == "" {
		path = DefaultFolder()
	}
	path, err := filepath.Abs(path)
	if err != nil {
		return nil, fmt.Errorf("runtime folder: %w", err)
	}
	if err := checkParent(filepath.Dir(path)); err != nil {
		return nil, err
	}
	if err := unix.Mkdir(path, 0o700); err != nil && !errors.Is(err, unix.EEXIST) {
		return nil, fmt.Errorf("runtime folder: %w", &fs.PathError{Op: "mkdir", Path: path, Err: err})
	}
	fd, err := unix.Open(path, unix.O_RDONLY|unix.O_DIRECTORY|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0)
	if err != nil {
		return nil, refuse(path, "it is not a folder, or a link to one", "remove it")
	}
	f := os.NewFile(uintptr(fd), path)
	if err := checkOwn(f); err != nil {
		f.Close()
		return nil, err
	}
	return f, nil
}

// checkOwn looks at the open folder, not at its name, so that nothing can be
// put in its place afterwards.
func checkOwn(f *os.File) error {
	var st unix.Stat_t
	if err := unix.Fstat(int(f.Fd()), &st); err != nil {
		return fmt.Errorf("runtime folder %s: %w", f.Name(), err)
	}
	if int(st.Uid) != os.Geteuid() {
		return refuse(f.Name(), fmt.Sprintf("it belongs to user %d", st.Uid), "have it removed")
	}
	if st.Mode&0o077 != 0 {
		return refuse(f.Name(), fmt.Sprintf("its mode is %#o, so that others can reach into it", st.Mode&0o7777),
			"chmod 700 "+f.Name())
	}
	return nil
}

// checkParent refuses a parent in which another user could rename the folder
// after it was checked: then two supervisors would not see each other.
func checkParent(dir string) error {
	var st unix.Stat_t
	if err := unix.Stat(dir, &st); err != nil {
		return fmt.Errorf("runtime folder: %w", &fs.PathError{Op: "stat", Path: dir, Err: err})
	}
	if int(st.Uid) != os.Geteuid() && st.Uid != 0 {
		return refuse(dir, fmt.Sprintf("it belongs to user %d, who could exchange what is in it", st.Uid),
			"set XDG_RUNTIME_DIR to a folder of your own")
	}
	if st.Mode&0o022 != 0 && st.Mode&unix.S_ISVTX == 0 {
		return refuse(dir, "others can write in it, and its sticky bit is not set",
			"set XDG_RUNTIME_DIR to a folder of your own")
	}
	return nil
}

func refuse(path, why, mend string) error {
	return fmt.Errorf("runtime folder %s: %s; %s: %w", path, why, mend, tranca.ErrUnavailable)
}
