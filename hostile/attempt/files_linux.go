package attempt

import (
	"fmt"
	"os"
	"path"
	"slices"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

const (
	defaultSize = 4096
	// maxFound bounds how many files one find reads.
	maxFound = 4096
	// calm keeps an open from waiting for another end or taking a terminal.
	calm = unix.O_NONBLOCK | unix.O_NOCTTY | unix.O_CLOEXEC
)

// readFile returns up to size bytes of a file.
func readFile(name string, size int) ([]byte, error) {
	fd, err := unix.Open(name, unix.O_RDONLY|calm, 0)
	if err != nil {
		return nil, err
	}
	defer unix.Close(fd)
	var all []byte
	buf := make([]byte, min(size, 64<<10))
	for len(all) < size {
		n, err := unix.Read(fd, buf[:min(len(buf), size-len(all))])
		switch {
		case err == unix.EINTR:
		case err != nil && len(all) == 0:
			return nil, err
		case err != nil || n <= 0:
			return all, nil
		default:
			all = append(all, buf[:n]...)
		}
	}
	return all, nil
}

func sizeOf(s *Step) int {
	if s.Size == 0 {
		return defaultSize
	}
	return int(min(s.Size, MaxValue))
}

func doRead(_ *interp, s *Step) (string, error) {
	data, err := readFile(s.Path, sizeOf(s))
	if err == nil && len(data) == 0 {
		err = words("no bytes came")
	}
	return string(data), err
}

// names returns the names in a folder, sorted.
func names(folder string) ([]string, error) {
	fd, err := unix.Open(folder, unix.O_RDONLY|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	if err != nil {
		return nil, err
	}
	defer unix.Close(fd)
	var all []string
	buf := make([]byte, 32<<10)
	for {
		n, err := unix.Getdents(fd, buf)
		if err == unix.EINTR {
			continue
		}
		if err != nil {
			return nil, err
		}
		if n <= 0 {
			slices.Sort(all)
			return all, nil
		}
		_, _, all = unix.ParseDirent(buf[:n], -1, all)
	}
}

func doList(_ *interp, s *Step) (string, error) {
	all, err := names(s.Path)
	return strings.Join(all, "\n"), err
}

// doFind looks in one folder after another for what the parts of the pattern
// match. A path that can't be read is no error where another one can.
func doFind(_ *interp, s *Step) (string, error) {
	found := []string{""}
	if strings.HasPrefix(s.Path, "/") {
		found = []string{"/"}
	}
	for _, part := range strings.Split(s.Path, "/") {
		if part != "" {
			found = matches(found, part)
		}
	}
	var out strings.Builder
	var first error
	read := false
	for _, name := range found {
		if out.Len() >= MaxValue {
			break
		}
		data, err := readFile(name, sizeOf(s))
		switch {
		case err == nil && len(data) > 0:
			read = true
			out.WriteString(name + ": " + string(data) + "\n")
		case err != nil && first == nil:
			first = err
		}
	}
	if read {
		return out.String(), nil
	}
	if first == nil {
		first = unix.ENOENT
	}
	return "", first
}

func matches(folders []string, part string) []string {
	var all []string
	for _, folder := range folders {
		found := []string{part}
		if strings.ContainsAny(part, "*[") {
			where := folder
			if where == "" {
				where = "."
			}
			found, _ = names(where) // what can't be listed has no matches
			found = slices.DeleteFunc(found, func(n string) bool {
				ok, err := path.Match(part, n)
				return err != nil || !ok
			})
		}
		for _, name := range found {
			if len(all) == maxFound {
				return all
			}
			all = append(all, join(folder, name))
		}
	}
	return all
}

// join leaves ".." alone, which means something else behind a link.
func join(folder, name string) string {
	if folder == "" || strings.HasSuffix(folder, "/") {
		return folder + name
	}
	return folder + "/" + name
}

func doWrite(_ *interp, s *Step) (string, error) {
	data, err := dataBytes(s.Data)
	if err != nil {
		return "", err
	}
	if s.Append {
		return "", put(s.Path, unix.O_APPEND, data)
	}
	return "", put(s.Path, unix.O_TRUNC, data)
}

// put writes a whole file.
func put(name string, flags int, data []byte) error {
	fd, err := unix.Open(name, unix.O_WRONLY|unix.O_CREAT|flags|calm, 0o666)
	if err != nil {
		return err
	}
	err = writeAll(fd, data)
	if e := unix.Close(fd); err == nil {
		err = e
	}
	return err
}

func doOpen(_ *interp, s *Step) (string, error) {
	flags := map[string]int{
		"": unix.O_RDONLY, "r": unix.O_RDONLY, "w": unix.O_WRONLY, "rw": unix.O_RDWR,
		"path": unix.O_PATH, "create": unix.O_WRONLY | unix.O_CREAT,
	}[s.Flags]
	fd, err := unix.Open(s.Path, flags|calm, 0o666)
	if err == nil {
		unix.Close(fd)
	}
	return "", err
}

func doStat(_ *interp, s *Step) (string, error) {
	var st unix.Stat_t
	if err := unix.Stat(s.Path, &st); err != nil {
		return "", err
	}
	return fmt.Sprintf("mode %o uid %d gid %d", st.Mode, st.Uid, st.Gid), nil
}

func doReadlink(_ *interp, s *Step) (string, error) {
	buf := make([]byte, 8192)
	n, err := unix.Readlink(s.Path, buf)
	if err != nil {
		return "", err
	}
	return string(buf[:n]), nil
}

func doRemove(_ *interp, s *Step) (string, error) {
	err := unix.Unlink(s.Path)
	if err == unix.EISDIR || err == unix.EPERM {
		if e := unix.Rmdir(s.Path); e != unix.ENOTDIR {
			err = e
		}
	}
	return "", err
}

func doMkdir(_ *interp, s *Step) (string, error) {
	return "", unix.Mkdir(s.Path, 0o777)
}

func doMkfifo(_ *interp, s *Step) (string, error) {
	return "", unix.Mkfifo(s.Path, 0o666)
}

func doRename(_ *interp, s *Step) (string, error) {
	return "", unix.Rename(s.Path, s.To)
}

func doLink(_ *interp, s *Step) (string, error) {
	return "", unix.Link(s.Path, s.To)
}

func doSymlink(_ *interp, s *Step) (string, error) {
	return "", unix.Symlink(s.To, s.Path)
}

func doTruncate(_ *interp, s *Step) (string, error) {
	return "", unix.Truncate(s.Path, int64(s.Size))
}

func doChmod(_ *interp, s *Step) (string, error) {
	mode, err := fileMode(s.Mode)
	if err != nil {
		return "", err
	}
	return "", unix.Chmod(s.Path, mode)
}

func doChown(_ *interp, s *Step) (string, error) {
	return "", unix.Chown(s.Path, s.UID, s.GID)
}

func doMknod(_ *interp, s *Step) (string, error) {
	kind, major, minor, err := deviceMode(s.Mode)
	if err != nil {
		return "", err
	}
	mode := uint32(unix.S_IFCHR)
	if kind == 'b' {
		mode = unix.S_IFBLK
	}
	return "", unix.Mknod(s.Path, mode|0o666, int(unix.Mkdev(major, minor)))
}

// doFill writes bytes that no file system leaves out.
func doFill(_ *interp, s *Step) (string, error) {
	fd, err := unix.Open(s.Path, unix.O_WRONLY|unix.O_CREAT|unix.O_TRUNC|calm, 0o666)
	if err != nil {
		return "", err
	}
	piece := []byte(strings.Repeat("tranca", 32<<10))
	for left := int64(s.Size); left > 0 && err == nil; {
		n := min(left, int64(len(piece)))
		err = writeAll(fd, piece[:n])
		left -= n
	}
	if e := unix.Close(fd); err == nil {
		err = e
	}
	return "", err
}

func doFiles(_ *interp, s *Step) (string, error) {
	if err := unix.Mkdir(s.Path, 0o777); err != nil && err != unix.EEXIST {
		return "", err
	}
	for i := range s.Count {
		if err := put(fmt.Sprintf("%s/%d", s.Path, i), 0, nil); err != nil {
			return fmt.Sprint(i), err
		}
	}
	return fmt.Sprint(s.Count), nil
}

func doCopyself(it *interp, s *Step) (string, error) {
	mode := uint32(0o755)
	if s.Mode != "" {
		var err error
		if mode, err = fileMode(s.Mode); err != nil {
			return "", err
		}
	}
	data, err := os.ReadFile(it.exe)
	if err != nil {
		return "", err
	}
	if err := put(s.Path, unix.O_TRUNC, data); err != nil {
		return "", err
	}
	return "", unix.Chmod(s.Path, mode)
}

// doSwap flips a folder and a link, which are made beside the path: at once
// where the file system can, else by two renames.
func doSwap(_ *interp, s *Step) (string, error) {
	other := s.Path + ".link"
	if err := unix.Mkdir(s.Path, 0o777); err != nil && err != unix.EEXIST {
		return "", err
	}
	if err := put(s.Path+"/f", unix.O_TRUNC, []byte("mine")); err != nil {
		return "", err
	}
	if err := unix.Symlink(s.To, other); err != nil && err != unix.EEXIST {
		return "", err
	}
	end := time.Now().Add(s.For.Duration())
	folder := true // at the path
	var err error
	for err == nil && (time.Now().Before(end) || !folder) {
		err = exchange(s.Path, other)
		folder = !folder
	}
	if err == nil {
		err = unix.Unlink(other)
	}
	return "", err
}

func exchange(a, b string) error {
	err := unix.Renameat2(unix.AT_FDCWD, a, unix.AT_FDCWD, b, unix.RENAME_EXCHANGE)
	if err == nil || err == unix.ENOENT {
		return err
	}
	aside := a + ".aside"
	for _, r := range [][2]string{{a, aside}, {b, a}, {aside, b}} {
		if err := unix.Rename(r[0], r[1]); err != nil {
			return err
		}
	}
	return nil
}

func doCheck(_ *interp, s *Step) (string, error) {
	data, err := readFile(s.Path, MaxText)
	if err != nil {
		return "", err
	}
	text := strings.TrimSpace(string(data))
	if s.Field != "" {
		found := false
		for _, line := range strings.Split(text, "\n") {
			if value, ok := strings.CutPrefix(line, s.Field+":"); ok {
				text, found = strings.TrimSpace(value), true
				break
			}
		}
		if !found {
			return "", words("no such field")
		}
	}
	if s.Equals != nil && text != *s.Equals || s.Differs != nil && text == *s.Differs ||
		s.Contains != nil && !strings.Contains(text, *s.Contains) {
		return text, words("is not so")
	}
	return text, nil
}

func doEnv(*interp, *Step) (string, error) {
	return strings.Join(syscall.Environ(), "\n"), nil
}
