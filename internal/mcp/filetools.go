package mcp

import (
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"strings"
	"unicode/utf8"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"tranca"
)

// Bounds of what the tools for files give and take. A model reads less than
// fits into a message.
const (
	defaultRead = 64 << 10
	maxRead     = 1 << 20
	maxBase64   = 16 << 10
	maxEdited   = 8 << 20
	maxWritten  = 32 << 20
	maxListed   = 1000
	maxDepth    = 8
	longestPath = 4096
)

type readInput struct {
	Path    string `json:"path"`
	Offset  int64  `json:"offset,omitempty"`
	Limit   int64  `json:"limit,omitempty"`
	Session string `json:"session,omitempty"`
}

type writeInput struct {
	Path    string `json:"path"`
	Content string `json:"content"`
	Session string `json:"session,omitempty"`
}

type editInput struct {
	Path    string `json:"path"`
	Old     string `json:"old_text"`
	New     string `json:"new_text"`
	All     bool   `json:"replace_all,omitempty"`
	Session string `json:"session,omitempty"`
}

type listInput struct {
	Path    string `json:"path,omitempty"`
	Depth   int    `json:"depth,omitempty"`
	Session string `json:"session,omitempty"`
}

// addFileTools offers files. Without a session they would be gone before the
// next call, so a session must be named unless the policy keeps one.
func (s *Server) addFileTools() {
	add := func(t *mcp.Tool, description string, schema map[string]any) *mcp.Tool {
		t.Description, t.InputSchema = description, schema
		return t
	}
	mcp.AddTool(s.server, add(&mcp.Tool{Name: "read_file", Annotations: s.hints("Read a file", true)},
		describeRead(), readSchema(s.policy)), s.readFile)
	mcp.AddTool(s.server, add(&mcp.Tool{Name: "write_file", Annotations: s.hints("Write a file", false)},
		describeWrite(s.policy), writeSchema(s.policy)), s.writeFile)
	mcp.AddTool(s.server, add(&mcp.Tool{Name: "edit_file", Annotations: s.hints("Edit a file", false)},
		describeEdit(), editSchema(s.policy)), s.editFile)
	mcp.AddTool(s.server, add(&mcp.Tool{Name: "list_files", Annotations: s.hints("List files", true)},
		describeList(), listSchema(s.policy)), s.listFiles)
}

// inFiles is a call that works on the files of a session.
func (s *Server) inFiles(ctx context.Context, call *mcp.CallToolRequest, session, path string, do func(context.Context, tranca.Files) ([]mcp.Content, error)) (*mcp.CallToolResult, any, error) {
	ctx, done := s.begin(ctx)
	defer done()
	if err := refusePath(path); err != nil {
		return nil, nil, err
	}
	tool := call.Params.Name
	var content []mcp.Content
	var failed error
	err := s.sessions.use(ctx, session, func(sb Session) error {
		content, failed = do(ctx, sb.Files())
		if isLost(failed) {
			return failed
		}
		return nil
	})
	switch {
	case err != nil:
		return nil, nil, s.failed(tool, session, err, tranca.Request{})
	case failed != nil:
		return nil, nil, s.fileFailed(tool, session, failed, path)
	}
	s.cfg.Logger.Info("call", slog.String("tool", tool), slog.String("session", session))
	return &mcp.CallToolResult{Content: content}, nil, nil
}

// fileFailed tells the agent of a failure that is the path's, and the operator
// of one that is not.
func (s *Server) fileFailed(tool, session string, err error, path string) error {
	words, ok := fileWords(err, path)
	if !ok {
		return s.failed(tool, session, err, tranca.Request{})
	}
	s.cfg.Logger.Info("call turned away", slog.String("tool", tool), slog.String("session", session))
	return errors.New(words)
}

func refusePath(path string) error {
	switch {
	case path == "":
		return errors.New("the path is empty")
	case len(path) > longestPath:
		return fmt.Errorf("the path has %d bytes: at most %d can be", len(path), longestPath)
	case strings.ContainsRune(path, 0):
		return errors.New("the path holds a NUL character, which no path may")
	}
	return nil
}

func (s *Server) readFile(ctx context.Context, call *mcp.CallToolRequest, in readInput) (*mcp.CallToolResult, any, error) {
	return s.inFiles(ctx, call, in.Session, in.Path, func(ctx context.Context, f tranca.Files) ([]mcp.Content, error) {
		return readContent(ctx, f, in)
	})
}

// readContent reads a file or a part of it, as what it turns out to be.
func readContent(ctx context.Context, f tranca.Files, in readInput) ([]mcp.Content, error) {
	total := int64(-1)
	if info, err := f.Stat(ctx, in.Path); err != nil {
		return nil, err
	} else if info.Type == tranca.FileDirectory {
		return nil, tell("%s is a folder: list_files shows what is in it.", name(in.Path))
	} else if info.Type == tranca.FileRegular {
		total = info.Size
	}
	r, err := f.Read(ctx, in.Path, in.Offset)
	if err != nil {
		return nil, err
	}
	defer r.Close()
	limit := in.Limit
	if limit == 0 {
		limit = defaultRead
	}
	// One byte more tells whether that was all.
	data, err := io.ReadAll(io.LimitReader(r, limit+1))
	if err != nil {
		return nil, err
	}
	if kind := imageKind(data); kind != "" && in.Offset == 0 && in.Limit == 0 {
		return imageContent(in.Path, kind, data, r)
	}
	more := int64(len(data)) > limit
	if more {
		data = data[:limit]
	}
	p := part{path: in.Path, data: data, offset: in.Offset, more: more, total: total}
	if strings.ContainsRune(string(data), 0) {
		return p.binary()
	}
	return p.text(), nil
}

// imageContent reads the rest of an image.
func imageContent(path, kind string, head []byte, r io.Reader) ([]mcp.Content, error) {
	rest, err := io.ReadAll(io.LimitReader(r, maxImage+1-int64(len(head))))
	if err != nil {
		return nil, err
	}
	p, err := checkImage(kind, append(head, rest...))
	if err != nil {
		return nil, tell("The image %s can't be shown: %v.", name(path), err)
	}
	var g gallery
	g.show(path, p)
	return g.blocks, nil
}

// part is a part of a file that was read.
type part struct {
	path   string
	data   []byte
	offset int64
	more   bool
	total  int64 // or -1
}

// text gives the part as text. What is to be said of it stands in a block of
// its own in front, where the file's text can't imitate it.
func (p part) text() []mcp.Content {
	p.trim()
	var notes []string
	if p.more || p.offset > 0 {
		notes = append(notes, p.where())
	}
	if !utf8.Valid(p.data) {
		notes = append(notes, "It holds bytes that are no UTF-8; each run of them is shown as \uFFFD.")
	}
	if len(p.data) == 0 {
		notes = append(notes, "There is nothing in it.")
		if p.offset > 0 {
			notes = []string{fmt.Sprintf("There is nothing at offset %d or after it.", p.offset)}
		}
	}
	var all []mcp.Content
	if len(notes) > 0 {
		all = append(all, &mcp.TextContent{Text: strings.Join(notes, " ")})
	}
	if len(p.data) > 0 {
		all = append(all, &mcp.TextContent{Text: valid(string(p.data))})
	}
	return all
}

// trim takes parts of characters from both ends, where the file goes on there.
func (p *part) trim() {
	if p.offset > 0 {
		for range utf8.UTFMax - 1 {
			if len(p.data) == 0 || utf8.RuneStart(p.data[0]) {
				break
			}
			p.data = p.data[1:]
			p.offset++
		}
	}
	if p.more {
		p.data = wholeRunes(p.data)
	}
}

// wholeRunes returns b without an unfinished character at its end, unless there
// is nothing else.
func wholeRunes(b []byte) []byte {
	for n := 1; n < utf8.UTFMax && n < len(b); n++ {
		if end := b[len(b)-n:]; utf8.RuneStart(end[0]) {
			if !utf8.FullRune(end) {
				return b[:len(b)-n]
			}
			break
		}
	}
	return b
}

func (p part) where() string {
	end := p.offset + int64(len(p.data))
	words := fmt.Sprintf("Bytes %d to %d", p.offset, end)
	if p.total >= end {
		words += fmt.Sprintf(" of %d", p.total)
	}
	if p.more {
		return words + fmt.Sprintf("; go on with offset %d.", end)
	}
	return words + ", the end."
}

func (p part) binary() ([]mcp.Content, error) {
	if len(p.data) > maxBase64 || p.more {
		return nil, tell("%s is neither text nor an image that can be shown. Look at it with a program, or read at most %d bytes of it by offset and limit, which come in base64.", name(p.path), maxBase64)
	}
	return []mcp.Content{
		&mcp.TextContent{Text: "It is no text. " + p.where() + " In base64:"},
		&mcp.TextContent{Text: base64.StdEncoding.EncodeToString(p.data)},
	}, nil
}

func (s *Server) writeFile(ctx context.Context, call *mcp.CallToolRequest, in writeInput) (*mcp.CallToolResult, any, error) {
	return s.inFiles(ctx, call, in.Session, in.Path, func(ctx context.Context, f tranca.Files) ([]mcp.Content, error) {
		if len(in.Content) > maxWritten {
			return nil, tell("The content has %d bytes, and at most %s can be written at once.", len(in.Content), size(maxWritten))
		}
		n, err := writeWithParents(ctx, f, in.Path, in.Content)
		if err != nil {
			return nil, err
		}
		return said("Wrote %d bytes to %s.", n, name(in.Path)), nil
	})
}

// writeWithParents makes the folders above only where they turn out to be
// missing: mostly they are there.
func writeWithParents(ctx context.Context, f tranca.Files, path, content string) (int64, error) {
	n, err := f.Write(ctx, path, strings.NewReader(content), 0o644)
	parent := path[:max(0, strings.LastIndexByte(path, '/'))]
	if !errors.Is(err, tranca.ErrNotFound) || parent == "" {
		return n, err
	}
	if _, err := f.MakeDir(ctx, parent); err != nil && !errors.Is(err, tranca.ErrExists) {
		return 0, err
	}
	return f.Write(ctx, path, strings.NewReader(content), 0o644)
}

func (s *Server) editFile(ctx context.Context, call *mcp.CallToolRequest, in editInput) (*mcp.CallToolResult, any, error) {
	return s.inFiles(ctx, call, in.Session, in.Path, func(ctx context.Context, f tranca.Files) ([]mcp.Content, error) {
		before, err := readToEdit(ctx, f, in.Path)
		if err != nil {
			return nil, err
		}
		e, err := edit(before, in.Old, in.New, in.All)
		if err != nil {
			return nil, err
		}
		if _, err := f.Write(ctx, in.Path, strings.NewReader(e.after), 0o644); err != nil {
			return nil, err
		}
		return said("Replaced %d in %s:\n%s", len(e.at), name(in.Path), e.diff()), nil
	})
}

func readToEdit(ctx context.Context, f tranca.Files, path string) (string, error) {
	r, err := f.Read(ctx, path, 0)
	if err != nil {
		return "", err
	}
	defer r.Close()
	data, err := io.ReadAll(io.LimitReader(r, maxEdited+1))
	if err == nil && len(data) > maxEdited {
		err = tell("%s has more than %s, which is too much to edit: change it with a program.", name(path), size(maxEdited))
	}
	return string(data), err
}

func (s *Server) listFiles(ctx context.Context, call *mcp.CallToolRequest, in listInput) (*mcp.CallToolResult, any, error) {
	if in.Path == "" {
		in.Path = s.policy.Workdir
	}
	return s.inFiles(ctx, call, in.Session, in.Path, func(ctx context.Context, f tranca.Files) ([]mcp.Content, error) {
		found, err := f.List(ctx, in.Path, max(in.Depth, 1))
		if err != nil {
			return nil, err
		}
		if len(found) == 0 {
			return said("There is nothing in %s.", name(in.Path)), nil
		}
		return said("%s", listing(found)), nil
	})
}

// listing writes one line for each path. A path that could be taken for more
// than one line, or for other words, stands in quotes.
func listing(found []tranca.FileInfo) string {
	var b strings.Builder
	for i, f := range found {
		if i == maxListed {
			fmt.Fprintf(&b, "and %d more: list a folder below, or less depth.\n", len(found)-i)
			break
		}
		path := quoted(f.Path)
		switch f.Type {
		case tranca.FileDirectory:
			fmt.Fprintf(&b, "folder %s\n", path)
		case tranca.FileSymlink:
			fmt.Fprintf(&b, "link   %s -> %s\n", path, quoted(f.LinkTarget))
		case tranca.FileRegular:
			fmt.Fprintf(&b, "file   %s (%d bytes)\n", path, f.Size)
		default:
			fmt.Fprintf(&b, "other  %s\n", path)
		}
	}
	return strings.TrimSuffix(b.String(), "\n")
}

func said(format string, args ...any) []mcp.Content {
	return []mcp.Content{&mcp.TextContent{Text: fmt.Sprintf(format, args...)}}
}

// valid is text that fits into a message.
func valid(s string) string { return strings.ToValidUTF8(s, "\uFFFD") }
