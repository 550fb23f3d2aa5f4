//go:build linux

package image

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"

	"tranca"
)

// blobSource is an image whose blobs are found by their digests.
type blobSource struct {
	name  string
	root  []byte
	open  func(digest string) (io.ReadCloser, error)
	close func() error
}

var _ Source = (*blobSource)(nil)

// Root returns what was found at the beginning.
func (b *blobSource) Root(context.Context) ([]byte, error) { return b.root, nil }

// Document opens a blob.
func (b *blobSource) Document(_ context.Context, d Descriptor) (io.ReadCloser, error) {
	return b.open(d.Digest)
}

// Blob opens a blob.
func (b *blobSource) Blob(_ context.Context, d Descriptor) (io.ReadCloser, error) {
	return b.open(d.Digest)
}

// Name returns the name of the file or folder.
func (b *blobSource) Name() string { return b.name }

// Close frees what it holds.
func (b *blobSource) Close() error {
	if b.close == nil {
		return nil
	}
	return b.close()
}

const layoutBlobs = "blobs/sha256/"

// layoutRoot is what the index of a layout begins with: the one image in it,
// whose digest then is the layout's, or the index.
func layoutRoot(raw []byte, open func(digest string) (io.ReadCloser, error)) ([]byte, error) {
	var x index
	if err := decode("index", raw, &x); err != nil {
		return nil, err
	}
	if len(x.Manifests) != 1 {
		return raw, nil
	}
	return document(context.Background(), x.Manifests[0], func(_ context.Context, d Descriptor) (io.ReadCloser, error) {
		return open(d.Digest)
	})
}

// layout is the source of an OCI layout in an archive.
func (m *members) layout(name string) (Source, error) {
	raw, err := m.read(indexFile)
	if err != nil {
		return nil, err
	}
	b := &blobSource{name: name, open: func(digest string) (io.ReadCloser, error) {
		f, err := m.get(layoutBlobs + hexOf(digest))
		if err != nil {
			return nil, err
		}
		if path := m.w.files[f.digest]; path != "" {
			return os.Open(path)
		}
		return os.Open(m.w.s.blobPath(f.digest)) // it came into the store meanwhile
	}}
	b.root, err = layoutRoot(raw, b.open)
	return b, err
}

// folderSource is the source of a folder: an OCI layout, or a root tree.
func (w *work) folderSource(ctx context.Context, dir string, p Progress) (Source, error) {
	root, err := os.OpenRoot(dir)
	if err != nil {
		return nil, inputError(dir, err)
	}
	_, err = root.Lstat(layoutFile)
	if errors.Is(err, fs.ErrNotExist) {
		defer root.Close()
		return w.treeSource(ctx, root, dir, p)
	}
	raw, err := readFrom(root, indexFile)
	if err != nil {
		return nil, errors.Join(err, root.Close())
	}
	b := &blobSource{name: dir, close: root.Close, open: func(digest string) (io.ReadCloser, error) {
		return openRegular(root, layoutBlobs+hexOf(digest))
	}}
	if b.root, err = layoutRoot(raw, b.open); err != nil {
		return nil, errors.Join(err, root.Close())
	}
	return b, nil
}

func readFrom(root *os.Root, name string) ([]byte, error) {
	f, err := openRegular(root, name)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return io.ReadAll(io.LimitReader(f, MaxDocument+1))
}

// dockerArchive is the source of an archive of `docker save`. It has no
// manifest of the kind that digests are of, so one is made.
func (m *members) dockerArchive(ctx context.Context, name string) (Source, error) {
	raw, err := m.read(manifestFile)
	if err != nil {
		return nil, err
	}
	var images []struct {
		Config   string
		RepoTags []string
		Layers   []string
	}
	if err := decode("archive", raw, &images); err != nil {
		return nil, err
	}
	if len(images) != 1 {
		return nil, malformed("archive", "%d images are in it: save one into each archive", len(images))
	}
	if len(images[0].Layers) > m.w.s.bounds.Layers {
		return nil, malformed("archive", "%d layers: at most %d are taken", len(images[0].Layers), m.w.s.bounds.Layers)
	}
	text, err := m.read(images[0].Config)
	if err != nil {
		return nil, err
	}
	doc := manifest{
		SchemaVersion: 2, MediaType: typeOCIManifest, Config: ownConfig(text), Layers: []Descriptor{},
	}
	for _, layer := range images[0].Layers {
		f, err := m.get(layer)
		if err != nil {
			return nil, err
		}
		d, err := layerDescriptor(f.path, f.digest, f.size)
		if err != nil {
			return nil, err
		}
		doc.Layers = append(doc.Layers, d)
	}
	root, err := encode(doc)
	if err != nil {
		return nil, err
	}
	return m.w.ownSource(name, root, text), nil
}

// layerDescriptor describes a layer in a file.
func layerDescriptor(file, digest string, size int64) (Descriptor, error) {
	f, err := os.Open(file)
	if err != nil {
		return Descriptor{}, err
	}
	defer f.Close()
	head := make([]byte, 4)
	n, err := io.ReadFull(f, head)
	if err != nil && err != io.EOF && err != io.ErrUnexpectedEOF {
		return Descriptor{}, err
	}
	kind := map[compression]string{plain: typeOCILayer, gzipped: typeOCILayerGzip, zstandard: typeOCILayer + "+zstd"}
	return Descriptor{MediaType: kind[sniff(head[:n])], Digest: digest, Size: size}, nil
}

// ownSource is the source of an image that was put together in the folder of the
// work. Its layers lie there, or came into the store meanwhile.
func (w *work) ownSource(name string, root, text []byte) Source {
	return &blobSource{name: name, root: root, open: func(digest string) (io.ReadCloser, error) {
		if digest == digestOf(text) {
			return readCloser(text), nil
		}
		path := cmp.Or(w.files[digest], w.s.blobPath(digest))
		f, err := os.Open(path)
		return f, w.s.failed("open", path, err)
	}}
}

// tarballSource is the source of a root tree in a tarball: one layer, byte for
// byte as it came.
func (w *work) tarballSource(ctx context.Context, r io.Reader, name string) (Source, error) {
	file := w.temp()
	digest, n, err := w.spool(ctx, file, io.LimitReader(r, w.s.bounds.Bytes+1))
	if err != nil {
		return nil, err
	}
	if n > w.s.bounds.Bytes {
		return nil, fmt.Errorf("%w: the tarball has more than %d bytes", tranca.ErrInvalid, w.s.bounds.Bytes)
	}
	w.files[digest] = file
	d, err := layerDescriptor(file, digest, n)
	if err != nil {
		return nil, err
	}
	diffID := digest
	if d.MediaType != typeOCILayer {
		if diffID, err = w.diffID(ctx, file); err != nil {
			return nil, err
		}
	}
	root, text, err := compose(d, diffID)
	if err != nil {
		return nil, err
	}
	return w.ownSource(path.Base(name), root, text), nil
}

// DefaultPath is where programs are looked for in an image that doesn't say.
const DefaultPath = "PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"

// diffID is the digest of what is in a compressed file.
func (w *work) diffID(ctx context.Context, file string) (string, error) {
	f, err := os.Open(file)
	if err != nil {
		return "", w.s.failed("open", file, err)
	}
	defer f.Close()
	z, _, err := decompress(f)
	if err != nil {
		return "", err
	}
	defer z.Close()
	most := w.s.bounds.archive()
	digest, n, err := digestStream(ctx, io.LimitReader(z, most+1))
	if err == nil && n > most {
		err = fmt.Errorf("%w: the tarball is longer than it may be when it is decompressed", tranca.ErrInvalid)
	}
	return digest, err
}
