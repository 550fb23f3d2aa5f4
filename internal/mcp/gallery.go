package mcp

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strconv"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"tranca"
)

// outFolder is where a run leaves images that the agent shall see. It is there
// before the program starts.
const outFolder = "/work/out"

// Bounds of what is shown of one run, and of the look at the folder, which
// hostile code filled.
const (
	maxShown      = 4
	maxShownBytes = 8 << 20
	maxLookedAt   = 64 // files whose first bytes are read
	lookTime      = 10 * time.Second
)

// stamp tells whether a file was written since.
type stamp struct {
	size     int64
	modified time.Time
}

// imageView names an image in the structured result.
type imageView struct {
	Path string `json:"path"`
	Type string `json:"type"`
	Size int64  `json:"size"`
}

// gallery finds the images that one run wrote.
type gallery struct {
	before map[string]stamp
	shown  []imageView
	blocks []mcp.Content
	notes  []string
	bytes  int
}

// prepare makes the folder or, where it is there already, remembers what is in
// it. It fails silently: without the folder there are no images, and the
// program is told so itself.
func (g *gallery) prepare(ctx context.Context, files tranca.Files) {
	ctx, cancel := context.WithTimeout(ctx, lookTime)
	defer cancel()
	if _, err := files.MakeDir(ctx, outFolder); !errors.Is(err, tranca.ErrExists) {
		return
	}
	there, err := files.List(ctx, outFolder, 1)
	if err != nil {
		return
	}
	g.before = make(map[string]stamp, len(there))
	for _, f := range there {
		g.before[f.Path] = stamp{f.Size, f.Modified}
	}
}

// collect reads the images that are new or changed.
func (g *gallery) collect(ctx context.Context, files tranca.Files) {
	if ctx.Err() != nil {
		return // nobody is there to see them
	}
	ctx, cancel := context.WithTimeout(ctx, lookTime)
	defer cancel()
	found, err := files.List(ctx, outFolder, 1)
	if err != nil {
		if !errors.Is(err, tranca.ErrNotFound) && !errors.Is(err, tranca.ErrGone) {
			g.note("The folder %s could not be looked at for images.", outFolder)
		}
		return
	}
	looked, more := 0, 0
	for _, f := range found {
		if was, ok := g.before[f.Path]; f.Type != tranca.FileRegular || f.Size < sniffed || ok && was == (stamp{f.Size, f.Modified}) {
			continue
		}
		if looked == maxLookedAt {
			g.note("There are more than %d new files in %s: the others were not looked at for images.", maxLookedAt, outFolder)
			break
		}
		looked++
		if !g.add(ctx, files, f) {
			more++
		}
	}
	if more > 0 {
		g.note("%d more images are not shown: at most %d, and %s together, come with one run.", more, maxShown, size(maxShownBytes))
	}
}

// add shows a file that is an image. It reports false where there is no room.
func (g *gallery) add(ctx context.Context, files tranca.Files, f tranca.FileInfo) bool {
	r, err := files.Read(ctx, f.Path, 0)
	if err != nil {
		return true
	}
	defer r.Close()
	head := make([]byte, sniffed)
	if _, err := io.ReadFull(r, head); err != nil {
		return true
	}
	mime := imageKind(head)
	if mime == "" {
		return true
	}
	if len(g.shown) == maxShown || g.bytes+int(min(f.Size, maxImage)) > maxShownBytes {
		return false
	}
	data, err := io.ReadAll(io.LimitReader(r, maxImage+1-sniffed))
	if err != nil {
		g.note("The image %s could not be read.", name(f.Path))
		return true
	}
	p, err := checkImage(mime, append(head, data...))
	if err != nil {
		g.note("The image %s is not shown: %v.", name(f.Path), err)
		return true
	}
	g.show(f.Path, p)
	return true
}

func (g *gallery) show(path string, p picture) {
	g.bytes += len(p.data)
	g.shown = append(g.shown, imageView{valid(path), p.mime, int64(len(p.data))})
	g.blocks = append(g.blocks,
		&mcp.TextContent{Text: fmt.Sprintf("Image %s (%s, %d x %d pixels):", name(path), p.mime, p.width, p.height)},
		&mcp.ImageContent{Data: p.data, MIMEType: p.mime})
}

func (g *gallery) note(format string, args ...any) {
	g.notes = append(g.notes, fmt.Sprintf(format, args...))
}

// content is what the run's result gets at its end.
func (g *gallery) content() []mcp.Content {
	all := g.blocks
	for _, n := range g.notes {
		all = append(all, &mcp.TextContent{Text: n})
	}
	return all
}

// name writes a path that code chose.
func name(path string) string { return strconv.Quote(clip(path)) }
