//go:build linux

package image

import (
	"archive/tar"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/klauspost/compress/gzip"
	"github.com/klauspost/compress/zstd"

	"tranca"
)

// entry is one entry of a layer. Without a type it is a file whose content is
// its name's.
type entry = tar.Header

func file(name string) entry { return entry{Name: name} }
func dir(name string) entry  { return entry{Name: name, Typeflag: tar.TypeDir} }
func link(name, to string) entry {
	return entry{Name: name, Typeflag: tar.TypeSymlink, Linkname: to}
}
func hard(name, to string) entry {
	return entry{Name: name, Typeflag: tar.TypeLink, Linkname: to}
}

func layerOf(t testing.TB, entries ...entry) []byte {
	t.Helper()
	var b bytes.Buffer
	w := tar.NewWriter(&b)
	for _, h := range entries {
		content := ""
		if h.Typeflag == 0 {
			h.Typeflag = tar.TypeReg
		}
		if h.Typeflag == tar.TypeReg && h.Size == 0 {
			content = "of " + h.Name
			h.Size = int64(len(content))
		}
		if h.Mode == 0 {
			h.Mode = 0o640
		}
		if h.ModTime.IsZero() {
			h.ModTime = time.Unix(1_000_000, 0)
		}
		if err := w.WriteHeader(&h); err != nil {
			t.Fatal(err)
		}
		if content != "" {
			if _, err := io.WriteString(w, content); err != nil {
				t.Fatal(err)
			}
			continue
		}
		if _, err := io.CopyN(w, zeros{}, h.Size); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

type zeros struct{}

func (zeros) Read(b []byte) (int, error) { clear(b); return len(b), nil }

func gzipOf(t testing.TB, b []byte) []byte {
	t.Helper()
	var out bytes.Buffer
	z := gzip.NewWriter(&out)
	if _, err := z.Write(b); err != nil {
		t.Fatal(err)
	}
	if err := z.Close(); err != nil {
		t.Fatal(err)
	}
	return out.Bytes()
}

func zstdOf(t testing.TB, b []byte) []byte {
	t.Helper()
	z, err := zstd.NewWriter(nil)
	if err != nil {
		t.Fatal(err)
	}
	defer z.Close()
	return z.EncodeAll(b, nil)
}

// made is an image in memory, as a source.
type made struct {
	blobs map[string][]byte
	root  []byte
	// opened is told of each blob that is opened, where it is set.
	opened func(digest string)
}

func (m *made) Root(context.Context) ([]byte, error) { return m.root, nil }
func (m *made) Name() string                         { return "made" }

func (m *made) Document(ctx context.Context, d Descriptor) (io.ReadCloser, error) {
	return m.Blob(ctx, d)
}

func (m *made) Blob(_ context.Context, d Descriptor) (io.ReadCloser, error) {
	if m.opened != nil {
		m.opened(d.Digest)
	}
	b, ok := m.blobs[d.Digest]
	if !ok {
		return nil, fmt.Errorf("%w: no blob %s", tranca.ErrNotFound, d.Digest)
	}
	return io.NopCloser(bytes.NewReader(b)), nil
}

func (m *made) add(b []byte, mediaType string) Descriptor {
	d := Descriptor{MediaType: mediaType, Digest: digestOf(b), Size: int64(len(b))}
	m.blobs[d.Digest] = b
	return d
}

// marshal writes a document.
func marshal(t testing.TB, v any) []byte {
	t.Helper()
	b, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// makeImage makes an image of layers; each is a tar archive, packed or not.
func makeImage(t testing.TB, c config, layers ...[]byte) *made {
	t.Helper()
	m := &made{blobs: map[string][]byte{}}
	doc := manifest{SchemaVersion: 2, MediaType: typeOCIManifest, Layers: []Descriptor{}}
	c.RootFS = rootFS{Type: "layers", DiffIDs: []string{}}
	if c.OS == "" {
		c.Platform = Platform{OS: "linux", Architecture: runtime.GOARCH}
	}
	for _, l := range layers {
		z, kind, err := decompress(bytes.NewReader(l))
		if err != nil {
			t.Fatal(err)
		}
		diffID, _, err := digestStream(t.Context(), z)
		if err != nil {
			t.Fatal(err)
		}
		c.RootFS.DiffIDs = append(c.RootFS.DiffIDs, diffID)
		mediaType := map[compression]string{plain: typeOCILayer, gzipped: typeOCILayerGzip, zstandard: typeOCILayer + "+zstd"}[kind]
		doc.Layers = append(doc.Layers, m.add(l, mediaType))
	}
	doc.Config = m.add(marshal(t, c), typeOCIConfig)
	m.root = marshal(t, doc)
	return m
}

// newStore is a store in a folder of the test.
func newStore(t testing.TB) *Store {
	t.Helper()
	return New(Options{Dir: filepath.Join(t.TempDir(), "cache")})
}

// mustAdd adds an image to a store.
func mustAdd(t testing.TB, s *Store, src Source, name string) Info {
	t.Helper()
	info, err := s.Add(t.Context(), src, AddOptions{Name: name})
	if err != nil {
		t.Fatal(err)
	}
	return info
}

// listing shows what is in a folder, one entry a line, sorted.
func listing(t testing.TB, dir string) []string {
	t.Helper()
	var all []string
	err := filepath.WalkDir(dir, func(path string, d os.DirEntry, err error) error {
		if err != nil || path == dir {
			return err
		}
		rel, _ := filepath.Rel(dir, path)
		info, err := d.Info()
		if err != nil {
			return err
		}
		switch {
		case d.IsDir():
			all = append(all, rel+"/")
		case d.Type()&os.ModeSymlink != 0:
			to, _ := os.Readlink(path)
			all = append(all, rel+" -> "+to)
		case !d.Type().IsRegular():
			t.Errorf("%s is %v", path, d.Type())
		default:
			b, err := os.ReadFile(path)
			if len(b) > 100 {
				b = fmt.Appendf(nil, "%d bytes", len(b))
			}
			all = append(all, rel+" = "+string(b))
			return err
		}
		if info.Mode()&0o022 != 0 && d.Type()&os.ModeSymlink == 0 {
			t.Errorf("%s has the mode %v", path, info.Mode())
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	slices.Sort(all)
	return all
}

// ofImage shows what of a tree is the image's own: not the empty places that are
// made in every tree.
func ofImage(t testing.TB, root string) []string {
	t.Helper()
	places := []string{"etc/"}
	for _, name := range ownFolders {
		places = append(places, name+"/")
	}
	for _, name := range ownFiles {
		places = append(places, "etc/"+name+" = ")
	}
	return slices.DeleteFunc(listing(t, root), func(line string) bool { return slices.Contains(places, line) })
}

// unpacked puts layers upon each other in a new folder, whose neighbours must not
// change, and returns what is there.
func unpacked(t testing.TB, bounds Bounds, layers ...[]byte) ([]string, Tally, error) {
	t.Helper()
	top := t.TempDir()
	root := filepath.Join(top, "a", "root")
	for _, dir := range []string{"a", "a/root", "etc", "a/etc"} {
		if err := os.Mkdir(filepath.Join(top, dir), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	for _, f := range []string{"etc/passwd", "a/etc/passwd", "a/passwd"} {
		if err := os.WriteFile(filepath.Join(top, f), []byte("outside"), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	u, err := newUnpacker(root, bounds.withDefaults())
	if err != nil {
		t.Fatal(err)
	}
	defer u.close()
	for i, l := range layers {
		if err = u.layer(t.Context(), bytes.NewReader(l), i == 0); err != nil {
			break
		}
	}
	if err == nil {
		err = u.finish()
	}
	inside := listing(t, root)
	var outside []string
	for _, line := range listing(t, top) {
		if !strings.HasPrefix(line, "a/root/") {
			outside = append(outside, line)
		}
	}
	want := []string{"a/", "a/etc/", "a/etc/passwd = outside", "a/passwd = outside", "etc/", "etc/passwd = outside"}
	if !slices.Equal(outside, want) {
		t.Errorf("outside of the tree: %q", outside)
	}
	return inside, u.tally, err
}
