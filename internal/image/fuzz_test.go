//go:build linux

package image

import (
	"archive/tar"
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"runtime"
	"testing"

	"tranca"
)

// FuzzLayer unpacks any bytes as the second layer of a tree. unpacked looks at
// the tree's neighbours.
func FuzzLayer(f *testing.F) {
	f.Add(layerOf(f, file("a"), link("d", "/"), file("d/etc/passwd"), hard("h", "a"), file(".wh.a"), file("d/.wh..wh..opq")))
	f.Add(layerOf(f, dir("x/y"), entry{Name: "dev", Typeflag: tar.TypeChar}, entry{Name: "p", Typeflag: tar.TypeFifo}))
	f.Add(gzipOf(f, layerOf(f, link("l", "../../.."), file("l/x"))))
	f.Add(zstdOf(f, layerOf(f, file("z"))))
	lower := layerOf(f, file("a"), link("lib", "usr/lib"), file("usr/lib/x"), dir("empty"))
	f.Fuzz(func(t *testing.T, data []byte) {
		z, _, err := decompress(bytes.NewReader(data))
		if err != nil {
			return
		}
		defer z.Close()
		plain, err := io.ReadAll(io.LimitReader(z, 1<<20))
		if err != nil {
			return
		}
		unpacked(t, Bounds{Bytes: 1 << 20, Entries: 200}, lower, plain)
	})
}

// FuzzDocuments reads any bytes as an index, a manifest and a configuration.
func FuzzDocuments(f *testing.F) {
	m := makeImage(f, config{Config: runConfig{Env: []string{"A=b", "=", "x"}}}, layerOf(f, file("a")))
	f.Add(m.root)
	for _, b := range m.blobs {
		if json.Valid(b) {
			f.Add(b)
		}
	}
	f.Add([]byte(`{"schemaVersion":2,"manifests":[{"digest":"sha256:00","platform":{"os":"linux","architecture":"` + runtime.GOARCH + `"}}]}`))
	f.Add([]byte(`[{"Config":"a","RepoTags":null,"Layers":["b"]}]`))
	two := &manifest{Layers: make([]Descriptor, 1)}
	f.Fuzz(func(t *testing.T, data []byte) {
		several, err := isIndex(data)
		classify(t, err)
		var x index
		if several && decode("index", data, &x) == nil {
			if d, err := x.choose(Platform{}.orHost()); err == nil && d.Platform != nil && d.Platform.OS != "linux" && len(x.Manifests) > 1 {
				t.Errorf("chose %+v", d)
			}
		}
		got, err := parseManifest(data, Bounds{}.withDefaults())
		classify(t, err)
		if err == nil {
			for _, d := range append(got.Layers, got.Config) {
				if !wholeDigest(d.Digest) || d.Size < 0 {
					t.Errorf("took %+v", d)
				}
			}
		}
		c, err := parseConfig(data, two)
		classify(t, err)
		if err == nil {
			for name, value := range c.environment() {
				if name == "" || bytes.ContainsRune([]byte(name+value), 0) || bytes.ContainsRune([]byte(name), '=') {
					t.Errorf("variable %q=%q", name, value)
				}
			}
		}
	})
}

func classify(t *testing.T, err error) {
	t.Helper()
	if err != nil && !errors.Is(err, tranca.ErrInvalid) {
		t.Errorf("an error of no class: %v", err)
	}
}

func FuzzName(f *testing.F) {
	for _, s := range []string{"code", "python:3.12", "docker.io/library/x@sha256:", "sha256:abcdef", "localhost:5000/a/b:c"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, text string) {
		n, err := ParseName(text)
		classify(t, err)
		if err != nil {
			return
		}
		again, err := ParseName(n.String())
		if err != nil || again != n {
			t.Errorf("%q is %+v, and that %+v, %v", text, n, again, err)
		}
	})
}
