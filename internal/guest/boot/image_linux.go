package boot

import (
	"fmt"
	"os"

	"golang.org/x/sys/unix"

	"tranca/internal/guest/bootspec"
	"tranca/internal/linux/mount"
)

// openImage opens the tree of the image that is to be shown. It is called while
// the agent still is its caller's user, whose alone the store is; -1 is the
// host's own tree.
func openImage(spec *bootspec.Spec) (int, error) {
	if spec.Image == "" {
		return -1, nil
	}
	return mount.NoLinks(spec.Image)
}

// openBinds opens every source while the host's tree is still in sight.
func (t *tree) openBinds() ([]mount.Tree, error) {
	trees := make([]mount.Tree, len(t.spec.Binds))
	for i := range t.spec.Binds {
		b := &t.spec.Binds[i]
		if b.FD != 0 {
			trees[i] = mount.FromFD(b.FD)
			continue
		}
		if b.From == bootspec.FromRoot {
			trees[i] = mount.FromFD(-1) // it is yet to be made
			continue
		}
		var err error
		if trees[i], err = t.openBind(b); err != nil {
			return nil, err
		}
	}
	return trees, nil
}

// openBind opens a source. A path of the image is hostile: no link is followed.
func (t *tree) openBind(b *bootspec.Bind) (mount.Tree, error) {
	none := mount.FromFD(-1)
	var at int
	var err error
	switch {
	case b.From == bootspec.FromImage:
		at, err = mount.Beneath(t.image, b.Source)
	case b.From == bootspec.FromRoot:
		at, err = mount.Beneath(t.root.FD(), b.Source)
	default:
		at, err = mount.NoLinks(b.Source)
	}
	if err != nil {
		return none, err
	}
	defer unix.Close(at)
	m, err := mount.Clone(at, "", true)
	if err != nil {
		return none, fmt.Errorf("%s: %w", b.Source, err)
	}
	return m, nil
}

// attach puts a mount at a place below the root, never through a link: an image
// may have brought some along.
func (t *tree) attach(m mount.Tree, target string) error {
	at, err := mount.Beneath(t.root.FD(), target)
	if err != nil {
		return err
	}
	defer unix.Close(at)
	return m.Attach(at, "")
}

// removeOwn takes away the files that are shown elsewhere.
func (t *tree) removeOwn() error {
	if t.image < 0 {
		return nil
	}
	unix.Close(t.image)
	for i := range t.spec.Binds {
		b := &t.spec.Binds[i]
		if b.From != bootspec.FromRoot {
			continue
		}
		if err := unix.Unlink("/" + b.Source); err != nil {
			return &os.PathError{Op: "unlink", Path: b.Source, Err: err}
		}
	}
	return os.NewSyscallError("rmdir", unix.Rmdir("/"+bootspec.OwnFolder))
}
