//go:build linux

package image

import (
	"archive/tar"
	"context"
	"fmt"
	"io"
	"os"

	"tranca"
)

// exportedName is what an image is called in the archives of export; behind it
// stand the digits of its digest.
const exportedName = "tranca.local/image:"

// export writes an image as `docker save` does, for engines of every age: an
// OCI layout, and beside it the list of files that older ones read. Layers and
// configuration are byte for byte those of the store; only what is compressed
// in a way that older engines don't know stands there a second time, as it is
// when it is decompressed.
func (s *Store) export(ctx context.Context, digest string, w io.Writer) error {
	m, _, err := s.documents(digest)
	if err != nil {
		return s.mend(digest, err)
	}
	size, err := os.Stat(s.blobPath(digest))
	if err != nil {
		return s.failed("look at", s.blobPath(digest), err)
	}
	e := &exporter{s: s, ctx: ctx, w: tar.NewWriter(w), done: map[string]bool{}}
	type saved struct {
		Config   string
		RepoTags []string
		Layers   []string
	}
	list := saved{Config: layoutBlobs + hexOf(m.Config.Digest), RepoTags: []string{exportedName + hexOf(digest)}, Layers: []string{}}
	manifestType := m.MediaType
	if manifestType == "" {
		manifestType = typeOCIManifest
	}
	whole := Descriptor{MediaType: manifestType, Digest: digest, Size: size.Size()}
	for _, d := range append([]Descriptor{m.Config, whole}, m.Layers...) {
		if err := e.blob(d); err != nil {
			return s.mend(digest, err)
		}
	}
	for _, d := range m.Layers {
		name, err := e.layer(d)
		if err != nil {
			return s.mend(digest, err)
		}
		list.Layers = append(list.Layers, name)
	}
	for _, doc := range []struct {
		name string
		v    any
	}{
		{layoutFile, map[string]string{"imageLayoutVersion": "1.0.0"}},
		{indexFile, index{SchemaVersion: 2, MediaType: typeOCIIndex, Manifests: []Descriptor{whole}}},
		{manifestFile, []saved{list}},
	} {
		if err := e.document(doc.name, doc.v); err != nil {
			return err
		}
	}
	return e.w.Close()
}

type exporter struct {
	s    *Store
	ctx  context.Context
	w    *tar.Writer
	done map[string]bool
}

func (e *exporter) header(name string, size int64) error {
	return e.w.WriteHeader(&tar.Header{Name: name, Size: size, Mode: 0o444, Typeflag: tar.TypeReg})
}

func (e *exporter) document(name string, v any) error {
	b, err := encode(v)
	if err != nil {
		return err
	}
	if err := e.header(name, int64(len(b))); err != nil {
		return err
	}
	_, err = e.w.Write(b)
	return err
}

// blob writes a blob, once, and fails where it isn't what it was.
func (e *exporter) blob(d Descriptor) error {
	name := layoutBlobs + hexOf(d.Digest)
	if e.done[name] {
		return nil
	}
	e.done[name] = true
	r, err := e.s.openBlob(d)
	if err != nil {
		return err
	}
	defer r.Close()
	if err := e.header(name, d.Size); err != nil {
		return err
	}
	_, err = copyAll(e.ctx, e.w, r)
	return err
}

// layer returns where a layer stands for engines that know neither zstd nor
// media types.
func (e *exporter) layer(d Descriptor) (string, error) {
	r, err := e.s.openBlob(d)
	if err != nil {
		return "", err
	}
	defer r.Close()
	z, kind, err := decompress(r)
	if err != nil {
		return "", err
	}
	defer z.Close()
	if kind != zstandard {
		return layoutBlobs + hexOf(d.Digest), nil
	}
	name := "layers/" + hexOf(d.Digest) + ".tar"
	if e.done[name] {
		return name, nil
	}
	e.done[name] = true
	// Its length has to stand before it.
	most := e.s.bounds.archive()
	_, n, err := digestStream(e.ctx, io.LimitReader(z, most+1))
	if err == nil && n > most {
		err = fmt.Errorf("%w: layer %s is longer than it may be when it is decompressed", tranca.ErrInvalid, short(d.Digest))
	}
	if err != nil {
		return "", err
	}
	return name, e.decompressed(name, d, n)
}

func (e *exporter) decompressed(name string, d Descriptor, size int64) error {
	r, err := e.s.openBlob(d)
	if err != nil {
		return err
	}
	defer r.Close()
	z, _, err := decompress(r)
	if err != nil {
		return err
	}
	defer z.Close()
	if err := e.header(name, size); err != nil {
		return err
	}
	_, err = copyAll(e.ctx, e.w, z)
	return err
}
