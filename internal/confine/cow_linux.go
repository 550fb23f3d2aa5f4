package confine

import (
	"bufio"
	"fmt"
	"os"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"

	"tranca"
	"tranca/internal/guest/bootspec"
	"tranca/internal/linux/mount"
	"tranca/internal/machine"
)

// cowSource refuses what can't be shown copy-on-write.
func cowSource(s *Source) error {
	m := s.mount
	if s.file {
		return fmt.Errorf("%w: mount %s: it is a file, and mode cow is for folders: mount the folder that it is in", tranca.ErrInvalid, m.Source)
	}
	below, err := s.Below()
	if err != nil {
		return err
	}
	if below != "" {
		return fmt.Errorf("%w: mount %s: another file system is mounted at %s, and an overlay would show what that covers: mount folders beside it, or mode: ro",
			tranca.ErrInvalid, m.Source, below)
	}
	return nil
}

// mountBelow returns a mount point of the host that is in a folder, or "".
func mountBelow(folder string) (string, error) {
	f, err := os.Open("/proc/self/mountinfo")
	if err != nil {
		return "", err
	}
	defer f.Close()
	lines := bufio.NewScanner(f)
	for lines.Scan() {
		fields := strings.Fields(lines.Text())
		if len(fields) < 5 {
			continue
		}
		if point := unescape(fields[4]); strings.HasPrefix(point, folder+"/") {
			return point, nil
		}
	}
	return "", lines.Err()
}

// unescape reads a path of mountinfo, in which blanks are octal.
func unescape(p string) string {
	var b strings.Builder
	for i := 0; i < len(p); i++ {
		if p[i] == '\\' && i+3 < len(p) {
			if v, err := strconv.ParseUint(p[i+1:i+4], 8, 8); err == nil {
				b.WriteByte(byte(v))
				i += 3
				continue
			}
		}
		b.WriteByte(p[i])
	}
	return b.String()
}

// cowRefusal explains an overlay that the agent could not make.
func cowRefusal(backend string, err error) error {
	_, why, _ := strings.Cut(err.Error(), bootspec.CowFailed)
	return CowRefusal(backend, why)
}

// CowRefusal explains an overlay that the kernel does not make.
func CowRefusal(backend, why string) error {
	return &tranca.RefusalError{Backend: backend, Problems: []tranca.Problem{{
		Item: tranca.ItemMounts, Asked: "a mount of mode cow", Missing: "this kernel makes no overlay of it in a sandbox: " + why,
		Mend: "mode: ro, or rw; or Linux 6.6 or later with overlayfs (modprobe overlay), and a folder of ext4, xfs, btrfs or tmpfs",
	}}}
}

var _ machine.ChangeReader = (*Box)(nil)

// OpenChanges is [machine.ChangeReader].
func (b *Box) OpenChanges(target string) (*os.File, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.scratch == nil {
		return nil, fmt.Errorf("%w: the sandbox is destroyed", tranca.ErrGone)
	}
	return OpenUpper(b.scratch, target)
}

// OpenUpper opens the folder with what was written to a mount. It is found from
// the descriptor of the writable space, and never through a path that the code
// could see.
func OpenUpper(space *os.File, target string) (*os.File, error) {
	name := CowPlace(target) + "/" + mount.Upper
	fd, err := unix.Openat2(int(space.Fd()), name, &unix.OpenHow{
		Flags:   unix.O_RDONLY | unix.O_DIRECTORY | unix.O_CLOEXEC,
		Resolve: unix.RESOLVE_BENEATH | unix.RESOLVE_NO_SYMLINKS | unix.RESOLVE_NO_MAGICLINKS | unix.RESOLVE_NO_XDEV,
	})
	if err == unix.ENOENT {
		return nil, fmt.Errorf("%w: %s is no mount of mode cow", tranca.ErrNotFound, target)
	}
	if err != nil {
		return nil, &os.PathError{Op: "open changes of", Path: target, Err: err}
	}
	return os.NewFile(uintptr(fd), "changes of "+target), nil
}

// CowPlace is where in the writable space a mount with this target has its
// layers.
func CowPlace(target string) string { return bootspec.CowPlace(strings.TrimPrefix(target, "/")) }
