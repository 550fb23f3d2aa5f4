//go:build linux

package image

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"runtime"
	"slices"
	"strings"

	"tranca"
)

// Open finds an image and keeps its tree from being removed until release is
// called. A tree that is missing, though the image's blobs are there, is
// unpacked first. Errors wrap [tranca.ErrInvalid] (no name, or one that several
// images have), [tranca.ErrUnavailable], or are a [tranca.RefusalError] where
// there is no such image or it is made for another machine.
func (s *Store) Open(ctx context.Context, name string) (img *tranca.Image, release func(), err error) {
	digest, err := s.resolve(ctx, name)
	if err != nil {
		return nil, nil, err
	}
	for {
		held, err := s.lock(ctx, placeOf(digest, forTree), shared)
		if err != nil {
			return nil, nil, err
		}
		m, err := s.readMarker(digest)
		if err == nil {
			img, err = s.opened(name, digest, m)
		}
		if err == nil {
			s.used(digest)
			return img, held.release, nil
		}
		held.release()
		if !errors.Is(err, fs.ErrNotExist) && !errors.Is(err, errCorrupt) {
			return nil, nil, err
		}
		if err := s.restore(ctx, digest); err != nil {
			return nil, nil, s.mend(name, err)
		}
	}
}

// mend says what to do about an image that can't be opened.
func (s *Store) mend(name string, err error) error {
	if errors.Is(err, errCorrupt) || errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("%w: image %s: the cache was damaged: %w: remove the image (tranca image rm %s) and get it again (%s)",
			tranca.ErrUnavailable, name, err, name, howToGet(name))
	}
	return err
}

// opened is the image of a tree that is there.
func (s *Store) opened(name, digest string, m *marker) (*tranca.Image, error) {
	if here := (Platform{}).orHost(); !m.Platform.fits(here) {
		return nil, &tranca.RefusalError{Problems: []tranca.Problem{{
			Item: tranca.ItemFiles, Asked: "image " + name,
			Missing: fmt.Sprintf("the image is made for %s, and this machine is %s", m.Platform, here),
			Mend:    "tranca image pull --platform linux/" + runtime.GOARCH + " " + name,
		}}}
	}
	return &tranca.Image{
		Name: name, Digest: digest, Root: s.path(treesDir, hexOf(digest), treeName), Env: m.Env,
		Export: func(ctx context.Context, w io.Writer) error { return s.export(ctx, digest, w) },
	}, nil
}

// restore unpacks a tree again from blobs that are there.
func (s *Store) restore(ctx context.Context, digest string) error {
	m, c, err := s.documents(digest)
	if err != nil {
		return err
	}
	w, err := s.begin(ctx)
	if err != nil {
		return err
	}
	return errors.Join(w.ensureTree(ctx, digest, m, c, nil), w.end())
}

// ensureTree unpacks an image unless that was done. Of several processes one
// does it, and the others wait.
func (w *work) ensureTree(ctx context.Context, digest string, m *manifest, c *config, p Progress) error {
	held, err := w.s.lock(ctx, placeOf(digest, forTree), exclusive)
	if err != nil {
		return err
	}
	defer held.release()
	_, err = w.s.readMarker(digest)
	if errors.Is(err, fs.ErrNotExist) || errors.Is(err, errCorrupt) {
		return w.unpack(ctx, digest, m, c, p)
	}
	return err
}

// documents reads the manifest and the configuration of an image.
func (s *Store) documents(digest string) (*manifest, *config, error) {
	b, err := s.readDocument(digest)
	if err != nil {
		return nil, nil, err
	}
	m, err := parseManifest(b, s.bounds)
	if err != nil {
		return nil, nil, err
	}
	if b, err = s.readDocument(m.Config.Digest); err != nil {
		return nil, nil, err
	}
	c, err := parseConfig(b, m)
	return m, c, err
}

// Digest returns the digest that a name stands for. Errors are those of Open.
func (s *Store) Digest(ctx context.Context, name string) (string, error) { return s.resolve(ctx, name) }

// resolve returns the digest that a name stands for.
func (s *Store) resolve(ctx context.Context, text string) (string, error) {
	n, err := ParseName(text)
	if err != nil {
		return "", err
	}
	if err := s.look(); errors.Is(err, fs.ErrNotExist) {
		return "", s.missing(ctx, text)
	} else if err != nil {
		return "", err
	}
	if n.Name != "" && n.Digest == "" {
		r, err := s.ref(n.Name)
		if err == nil || !errors.Is(err, fs.ErrNotExist) && !errors.Is(err, errCorrupt) {
			return r.Digest, err
		}
		if !isHex(n.Name) || len(n.Name) < minPrefix {
			return "", s.missing(ctx, text)
		}
		n.Digest = "sha256:" + n.Name
	}
	return s.byDigest(ctx, text, n.Digest)
}

// byDigest finds the one image whose digest begins so.
func (s *Store) byDigest(ctx context.Context, text, prefix string) (string, error) {
	refs, err := s.refs(ctx)
	if err != nil {
		return "", err
	}
	found, err := s.trees()
	if err != nil {
		return "", err
	}
	for _, r := range refs {
		found = append(found, r.Digest)
	}
	found = slices.DeleteFunc(found, func(d string) bool { return !strings.HasPrefix(d, prefix) })
	slices.Sort(found)
	switch found = slices.Compact(found); len(found) {
	case 0:
		return "", s.missing(ctx, text)
	case 1:
		return found[0], nil
	}
	return "", fmt.Errorf("%w: image %q: %d images have digests that begin so; give more digits", tranca.ErrInvalid, text, len(found))
}

// missing is the refusal of an image that is not there, with the command that
// gets it.
func (s *Store) missing(ctx context.Context, name string) error {
	what := "there is no image " + name + " in " + s.dir
	if refs, err := s.refs(ctx); err == nil && len(refs) > 0 {
		var names []string
		for _, r := range refs {
			names = append(names, r.Name)
		}
		slices.Sort(names)
		what += fmt.Sprintf(" (there is: %.300s)", strings.Join(names, ", "))
	}
	return &MissingError{tranca.RefusalError{Problems: []tranca.Problem{{
		Item: tranca.ItemFiles, Asked: "image " + name, Missing: what, Mend: howToGet(name),
	}}}}
}

// MissingError says that there is no such image. It is a refusal, and wraps
// [tranca.ErrNotFound] too.
type MissingError struct{ tranca.RefusalError }

// Unwrap makes it a [*tranca.RefusalError].
func (e *MissingError) Unwrap() []error { return []error{&e.RefusalError, tranca.ErrNotFound} }

// howToGet is the command that makes or gets an image of that name.
func howToGet(name string) string {
	n, err := ParseName(name)
	switch {
	case err == nil && slices.Contains(Profiles, n.Name):
		return "tranca image build " + n.Name
	case err == nil && n.Name != "":
		return "tranca image pull " + name
	}
	return "tranca image list"
}
