package changeset

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path"

	"golang.org/x/sys/unix"

	"tranca"
)

// Diff tells each change of a set to show, against what the host has now, as
// far as that is what the sandbox saw. An error of show ends it and is returned.
func (s *Store) Diff(ctx context.Context, id tranca.ID, only []string, show func(*FileDiff) error) error {
	set, err := s.Get(id)
	if err != nil {
		return err
	}
	p, err := newPlan(set, ApplyOptions{Only: only})
	if err != nil {
		return err
	}
	contents, err := s.openFile(string(id), contentsName)
	if err != nil {
		return s.failed("open "+string(id), err)
	}
	defer contents.Close()
	a := &applier{ctx: ctx, plan: p, contents: contents}
	defer a.close()
	var gone error
	for i := range set.Mounts {
		fd, err := set.Mounts[i].open()
		gone = errors.Join(gone, err)
		a.roots = append(a.roots, fd)
	}
	left := int64(mostText)
	for _, n := range p.all {
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		c, ok := n.Change(set.Mounts[n.Mount].Target)
		if !ok || !n.selected {
			continue
		}
		d := &FileDiff{Change: c, LeftOut: n.leftOut}
		a.diff(d, n, &left)
		if err := show(d); err != nil {
			return err
		}
	}
	return gone
}

// diff fills in what is shown of one path.
func (a *applier) diff(d *FileDiff, n *node, left *int64) {
	d.describe(n.Entry)
	var changed *conflictError
	if a.roots[n.Mount] < 0 {
		d.Conflict = "the folder on the host can't be looked at"
	} else if already, err := a.verdict(n); errors.As(err, &changed) {
		d.Conflict = changed.why
	} else if err != nil {
		d.Conflict = err.Error()
	} else if already {
		d.Note = join(d.Note, "the host has it already")
		return
	}
	is := n.Type == tranca.FileRegular
	was := n.Base != nil && n.Base.Type == tranca.FileRegular
	if !is && !was {
		return
	}
	before, after := side{there: was}, side{there: is}
	if was && d.Conflict == "" {
		before = a.hostSide(n)
	} else if was {
		d.Note = join(d.Note, "no lines: the host has changed it")
		return
	}
	if is {
		after = a.newSide(n)
	}
	*left -= int64(len(before.data) + len(after.data))
	if *left < 0 {
		d.Note = join(d.Note, fmt.Sprintf("not shown, for more than %d bytes were", mostText))
		return
	}
	d.compareText(n.Entry, before, after)
}

// hostSide reads what the host has.
func (a *applier) hostSide(n *node) side {
	s := side{there: true, large: true}
	dir, err := a.folder(n)
	if err != nil || dir < 0 {
		return s
	}
	defer unix.Close(dir)
	fd, err := openInside(dir, path.Base(n.Path), fileFlags)
	if err != nil {
		return s
	}
	f := os.NewFile(uintptr(fd), n.Path)
	defer f.Close()
	return readSide(f)
}

// newSide reads what is kept.
func (a *applier) newSide(n *node) side {
	if n.Digest == "" {
		return side{there: true, large: true}
	}
	return readSide(io.NewSectionReader(a.contents, n.Offset, n.Size))
}

func readSide(r io.Reader) side {
	data, err := io.ReadAll(io.LimitReader(r, maxText+1))
	if err != nil || len(data) > maxText {
		return side{there: true, large: true}
	}
	return side{there: true, data: data}
}
