package confine

import (
	"errors"
	"fmt"

	"golang.org/x/sys/unix"

	"tranca"
	"tranca/internal/guest/bootspec"
	"tranca/internal/linux/mount"
)

// Source is a mount's source, opened and looked through.
type Source struct {
	// Bind says what to hide and protect in it.
	Bind bootspec.Bind
	// Owner and Group are the host's user and group that it belongs to.
	Owner, Group uint32

	mount *tranca.Mount
	fd    int
	file  bool
}

// Mapped are users and groups of a file system (inside) by those that a mount
// shows (outside).
type Mapped struct{ Users, Groups []IDMap }

// OpenSource opens the source of a mount as the operator named it, without
// following a link in any part of its path: a link would let whoever owns it
// choose what is mounted. The caller closes it.
func OpenSource(m *tranca.Mount) (*Source, error) {
	fd, err := mount.NoLinks(m.Source)
	if err != nil {
		return nil, sourceError(m, err)
	}
	s := &Source{mount: m, fd: fd}
	if err := s.look(); err != nil {
		s.Close()
		return nil, err
	}
	return s, nil
}

// look fills in what is known of an opened source.
func (s *Source) look() error {
	var st unix.Stat_t
	if err := unix.Fstat(s.fd, &st); err != nil {
		return sourceError(s.mount, err)
	}
	s.Owner, s.Group = st.Uid, st.Gid
	switch st.Mode & unix.S_IFMT {
	case unix.S_IFDIR:
	case unix.S_IFREG:
		s.file = true
	case unix.S_IFLNK:
		return sourceError(s.mount, unix.ELOOP)
	default:
		return fmt.Errorf("%w: mount %s: it is a %s; only folders and regular files can be mounted",
			tranca.ErrInvalid, s.mount.Source, kindName(st.Mode))
	}
	return s.describe()
}

// FD is a descriptor of the source that can only be used as a place.
func (s *Source) FD() int { return s.fd }

// Below is a mount point of the host in the source, or "".
func (s *Source) Below() (string, error) {
	below, err := mountBelow(s.mount.Source)
	if err != nil {
		return "", fmt.Errorf("%w: mount %s: %w", tranca.ErrInvalid, s.mount.Source, err)
	}
	return below, nil
}

// CloneMapped clones the source's mounts with its owner shown as this user and
// group, so that the code can use what the operator mounted, and files that it
// makes belong to that owner outside; and what else is mapped. Only root can.
func (s *Source) CloneMapped(backend string, uid, gid uint32, also Mapped) (mount.Tree, error) {
	m := s.mount
	// With what the host has mounted below: without it the code would see what
	// that covers.
	t, err := mount.Clone(s.fd, "", true)
	if err != nil {
		return t, fmt.Errorf("mount %s: %w", m.Source, err)
	}
	ns, err := userNamespace(append(also.Users, IDMap{s.Owner, uid}), append(also.Groups, IDMap{s.Group, gid}))
	if err != nil {
		t.Close()
		return t, fmt.Errorf("mount %s: %w", m.Source, err)
	}
	defer ns.Close()
	err = t.MapIDs(int(ns.Fd()))
	if err != nil && (m.Writable || m.Cow || also.Users != nil || !errors.Is(err, unix.EINVAL)) {
		t.Close()
		return t, &tranca.RefusalError{Backend: backend, Problems: []tranca.Problem{{
			Item: tranca.ItemMounts, Asked: "mount " + m.Source + " with its owner mapped to the code's user",
			Missing: "the file system there can't map owners (" + err.Error() + ")",
			Mend:    "mount a folder of ext4, xfs, btrfs or tmpfs, or read-only",
		}}}
	}
	// A read-only mount that can't be mapped shows what everybody may read, but
	// to somebody who serves files as root.
	return t, nil
}

// Close drops the descriptor.
func (s *Source) Close() error { return unix.Close(s.fd) }
