package archive

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"io/fs"
	"path"
	"slices"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	"tranca"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// memory is a [tranca.Files] whose every answer a test can make a lie.
type memory struct {
	nodes map[string]*memNode // by clean absolute path
	list  func([]tranca.FileInfo) []tranca.FileInfo
	stat  func(tranca.FileInfo) tranca.FileInfo
	read  func(path string, content string) io.Reader
}

type memNode struct {
	kind    tranca.FileType
	content string
	mode    fs.FileMode
}

// newMemory makes a disk with a folder /t that holds what is given by path: text
// is a file's content, "->x" a link to x, "/" a folder, "?" a device.
func newMemory(given map[string]string) *memory {
	m := &memory{nodes: map[string]*memNode{"/": {kind: tranca.FileDirectory}, "/t": {kind: tranca.FileDirectory}}}
	for name, what := range given {
		n := &memNode{kind: tranca.FileRegular, content: what, mode: 0o640}
		if target, ok := strings.CutPrefix(what, "->"); ok {
			n.kind, n.content = tranca.FileSymlink, target
		} else if what == "/" {
			n.kind = tranca.FileDirectory
		} else if what == "?" {
			n.kind = tranca.FileOther
		}
		m.nodes["/t/"+name] = n
	}
	return m
}

// find follows links in all parts but the last. A link in the last part is
// followed where follow is set.
func (m *memory) find(name string, follow bool) (string, *memNode, error) {
	at := "/"
	for hops, rest := 0, strings.Split(name, "/"); len(rest) > 0; rest = rest[1:] {
		at = path.Join(at, rest[0])
		n := m.nodes[at]
		if n == nil && len(rest) > 1 {
			return "", nil, fmt.Errorf("%w: %s", tranca.ErrNotFound, at)
		}
		if n != nil && n.kind == tranca.FileSymlink && (len(rest) > 1 || follow) {
			if hops++; hops > 40 {
				return "", nil, fmt.Errorf("%w: a loop of links", tranca.ErrInvalid)
			}
			to := n.content
			if !path.IsAbs(to) {
				to = path.Join(path.Dir(at), to)
			}
			rest = append([]string{""}, append(strings.Split(to, "/"), rest[1:]...)...)
			at = "/"
		}
	}
	n := m.nodes[at]
	if n == nil {
		return at, nil, fmt.Errorf("%w: %s", tranca.ErrNotFound, at)
	}
	return at, n, nil
}

func (m *memory) info(at string, n *memNode) tranca.FileInfo {
	info := tranca.FileInfo{
		Name: path.Base(at), Path: at, Type: n.kind, Mode: n.mode, Modified: time.Unix(1e9, 5),
		UID: 1234, GID: 1234,
	}
	if n.kind == tranca.FileSymlink {
		info.LinkTarget = n.content
	} else {
		info.Size = int64(len(n.content))
	}
	if m.stat != nil {
		info = m.stat(info)
	}
	return info
}

func (m *memory) Stat(_ context.Context, name string) (tranca.FileInfo, error) {
	at, n, err := m.find(name, false)
	if err != nil {
		return tranca.FileInfo{}, err
	}
	return m.info(at, n), nil
}

func (m *memory) List(_ context.Context, name string, _ int) ([]tranca.FileInfo, error) {
	var all []tranca.FileInfo
	for at, n := range m.nodes {
		if strings.HasPrefix(at, strings.TrimRight(name, "/")+"/") && at != "/" {
			all = append(all, m.info(at, n))
		}
	}
	slices.SortFunc(all, func(a, b tranca.FileInfo) int {
		return slices.Compare(strings.Split(a.Path, "/"), strings.Split(b.Path, "/"))
	})
	if m.list != nil {
		all = m.list(all)
	}
	return all, nil
}

func (m *memory) Read(_ context.Context, name string, _ int64) (io.ReadCloser, error) {
	at, n, err := m.find(name, true)
	if err != nil {
		return nil, err
	}
	if n.kind != tranca.FileRegular {
		return nil, fmt.Errorf("%w: no file", tranca.ErrInvalid)
	}
	var r io.Reader = strings.NewReader(n.content)
	if m.read != nil {
		r = m.read(at, n.content)
	}
	return io.NopCloser(r), nil
}

func (m *memory) Write(_ context.Context, name string, r io.Reader, mode fs.FileMode) (int64, error) {
	at, n, err := m.find(name, true)
	if at == "" {
		return 0, err
	}
	if n != nil && n.kind != tranca.FileRegular {
		return 0, fmt.Errorf("%w: no file", tranca.ErrInvalid)
	}
	var b bytes.Buffer
	if _, err := io.Copy(&b, r); err != nil {
		return int64(b.Len()), fmt.Errorf("%w: reading: %w", tranca.ErrInvalid, err)
	}
	m.nodes[at] = &memNode{kind: tranca.FileRegular, content: b.String(), mode: mode}
	return int64(b.Len()), nil
}

func (m *memory) MakeDir(_ context.Context, name string) (tranca.FileInfo, error) {
	at, n, err := m.find(name, true)
	if n != nil {
		return tranca.FileInfo{}, fmt.Errorf("%w: %s", tranca.ErrExists, at)
	}
	if at == "" {
		return tranca.FileInfo{}, err
	}
	m.nodes[at] = &memNode{kind: tranca.FileDirectory, mode: 0o755}
	return m.info(at, m.nodes[at]), nil
}

func (m *memory) Move(context.Context, string, string) (tranca.FileInfo, error) {
	return tranca.FileInfo{}, fmt.Errorf("%w: move", tranca.ErrUnsupported)
}

func (m *memory) Remove(_ context.Context, name string) error {
	at, n, _ := m.find(name, false)
	if n != nil {
		delete(m.nodes, at)
	}
	return nil
}

// linking is a memory that can make links.
type linking struct{ *memory }

func (l linking) Symlink(_ context.Context, target, name string) error {
	at, n, _ := l.find(name, false)
	if n != nil {
		return fmt.Errorf("%w: %s", tranca.ErrExists, at)
	}
	l.nodes[at] = &memNode{kind: tranca.FileSymlink, content: target}
	return nil
}

// tree shows what is in /t, a line each, and what is outside of it.
func (m *memory) tree() (inside, outside []string) {
	for at, n := range m.nodes {
		line := string(n.kind) + " " + strings.TrimPrefix(at, "/t/")
		if n.kind != tranca.FileDirectory {
			line += " " + n.content
		}
		switch {
		case strings.HasPrefix(at, "/t/"):
			inside = append(inside, line)
		case at != "/" && at != "/t":
			outside = append(outside, line)
		}
	}
	slices.Sort(inside)
	slices.Sort(outside)
	return inside, outside
}
