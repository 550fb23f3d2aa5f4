package server

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"path"
	"strings"
	"sync"
	"unicode/utf8"

	"tranca"
	"tranca/internal/api"
)

// bufferSize is how much of a file is in memory for one transfer.
const bufferSize = 256 << 10

var buffers = sync.Pool{New: func() any { return new([bufferSize]byte) }}

// copyAll copies with one pooled buffer, whatever abilities both ends have.
func copyAll(w io.Writer, r io.Reader) (int64, error) {
	buf := buffers.Get().(*[bufferSize]byte)
	defer buffers.Put(buf)
	return io.CopyBuffer(struct{ io.Writer }{w}, struct{ io.Reader }{r}, buf[:])
}

func (c *call) files() (tranca.Files, error) {
	s, err := c.session()
	if err != nil {
		return nil, err
	}
	return s.Files(), nil
}

// readFile sends a file. What fits the buffer is read before the answer begins,
// so that its length can be told and what fails is a problem; of more the
// length is only the sandbox's word, which the next write may make untrue.
func readFile(c *call) error {
	files, err := c.files()
	if err != nil {
		return err
	}
	r, err := files.Read(c.ctx(), c.query.text("path"), c.query.number("offset"))
	if err != nil {
		return err
	}
	defer r.Close()
	buf := buffers.Get().(*[bufferSize]byte)
	defer buffers.Put(buf)
	n, err := io.ReadFull(r, buf[:])
	switch {
	case errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF):
		c.bytes(http.StatusOK, api.TypeBytes, buf[:n])
		return nil
	case err != nil:
		return err
	}
	c.w.Header().Set("Content-Type", api.TypeBytes)
	c.w.WriteHeader(http.StatusOK)
	if _, err := c.w.Write(buf[:n]); err != nil {
		return err
	}
	_, err = io.CopyBuffer(struct{ io.Writer }{c.w}, struct{ io.Reader }{r}, buf[:])
	return err
}

func writeFile(c *call) error {
	files, err := c.files()
	if err != nil {
		return err
	}
	mode := fs.FileMode(c.query.octal("mode"))
	name := c.query.text("path")
	var n int64
	if c.query.has("offset") {
		resume, ok := tranca.As[tranca.FileResumer](files)
		if !ok {
			return fmt.Errorf("%w: this backend can't go on with an upload: leave offset out", tranca.ErrUnsupported)
		}
		n, err = resume.WriteFrom(c.ctx(), name, c.body, c.query.number("offset"), mode)
	} else {
		n, err = files.Write(c.ctx(), name, c.body, mode)
	}
	if err != nil {
		return err
	}
	return c.json(http.StatusOK, api.WriteAnswer{Written: n})
}

// fileJSON returns the JSON form of a file's description.
func fileJSON(i tranca.FileInfo) api.FileInfo {
	out := api.FileInfo{
		Name: text(i.Name), Path: text(i.Path), Type: i.Type, Size: i.Size,
		Mode: fmt.Sprintf("%04o", i.Mode.Perm()), UID: i.UID, GID: i.GID,
		Modified: i.Modified.UTC(), LinkTarget: text(i.LinkTarget),
	}
	if !utf8.ValidString(i.Path) {
		out.PathBase64 = []byte(i.Path)
	}
	// A time that JSON can't say is one that only hostile code sets.
	if y := out.Modified.Year(); y < 0 || y > 9999 {
		out.Modified = out.Modified.AddDate(-y+1, 0, 0)
	}
	return out
}

func text(s string) string { return strings.ToValidUTF8(s, "\uFFFD") }

func statFile(c *call) error {
	files, err := c.files()
	if err != nil {
		return err
	}
	i, err := files.Stat(c.ctx(), c.query.text("path"))
	if err != nil {
		return err
	}
	return c.json(http.StatusOK, fileJSON(i))
}

func listFiles(c *call) error {
	files, err := c.files()
	if err != nil {
		return err
	}
	all, err := files.List(c.ctx(), c.query.text("path"), int(c.query.number("depth")))
	if err != nil {
		return err
	}
	out := api.FileList{Files: make([]api.FileInfo, len(all))}
	for i := range all {
		out.Files[i] = fileJSON(all[i])
	}
	return c.json(http.StatusOK, out)
}

func removeFile(c *call) error {
	files, err := c.files()
	if err != nil {
		return err
	}
	name := c.query.text("path")
	if path.Clean(name) == "/" {
		return fmt.Errorf("%w: path: the root itself can't be removed", tranca.ErrInvalid)
	}
	if err := files.Remove(c.ctx(), name); err != nil {
		return err
	}
	return c.none()
}

func makeFolder(c *call) error {
	var in api.PathRequest
	if err := c.decode(&in); err != nil {
		return err
	}
	files, err := c.files()
	if err != nil {
		return err
	}
	i, err := files.MakeDir(c.ctx(), in.Path)
	if err != nil {
		return err
	}
	return c.json(http.StatusCreated, fileJSON(i))
}

func moveFile(c *call) error {
	var in api.MoveRequest
	if err := c.decode(&in); err != nil {
		return err
	}
	files, err := c.files()
	if err != nil {
		return err
	}
	i, err := files.Move(c.ctx(), in.From, in.To)
	if err != nil {
		return err
	}
	return c.json(http.StatusOK, fileJSON(i))
}
