package server

import (
	"bytes"
	"crypto/rand"
	"io"
	"net/url"
	"strings"
	"testing"

	"tranca"
	"tranca/internal/api"
)

// at is the path of a call for a file.
func at(box, call, path string, more ...string) string {
	return box + "/files" + call + "?path=" + url.QueryEscape(path) + strings.Join(more, "")
}

func TestFiles(t *testing.T) {
	w := start(t)
	box := w.create()
	for _, size := range []int{0, 1, bufferSize - 1, bufferSize, bufferSize + 1, 3*bufferSize + 7} {
		want := make([]byte, size)
		_, _ = rand.Read(want)
		r := w.want(200, "PUT", at(box, "/content", "/work/a", "&mode=600"), bytes.NewReader(want), "Content-Type", api.TypeBytes)
		if n := into[api.WriteAnswer](t, r).Written; n != int64(size) {
			t.Errorf("%d bytes: %d written", size, n)
		}
		for _, offset := range []string{"", "&offset=0", "&offset=1"} {
			if offset == "&offset=1" && size == 0 {
				continue
			}
			got := w.want(200, "GET", at(box, "/content", "/work/a", offset), nil).body
			if skip := strings.Count(offset, "1"); !bytes.Equal(got, want[skip:]) {
				t.Errorf("%d bytes%s: %d came", size, offset, len(got))
			}
		}
		i := into[api.FileInfo](t, w.want(200, "GET", at(box, "/stat", "/work/a"), nil))
		if i.Size != int64(size) || i.Mode != "0600" || i.Type != tranca.FileRegular || i.Name != "a" {
			t.Errorf("%+v", i)
		}
	}
}

func TestFolders(t *testing.T) {
	w := start(t)
	box := w.create()
	if i := into[api.FileInfo](t, w.want(201, "POST", box+"/files/mkdir", api.PathRequest{Path: "/work/d/e"})); i.Path != "/work/d/e" || i.Type != tranca.FileDirectory {
		t.Errorf("%+v", i)
	}
	if p := w.want(409, "POST", box+"/files/mkdir", api.PathRequest{Path: "/work/d"}).problem(t); p.Code != api.CodeExists {
		t.Errorf("%+v", p)
	}
	w.want(200, "PUT", at(box, "/content", "/work/d/\xff"), strings.NewReader("x"))
	l := into[api.FileList](t, w.want(200, "GET", at(box, "", "/work/d", "&depth=2"), nil))
	if len(l.Files) != 2 || string(l.Files[1].PathBase64) != "/work/d/\xff" || l.Files[1].Path != "/work/d/\uFFFD" {
		t.Errorf("%+v", l)
	}
	if i := into[api.FileInfo](t, w.want(200, "POST", box+"/files/move", api.MoveRequest{From: "/work/d", To: "/work/f"})); i.Path != "/work/f" {
		t.Errorf("%+v", i)
	}
	for range 2 {
		w.want(204, "DELETE", at(box, "", "/work/f"), nil)
	}
	w.want(404, "GET", at(box, "/stat", "/work/f"), nil)
}

// TestResume shows that an upload goes on where it broke off.
func TestResume(t *testing.T) {
	w := start(t)
	box := w.create()
	put := func(status int, text, offset string) *reply {
		t.Helper()
		return w.want(status, "PUT", at(box, "/content", "/work/r", "&offset="+offset), strings.NewReader(text))
	}
	put(200, "01234", "0")
	put(200, "4567", "4")
	if got := w.want(200, "GET", at(box, "/content", "/work/r"), nil).body; string(got) != "01234567" {
		t.Errorf("%s", got)
	}
	if p := put(400, "x", "9").problem(t); p.Code != api.CodeInvalid {
		t.Errorf("%+v", p)
	}
}

func TestFileProblems(t *testing.T) {
	w := start(t)
	box := w.create()
	w.want(200, "PUT", at(box, "/content", "/work/a"), strings.NewReader("x"))
	for _, tc := range []struct {
		status       int
		method, path string
		body         any
		code         api.Code
	}{
		{400, "GET", box + "/files/content", nil, api.CodeInvalid},
		{400, "GET", at(box, "/content", ""), nil, api.CodeInvalid},
		{400, "GET", at(box, "/content", "a\x00b"), nil, api.CodeInvalid},
		{400, "GET", at(box, "/content", strings.Repeat("a", 4097)), nil, api.CodeInvalid},
		{400, "GET", at(box, "/content", "/work"), nil, api.CodeInvalid},
		{404, "GET", at(box, "/content", "/work/none"), nil, api.CodeNotFound},
		{400, "GET", at(box, "/content", "/work/a", "&offset=-1"), nil, api.CodeInvalid},
		{400, "GET", at(box, "/content", "/work/a", "&ofset=1"), nil, api.CodeInvalid},
		{400, "PUT", at(box, "/content", "/work/a", "&mode=999"), nil, api.CodeInvalid},
		{400, "PUT", at(box, "/content", "/work/a", "&mode=4755"), nil, api.CodeInvalid},
		{415, "PUT", at(box, "/content", "/work/a"), `{}`, api.CodeMediaType},
		{400, "PUT", at(box, "/content", "/work"), strings.NewReader("x"), api.CodeInvalid},
		{400, "GET", at(box, "", "/work", "&depth=0"), nil, api.CodeInvalid},
		{400, "DELETE", at(box, "", "/"), nil, api.CodeInvalid},
		{400, "DELETE", at(box, "", "/work/.."), nil, api.CodeInvalid},
		{400, "POST", box + "/files/mkdir", `{"path":""}`, api.CodeInvalid},
		{400, "POST", box + "/files/move", `{"from":"/work/a"}`, api.CodeInvalid},
		{404, "POST", box + "/files/move", `{"from":"/work/none","to":"/work/b"}`, api.CodeNotFound},
		{501, "GET", at(box, "/watch", "/work"), nil, api.CodeUnsupported},
	} {
		if p := w.want(tc.status, tc.method, tc.path, tc.body).problem(t); p.Code != tc.code {
			t.Errorf("%s %s: %+v", tc.method, tc.path, p)
		}
	}
}

// endless gives bytes for ever.
type endless struct{}

func (endless) Read(p []byte) (int, error) { return len(p), nil }

// TestEndlessUpload shows that an upload that never ends, ends when the space
// is full, and that its client is told.
func TestEndlessUpload(t *testing.T) {
	w := start(t)
	box := w.create()
	if p := w.want(507, "PUT", at(box, "/content", "/work/a"), io.Reader(endless{})).problem(t); p.Code != api.CodeNoSpace {
		t.Errorf("%+v", p)
	}
	w.want(204, "DELETE", at(box, "", "/work/a"), nil)
	w.want(200, "PUT", at(box, "/content", "/work/a"), strings.NewReader("x"))
}

// TestUnreadDownload shows that a client which goes away in the middle is no
// fault of the server.
func TestUnreadDownload(t *testing.T) {
	w := start(t)
	box := w.create()
	w.want(200, "PUT", at(box, "/content", "/work/large"), io.LimitReader(endless{}, 16<<20))
	c := w.dial()
	c.write("GET " + at(box, "/content", "/work/large") + " HTTP/1.1\r\nHost: t\r\n\r\n")
	if _, err := c.r.ReadByte(); err != nil {
		t.Fatal(err)
	}
	c.Close()
	eventually(t, "the call is over", func() bool { return strings.Contains(w.log.String(), `"call":"readFile"`) })
	if log := w.log.String(); strings.Contains(log, `"ERROR"`) || strings.Contains(log, "/work/large") {
		t.Error(log)
	}
}
