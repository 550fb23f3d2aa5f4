package client

import (
	"archive/tar"
	"bytes"
	"errors"
	"io"
	"strings"
	"testing"

	"tranca"
)

func TestArchives(t *testing.T) {
	start(t).each(func(t *testing.T, c *Client) {
		s := create(t, c)
		var in bytes.Buffer
		w := tar.NewWriter(&in)
		_ = w.WriteHeader(&tar.Header{Name: "folder/f", Mode: 0o600, Size: 4, Typeflag: tar.TypeReg})
		_, _ = io.WriteString(w, "text")
		_ = w.Close()
		size := int64(in.Len())
		if n, err := s.Extract(t.Context(), "/work/in", &in); err != nil || n > size {
			t.Fatal(n, err)
		}
		if got := content(t, s.Files(), "/work/in/folder/f"); got != "text" {
			t.Errorf("%q", got)
		}
		out, err := s.Archive(t.Context(), "/work/in")
		if err != nil {
			t.Fatal(err)
		}
		defer out.Close()
		names := ""
		for r := tar.NewReader(out); ; {
			h, err := r.Next()
			if err == io.EOF {
				break
			}
			if err != nil {
				t.Fatal(err)
			}
			names += h.Name + " "
		}
		if !strings.Contains(names, "folder/f") {
			t.Errorf("the archive holds %s", names)
		}
		if _, err := s.Archive(t.Context(), "/work/none"); !errors.Is(err, tranca.ErrNotFound) {
			t.Errorf("nothing is there: %v", err)
		}
		if _, err := s.Extract(t.Context(), "/work/in", strings.NewReader(strings.Repeat("no tar", 500))); !errors.Is(err, tranca.ErrInvalid) {
			t.Errorf("what is no tar: %v", err)
		}
	})
}
