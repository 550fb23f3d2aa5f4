package confine

import (
	"golang.org/x/sys/unix"

	"tranca"
	"tranca/internal/guest/bootspec"
	"tranca/internal/linux/mount"
)

// Source is a mount's source, opened and looked through, for a backend that
// does not hand it to a guest agent.
type Source struct {
	// Bind says what to hide and protect in it.
	Bind bootspec.Bind
	// Owner and Group are the host's user and group that it belongs to.
	Owner, Group uint32

	mount *tranca.Mount
	open  source
}

// OpenSource opens the source of a mount without following a link in any part
// of its path. The caller closes it.
func OpenSource(m *tranca.Mount) (*Source, error) {
	src, err := openSource(m)
	if err != nil {
		return nil, err
	}
	bind, err := bindOf(m, src)
	if err != nil {
		unix.Close(src.fd)
		return nil, err
	}
	return &Source{Bind: bind, Owner: src.owner, Group: src.group, mount: m, open: src}, nil
}

// FD is a descriptor of the source that can only be used as a place.
func (s *Source) FD() int { return s.open.fd }

// CloneMapped clones the source's mounts with its owner shown as this user and
// group. Only root can.
func (s *Source) CloneMapped(backend string, uid, gid uint32) (mount.Tree, error) {
	return cloneMapped(backend, s.mount, s.open, uid, gid)
}

// Close drops the descriptor.
func (s *Source) Close() error { return unix.Close(s.open.fd) }
