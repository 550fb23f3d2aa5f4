//go:build linux

package image

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"slices"

	"tranca"
)

// Remove gives up a name and, where the image has no other, removes the image. By
// a digest it removes an image with all its names. One that a sandbox uses is
// [tranca.ErrBusy], and nothing has happened.
func (s *Store) Remove(ctx context.Context, text string) (Removed, error) {
	digest, err := s.resolve(ctx, text)
	if err != nil {
		return Removed{}, err
	}
	n, err := ParseName(text)
	if err != nil {
		return Removed{}, err
	}
	w, err := s.begin(ctx)
	if err != nil {
		return Removed{}, err
	}
	out, err := w.removeImage(ctx, digest, n.Name)
	if err := errors.Join(err, w.end()); err != nil {
		return out, err
	}
	// The blobs go with it, unless another import is under way: prune then does
	// it later.
	freed, err := s.removeBlobs(ctx)
	out.Bytes += freed
	if errors.Is(err, tranca.ErrBusy) {
		return out, nil
	}
	return out, err
}

// removeImage gives up a name, or all names where it is empty, and then the tree.
func (w *work) removeImage(ctx context.Context, digest, name string) (Removed, error) {
	out := Removed{Names: []string{}, Images: []string{}}
	refs, err := w.s.refs(ctx)
	if err != nil {
		return out, err
	}
	refs = slices.DeleteFunc(refs, func(r ref) bool { return r.Digest != digest })
	others := slices.ContainsFunc(refs, func(r ref) bool { return name != "" && r.Name != name })
	if !others {
		held, err := w.s.tryLock(placeOf(digest, forTree), exclusive)
		if errors.Is(err, tranca.ErrBusy) {
			return out, fmt.Errorf("%w: image %s is used by a sandbox", tranca.ErrBusy, short(digest))
		}
		if err != nil {
			return out, err
		}
		defer held.release()
	}
	for _, r := range refs {
		if name != "" && r.Name != name {
			continue
		}
		if err := os.Remove(w.s.refPath(r.Name)); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return out, w.s.failed("remove", r.Name, err)
		}
		out.Names = append(out.Names, r.Name)
	}
	if others {
		return out, nil
	}
	out.Images = append(out.Images, digest)
	out.Bytes, err = w.removeTree(digest)
	return out, err
}

// removeTree takes a tree out of its place at once, and then apart. The caller
// holds its lock.
func (w *work) removeTree(digest string) (int64, error) {
	m, err := w.s.readMarker(digest)
	if errors.Is(err, fs.ErrNotExist) {
		return 0, nil
	}
	size := int64(0)
	if err == nil {
		size = m.Tally.Bytes
	}
	place, temp := w.s.path(treesDir, hexOf(digest)), w.temp()
	if err := os.Rename(place, temp); err != nil {
		return 0, w.s.failed("remove", place, err)
	}
	return size, w.s.failed("remove", place, os.RemoveAll(temp))
}

// removeBlobs removes all blobs that no image needs. It is [tranca.ErrBusy]
// while something is imported.
func (s *Store) removeBlobs(ctx context.Context) (freed int64, err error) {
	held, err := s.tryLock(wholeStore, exclusive)
	if err != nil {
		return 0, err
	}
	defer held.release()
	needed, err := s.needed(ctx)
	if err != nil {
		return 0, err
	}
	list, err := os.ReadDir(s.path(blobsDir))
	if err != nil {
		return 0, s.failed("read", blobsDir, err)
	}
	for _, e := range list {
		if needed[e.Name()] {
			continue
		}
		if info, err := e.Info(); err == nil {
			freed += info.Size()
		}
		if err := os.Remove(s.path(blobsDir, e.Name())); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return freed, s.failed("remove", e.Name(), err)
		}
	}
	return freed, nil
}

// needed are the blobs of all images that have a name or a tree, by their digits.
func (s *Store) needed(ctx context.Context) (map[string]bool, error) {
	refs, err := s.refs(ctx)
	if err != nil {
		return nil, err
	}
	images, err := s.trees()
	if err != nil {
		return nil, err
	}
	for _, r := range refs {
		images = append(images, r.Digest)
	}
	needed := map[string]bool{}
	for _, digest := range images {
		needed[hexOf(digest)] = true
		m, _, err := s.documents(digest)
		if err != nil {
			continue // damaged: what it needed can't be told
		}
		needed[hexOf(m.Config.Digest)] = true
		for _, l := range m.Layers {
			needed[hexOf(l.Digest)] = true
		}
	}
	return needed, nil
}

// Prune removes what no name leads to: trees, blobs, and what killed processes
// left. With all it removes every image but those that keep says of and those
// that sandboxes use. It waits for imports that are under way.
func (s *Store) Prune(ctx context.Context, all bool, keep func(Info) bool) (Removed, error) {
	out := Removed{Names: []string{}, Images: []string{}}
	images, err := s.List(ctx)
	if err != nil {
		return out, err
	}
	if err := s.look(); errors.Is(err, fs.ErrNotExist) {
		return out, nil
	}
	w, err := s.begin(ctx)
	if err != nil {
		return out, err
	}
	for _, i := range images {
		if len(i.Names) > 0 && (!all || keep(i)) {
			continue
		}
		one, rerr := w.removeImage(ctx, i.Digest, "")
		out.Names, out.Images = append(out.Names, one.Names...), append(out.Images, one.Images...)
		out.Bytes += one.Bytes
		if errors.Is(rerr, tranca.ErrBusy) {
			out.Kept = append(out.Kept, rerr.Error())
		} else {
			err = errors.Join(err, rerr)
		}
	}
	if err := errors.Join(err, w.end()); err != nil {
		return out, err
	}
	for {
		freed, err := s.removeBlobs(ctx)
		if !errors.Is(err, tranca.ErrBusy) {
			out.Bytes += freed
			return out, err
		}
		held, err := s.lock(ctx, wholeStore, exclusive)
		if err != nil {
			return out, err
		}
		held.release()
	}
}
