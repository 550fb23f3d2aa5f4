package client

import (
	"context"
	"errors"
	"io"
	"strings"
	"testing"

	"tranca"
)

func TestFiles(t *testing.T) {
	start(t).each(func(t *testing.T, c *Client) {
		ctx, f := t.Context(), create(t, c).Files()
		odd := "/work/\xff+ %2F?&.txt"
		if n, err := f.Write(ctx, odd, strings.NewReader("content"), 0o640); err != nil || n != 7 {
			t.Fatal(n, err)
		}
		info, err := f.Stat(ctx, odd)
		if err != nil || info.Path != odd || info.Name != odd[6:] || info.Size != 7 || info.Mode != 0o640 || info.Type != tranca.FileRegular || info.Modified.IsZero() {
			t.Errorf("%+v, %v", info, err)
		}
		r, err := f.Read(ctx, odd, 3)
		if err != nil {
			t.Fatal(err)
		}
		if got, err := io.ReadAll(r); err != nil || string(got) != "tent" {
			t.Errorf("%q, %v", got, err)
		}
		if err := r.Close(); err != nil {
			t.Error(err)
		}
		if d, err := f.MakeDir(ctx, "/work/a/b"); err != nil || d.Type != tranca.FileDirectory {
			t.Errorf("%+v, %v", d, err)
		}
		if _, err := f.MakeDir(ctx, "/work/a"); !errors.Is(err, tranca.ErrExists) {
			t.Errorf("made twice: %v", err)
		}
		if _, err := f.Write(ctx, "plain", strings.NewReader(""), 0o600); err != nil {
			t.Error(err)
		}
		if m, err := f.Move(ctx, "plain", "/work/a/b/c"); err != nil || m.Path != "/work/a/b/c" {
			t.Errorf("%+v, %v", m, err)
		}
		list, err := f.List(ctx, "/work", 3)
		if err != nil || len(list) != 4 || list[0].Path != "/work/a" || list[3].Path != odd {
			t.Errorf("%+v, %v", list, err)
		}
		if err := f.Remove(ctx, "/work/a"); err != nil {
			t.Error(err)
		}
		if err := f.Remove(ctx, "/work/a"); err != nil {
			t.Errorf("removed twice: %v", err)
		}
		for name, err := range map[string]error{
			"stat": second(f.Stat(ctx, "/work/a")), "read": second(f.Read(ctx, "/work/a", 0)), "list": second(f.List(ctx, "/work/a", 1)),
		} {
			if !errors.Is(err, tranca.ErrNotFound) {
				t.Errorf("%s: %v", name, err)
			}
		}
		if _, err := f.Move(ctx, "\xff", "x"); !errors.Is(err, tranca.ErrInvalid) {
			t.Errorf("a name that would arrive as another one: %v", err)
		}
	})
}

func second[T any](_ T, err error) error { return err }

func TestUploadsGoOn(t *testing.T) {
	start(t).each(func(t *testing.T, c *Client) {
		ctx, f := t.Context(), create(t, c).Files()
		resumer, ok := tranca.As[tranca.FileResumer, tranca.Files](f)
		if !ok {
			t.Fatal("it can't go on")
		}
		if _, linker := tranca.As[tranca.FileLinker, tranca.Files](f); linker {
			t.Error("it says that it makes links")
		}
		if _, err := f.Write(ctx, "f", strings.NewReader("one two"), 0o600); err != nil {
			t.Fatal(err)
		}
		if n, err := resumer.WriteFrom(ctx, "f", strings.NewReader("2 three"), 4, 0o600); err != nil || n != 7 {
			t.Errorf("%d, %v", n, err)
		}
		if got := content(t, f, "f"); got != "one 2 three" {
			t.Errorf("%q", got)
		}
		for name, offset := range map[string]int64{"beyond": 100, "negative": -1} {
			if _, err := resumer.WriteFrom(ctx, "f", strings.NewReader("x"), offset, 0o600); !errors.Is(err, tranca.ErrInvalid) {
				t.Errorf("%s: %v", name, err)
			}
		}
		why := errors.New("why")
		if _, err := f.Write(ctx, "g", io.MultiReader(strings.NewReader("some"), failing{why}), 0o600); !errors.Is(err, why) {
			t.Errorf("a reader that fails: %v", err)
		}
	})
}

type failing struct{ err error }

func (f failing) Read([]byte) (int, error) { return 0, f.err }

func content(t *testing.T, f tranca.Files, path string) string {
	t.Helper()
	r, err := f.Read(t.Context(), path, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	b, err := io.ReadAll(r)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

func TestADownloadEndsWithItsContext(t *testing.T) {
	start(t).each(func(t *testing.T, c *Client) {
		f := create(t, c).Files()
		if _, err := f.Write(t.Context(), "f", io.LimitReader(zeros{}, 8<<20), 0o600); err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithCancel(t.Context())
		r, err := f.Read(ctx, "f", 0)
		if err != nil {
			t.Fatal(err)
		}
		defer r.Close()
		if _, err := io.ReadFull(r, make([]byte, 10)); err != nil {
			t.Fatal(err)
		}
		cancel()
		if _, err := io.Copy(io.Discard, r); !errors.Is(err, context.Canceled) {
			t.Errorf("%v", err)
		}
	})
}
