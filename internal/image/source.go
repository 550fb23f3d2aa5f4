//go:build linux

package image

import (
	"context"
	"fmt"
	"io"
	"time"

	"tranca"
)

// Source is where an image comes from. Nothing that it gives is believed: what
// it opens is compared with the descriptor by which it was asked for.
type Source interface {
	// Root returns the index or manifest that the image begins with.
	Root(ctx context.Context) ([]byte, error)
	// Document opens an index or manifest, Blob everything else. ctx bounds the
	// reading too.
	Document(ctx context.Context, d Descriptor) (io.ReadCloser, error)
	Blob(ctx context.Context, d Descriptor) (io.ReadCloser, error)
	// Name says what it is, for people.
	Name() string
}

// Add takes an image from a source, unpacks it, and gives it its name. An image
// that is there already only gets the name. Errors wrap [tranca.ErrInvalid] (the
// image is malformed, or exceeds a bound), [tranca.ErrNotFound] (not for that
// platform), [tranca.ErrNoSpace], [tranca.ErrRefused] or
// [tranca.ErrUnavailable]. Then nothing but whole blobs is left of it, which
// prune removes.
func (s *Store) Add(ctx context.Context, src Source, o AddOptions) (Info, error) {
	return s.importBy(ctx, o, func(*work) (Source, error) { return src, nil })
}

// namedBy is the name that an image shall have.
func namedBy(o AddOptions) (Name, error) {
	n, err := ParseName(o.Name)
	if err == nil && n.Name == "" {
		err = fmt.Errorf("%w: an image needs a name, not only a digest", tranca.ErrInvalid)
	}
	return n, err
}

func (w *work) add(ctx context.Context, src Source, n Name, o AddOptions) (string, error) {
	raw, err := src.Root(ctx)
	if err != nil {
		return "", err
	}
	if n.Digest != "" && digestOf(raw) != n.Digest {
		return "", fmt.Errorf("%w: %s has the digest %s, and %s was asked for", tranca.ErrInvalid, src.Name(), digestOf(raw), n.Digest)
	}
	asked := o.Platform.orHost()
	if raw, err = pick(ctx, src, raw, asked); err != nil {
		return "", err
	}
	digest, err := w.addImage(ctx, src, raw, asked, o.Progress)
	if err != nil {
		return "", err
	}
	return digest, w.addRef(ref{Name: n.Name, Digest: digest, Source: src.Name(), Added: time.Now().UTC()})
}

// pick goes from an index to the manifest for a platform.
func pick(ctx context.Context, src Source, raw []byte, asked Platform) ([]byte, error) {
	for range maxIndexes {
		several, err := isIndex(raw)
		if err != nil || !several {
			return raw, err
		}
		var x index
		if err := decode("index", raw, &x); err != nil {
			return nil, err
		}
		d, err := x.choose(asked)
		if err != nil {
			return nil, err
		}
		if raw, err = document(ctx, d, src.Document); err != nil {
			return nil, err
		}
	}
	return nil, malformed("index", "more than %d stand one in the other", maxIndexes)
}

// document reads a small blob from a source, and checks it.
func document(ctx context.Context, d Descriptor, open func(context.Context, Descriptor) (io.ReadCloser, error)) ([]byte, error) {
	if err := d.check(MaxDocument); err != nil {
		return nil, err
	}
	r, err := open(ctx, d)
	if err != nil {
		return nil, err
	}
	defer r.Close()
	b, err := io.ReadAll(io.LimitReader(r, d.Size+1))
	switch {
	case err != nil:
		return nil, err
	case int64(len(b)) != d.Size:
		return nil, fmt.Errorf("%w: %s does not have the %d bytes that were promised", tranca.ErrInvalid, short(d.Digest), d.Size)
	case digestOf(b) != d.Digest:
		return nil, fmt.Errorf("%w: %s has another digest: %s", tranca.ErrInvalid, short(d.Digest), digestOf(b))
	}
	return b, nil
}

// addImage takes the image of a manifest, and unpacks it.
func (w *work) addImage(ctx context.Context, src Source, raw []byte, asked Platform, p Progress) (string, error) {
	m, err := parseManifest(raw, w.s.bounds)
	if err != nil {
		return "", err
	}
	text, err := document(ctx, m.Config, src.Blob)
	if err != nil {
		return "", err
	}
	c, err := parseConfig(text, m)
	if err != nil {
		return "", err
	}
	if !c.Platform.fits(asked) {
		return "", otherPlatform(asked, []string{c.Platform.String()})
	}
	total := int64(0)
	for _, l := range m.Layers {
		total += l.Size
	}
	p.begin("getting "+src.Name(), total)
	if _, err := w.addBytes(ctx, text); err != nil {
		return "", err
	}
	for _, l := range m.Layers {
		open := func(ctx context.Context) (io.ReadCloser, error) { return src.Blob(ctx, l) }
		if err := w.addBlob(ctx, l, open, p); err != nil {
			return "", err
		}
	}
	digest, err := w.addBytes(ctx, raw)
	if err != nil {
		return "", err
	}
	return digest, w.ensureTree(ctx, digest, m, c, p)
}

// compose makes manifest and configuration for a layer that came without. The
// same layer gives the same image.
func compose(layer Descriptor, diffID string) (raw, text []byte, err error) {
	epoch := time.Unix(0, 0).UTC()
	text, err = encode(config{
		Platform: (Platform{}).orHost(), Created: &epoch, Config: runConfig{Env: []string{DefaultPath}},
		RootFS: rootFS{Type: "layers", DiffIDs: []string{diffID}},
	})
	if err != nil {
		return nil, nil, err
	}
	raw, err = encode(manifest{
		SchemaVersion: 2, MediaType: typeOCIManifest, Config: ownConfig(text), Layers: []Descriptor{layer},
	})
	return raw, text, err
}

// ownConfig describes a configuration.
func ownConfig(text []byte) Descriptor {
	return Descriptor{MediaType: typeOCIConfig, Digest: digestOf(text), Size: int64(len(text))}
}
