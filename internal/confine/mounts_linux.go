package confine

import (
	"errors"
	"fmt"
	"os"
	"path"
	"slices"
	"strings"

	"golang.org/x/sys/unix"

	"tranca"
	"tranca/internal/guest/bootspec"
	"tranca/internal/linux/mount"
)

// maxProtectWalk bounds the entries of a writable mount that are looked
// through for host-executable files.
const maxProtectWalk = 200_000

func sourceError(m *tranca.Mount, err error) error {
	switch {
	case errors.Is(err, unix.ENOENT), errors.Is(err, unix.ENOTDIR):
		return fmt.Errorf("%w: mount %s: there is no such file or folder on this host", tranca.ErrInvalid, m.Source)
	case errors.Is(err, unix.ELOOP):
		return fmt.Errorf("%w: mount %s: a part of the path is a symbolic link; name the real path (readlink -f %s)",
			tranca.ErrInvalid, m.Source, m.Source)
	}
	return fmt.Errorf("%w: mount %s: %w", tranca.ErrInvalid, m.Source, err)
}

func kindName(mode uint32) string {
	switch mode & unix.S_IFMT {
	case unix.S_IFIFO:
		return "FIFO"
	case unix.S_IFSOCK:
		return "socket"
	case unix.S_IFBLK, unix.S_IFCHR:
		return "device"
	}
	return "special file"
}

// describe describes the mount for the agent, all but how it gets there.
func (s *Source) describe() error {
	m, b := s.mount, &s.Bind
	*b = bootspec.Bind{
		Target:   strings.TrimPrefix(m.Target, "/"),
		File:     s.file,
		Writable: m.Writable || m.Cow,
		Cow:      m.Cow,
	}
	if m.Cow {
		if err := cowSource(s); err != nil {
			return err
		}
	}
	if s.file {
		return nil
	}
	for _, p := range m.Deny {
		c, err := coverOf(s.fd, p)
		if err != nil {
			return fmt.Errorf("%w: mount %s: deny %s: %w", tranca.ErrInvalid, m.Source, p, err)
		}
		if c.Path != "" {
			b.Deny = append(b.Deny, c)
		} else if b.Writable {
			return fmt.Errorf("%w: mount %s: deny %s: it does not exist, so nothing can cover it in a writable mount; make it first or mount read-only",
				tranca.ErrInvalid, m.Source, p)
		}
	}
	if !b.Writable {
		return nil
	}
	if len(m.Protect) > 0 {
		found, err := findProtected(s.fd, m.Protect)
		if err != nil {
			return fmt.Errorf("%w: mount %s: %w", tranca.ErrInvalid, m.Source, err)
		}
		b.Protect = found
	}
	b.Pin = ancestors(held(b))
	return nil
}

// held are the paths of a writable mount that have to stay where they are. A
// denied one is among them: moved with a folder above it, it would have another
// name in the next sandbox, which the policy does not deny.
func held(b *bootspec.Bind) []string {
	paths := slices.Clone(b.Protect)
	for _, c := range b.Deny {
		paths = append(paths, c.Path)
	}
	return paths
}

func coverOf(dir int, p string) (bootspec.Cover, error) {
	fd, err := mount.Beneath(dir, p)
	if errors.Is(err, unix.ENOENT) {
		return bootspec.Cover{}, nil
	}
	if err != nil {
		return bootspec.Cover{}, err
	}
	defer unix.Close(fd)
	var st unix.Stat_t
	if err := unix.Fstat(fd, &st); err != nil {
		return bootspec.Cover{}, err
	}
	return bootspec.Cover{Path: p, File: st.Mode&unix.S_IFMT != unix.S_IFDIR}, nil
}

// findProtected walks the folder for paths that the host may execute, set-id
// programs among them. What is found at the top of a match is enough: a
// read-only folder holds what is in it. Links are not followed; a link that
// matches is protected as itself by pinning its folder, since nothing can be
// mounted on a link.
func findProtected(dir int, protect []string) ([]string, error) {
	root, err := os.OpenRoot(fmt.Sprintf("/proc/self/fd/%d", dir))
	if err != nil {
		return nil, err
	}
	defer root.Close()
	var found []string
	seen := 0
	var walk func(p string) error
	walk = func(p string) error {
		entries, err := protectable(root, p)
		if err != nil {
			return err
		}
		if seen += len(entries); seen > maxProtectWalk {
			return fmt.Errorf("more than %d entries to look through for files that the host may execute; mount a smaller folder, or say `protect: []`", maxProtectWalk)
		}
		for _, e := range entries {
			q := path.Join(p, e.name)
			if e.setID || matchesProtected(q, protect) {
				found = append(found, q)
				continue
			}
			if e.folder {
				if err := walk(q); err != nil {
					return err
				}
			}
		}
		return nil
	}
	return found, walk(".")
}

// entry is a regular file or folder.
type entry struct {
	name string
	// folder: it is one. setID: it is a program that runs as its owner, whoever
	// starts it; what is written to it through a mapping leaves it that.
	folder, setID bool
}

// protectable lists the files and folders of a folder, sorted. One that the
// supervisor may not read is none of its own to judge.
func protectable(root *os.Root, p string) ([]entry, error) {
	f, err := root.Open(p)
	if errors.Is(err, os.ErrPermission) || errors.Is(err, os.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	defer f.Close()
	list, err := f.ReadDir(-1)
	if err != nil {
		return nil, err
	}
	entries := make([]entry, 0, len(list))
	for _, e := range list {
		switch {
		case e.IsDir():
			entries = append(entries, entry{name: e.Name(), folder: true})
		case e.Type().IsRegular():
			var st unix.Stat_t
			err := unix.Fstatat(int(f.Fd()), e.Name(), &st, unix.AT_SYMLINK_NOFOLLOW)
			set := err == nil && st.Mode&unix.S_IFMT == unix.S_IFREG && st.Mode&(unix.S_ISUID|unix.S_ISGID) != 0
			entries = append(entries, entry{name: e.Name(), setID: set})
		}
	}
	slices.SortFunc(entries, func(a, b entry) int { return strings.Compare(a.name, b.name) })
	return entries, nil
}

// matchesProtected reports whether a relative path ends in one of the entries:
// a name matches at any depth, a path as a suffix of whole components.
func matchesProtected(p string, protect []string) bool {
	for _, e := range protect {
		if p == e || strings.HasSuffix(p, "/"+e) {
			return true
		}
	}
	return false
}

// ancestors returns the folders above the paths, parents first. A mount point
// can't be renamed, but a folder above it can, and another be put in its
// place: so these are made mount points too.
func ancestors(paths []string) []string {
	var out []string
	for _, p := range paths {
		for d := path.Dir(p); d != "."; d = path.Dir(d) {
			if !slices.Contains(out, d) {
				out = append(out, d)
			}
		}
	}
	slices.SortFunc(out, func(a, b string) int { return strings.Count(a, "/") - strings.Count(b, "/") })
	return out
}
