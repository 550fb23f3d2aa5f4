package image

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"time"

	"golang.org/x/sys/unix"

	"tranca"
)

// marker is written into a tree's folder, beside the tree, when it is whole.
// What Open needs stands in it, so that a sandbox reads nothing else.
type marker struct {
	Version  int               `json:"version"`
	Digest   string            `json:"digest"`
	Config   string            `json:"config"`
	Platform Platform          `json:"platform"`
	Env      map[string]string `json:"env,omitempty"`
	Tally    Tally             `json:"tally"`
}

const (
	markerVersion = 2
	markerName    = "image.json"
	treeName      = "root"
)

// unpack makes the tree of an image from its blobs, in a folder of the work, and
// puts it into its place.
func (w *work) unpack(ctx context.Context, digest string, m *manifest, c *config, p Progress) error {
	ctx, cancel := context.WithTimeoutCause(ctx, w.s.bounds.Time,
		fmt.Errorf("%w: unpacking the image took longer than %s", tranca.ErrInvalid, w.s.bounds.Time))
	defer cancel()
	dir := w.temp()
	root := dir + "/" + treeName
	if err := errors.Join(os.Mkdir(dir, 0o700), os.Mkdir(root, 0o755), os.Chmod(root, 0o755)); err != nil {
		return w.s.failed("make", dir, err)
	}
	var total int64
	for _, l := range m.Layers {
		total += l.Size
	}
	p.begin("unpacking", total)
	tally, err := w.s.unpackLayers(ctx, root, m, c, p)
	if err != nil {
		return err
	}
	text, err := json.Marshal(marker{
		Version: markerVersion, Digest: digest, Config: m.Config.Digest,
		Platform: c.Platform, Env: c.environment(), Tally: tally,
	})
	if err != nil {
		return err
	}
	if err := w.writeFile(dir+"/"+markerName, text); err != nil {
		return err
	}
	// A tree that is in its place is believed to be whole, after a power cut
	// too: so its files are on the disk before.
	if err := syncFileSystem(root); err != nil {
		return w.s.failed("write", root, err)
	}
	place := w.s.path(treesDir, hexOf(digest))
	// What is there without a marker is no tree.
	if err := os.Rename(place, w.temp()); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return w.s.failed("rename", place, err)
	}
	if err := os.Rename(dir, place); err != nil {
		return w.s.failed("rename", place, err)
	}
	return w.s.failed("write", place, syncFolder(w.s.path(treesDir)))
}

func syncFileSystem(dir string) error {
	f, err := os.Open(dir)
	if err != nil {
		return err
	}
	defer f.Close()
	return unix.Syncfs(int(f.Fd()))
}

// unpackLayers makes a tree in an empty folder, and compares each layer with
// what the configuration says of it.
func (s *Store) unpackLayers(ctx context.Context, root string, m *manifest, c *config, p Progress) (Tally, error) {
	u, err := newUnpacker(root, s.bounds)
	if err != nil {
		return Tally{}, s.failed("unpack into", root, err)
	}
	defer u.close()
	for i, l := range m.Layers {
		err := s.unpackLayer(ctx, u, l, c.RootFS.DiffIDs[i], i == 0, p)
		if errors.Is(err, tranca.ErrInvalid) {
			// Is it the image that is wrong, or what the disk made of it?
			if damaged := s.checkBlob(ctx, l); errors.Is(damaged, errCorrupt) {
				err = damaged
			}
		}
		if err != nil {
			return u.tally, s.unpackError(l, err)
		}
	}
	if u.tally.Made, err = u.makePlaces(); err != nil {
		return u.tally, s.unpackError(Descriptor{}, err)
	}
	return u.tally, s.unpackError(Descriptor{}, u.finish())
}

// unpackError puts what the disk did into words, and leaves the rest.
func (s *Store) unpackError(l Descriptor, err error) error {
	for _, errno := range []unix.Errno{unix.ENOSPC, unix.EDQUOT, unix.EROFS, unix.EIO} {
		if errors.Is(err, errno) && !errors.Is(err, tranca.ErrNoSpace) {
			return s.failed("unpack into", treeName, err)
		}
	}
	if err != nil && l.Digest != "" {
		return fmt.Errorf("layer %s: %w", short(l.Digest), err)
	}
	return err
}

func (s *Store) unpackLayer(ctx context.Context, u *unpacker, l Descriptor, diffID string, first bool, p Progress) error {
	blob, err := s.openBlob(l)
	if err != nil {
		return err
	}
	defer blob.Close()
	before := int64(0)
	packed := &position{r: blob}
	z, _, err := decompress(packed)
	if err != nil {
		return err
	}
	defer z.Close()
	h := sha256.New()
	var r io.Reader = z
	if diffID != l.Digest { // else reading the blob compares it already
		r = io.TeeReader(z, h)
	}
	a := readAhead(ctx, r, s.bounds.archive())
	defer a.close()
	err = u.layer(ctx, &ticking{a, func() {
		now := packed.n.Load()
		p.add(now - before)
		before = now
	}}, first)
	if err == nil {
		// What stands behind the archive's end belongs to the digests too.
		_, err = io.Copy(io.Discard, a)
	}
	if err != nil {
		return err
	}
	a.close()
	// The decompressor may have stopped before the end of the blob.
	if _, err := io.Copy(io.Discard, blob); err != nil {
		return err
	}
	if sum := digestIn(h); diffID != l.Digest && sum != diffID {
		return fmt.Errorf("%w: its content has the digest %s, and the configuration says %s", tranca.ErrInvalid, short(sum), short(diffID))
	}
	return nil
}

// readMarker looks whether a tree is there, and whole.
func (s *Store) readMarker(digest string) (*marker, error) {
	path := s.path(treesDir, hexOf(digest), markerName)
	b, err := os.ReadFile(path)
	if err != nil {
		return nil, s.failed("read", path, err)
	}
	m := &marker{}
	if err := json.Unmarshal(b, m); err != nil || m.Version != markerVersion || m.Digest != digest {
		return nil, s.corrupt(path)
	}
	return m, nil
}

// used sets when an image was last opened, by which people see what they no
// longer need. It is no reason to fail.
func (s *Store) used(digest string) {
	now := time.Now()
	_ = os.Chtimes(s.path(treesDir, hexOf(digest), markerName), now, now)
}
