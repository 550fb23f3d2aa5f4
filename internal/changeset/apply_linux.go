package changeset

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path"
	"slices"

	"golang.org/x/sys/unix"

	"tranca"
)

// Apply writes a set back to the host's folders. Everything is looked at first;
// where the host has changed anything that would be written, nothing is, and
// the error wraps [tranca.ErrRefused]. Each file is written beside its place
// and then put there in one step. If an error or ctx ends it half way the
// report says what was written and what was not; applying again goes on there.
//
// The report is nil only where nothing could be looked at.
func (s *Store) Apply(ctx context.Context, id tranca.ID, opts ApplyOptions) (*Report, error) {
	set, err := s.Get(id)
	if err != nil {
		return nil, err
	}
	contents, err := s.lock(string(id))
	if err != nil {
		return nil, err
	}
	defer contents.Close()
	p, err := newPlan(set, opts)
	if err != nil {
		return nil, err
	}
	a := &applier{ctx: ctx, plan: p, contents: contents, report: &Report{ID: id}}
	whole := len(opts.Only) == 0
	if whole && len(opts.IncludeProtected) == 0 && !s.applied(string(id)).IsZero() {
		a.report.Steps = p.steps(Already)
		return a.report, nil
	}
	if a.temp, a.again, err = s.tempFor(id); err != nil {
		return nil, s.failed("use "+string(id), err)
	}
	defer a.close()
	if err := a.look(); err != nil || opts.DryRun {
		return a.report, err
	}
	if err := a.write(); err != nil {
		return a.report, err
	}
	if whole {
		err = s.markApplied(id)
	}
	return a.report, err
}

// steps makes the steps of the plan, all with one outcome but for what is left
// out.
func (p *plan) steps(o Outcome) []Step {
	var all []Step
	for _, n := range p.all {
		c, ok := n.Change(p.set.Mounts[n.Mount].Target)
		if !ok || !n.selected {
			continue
		}
		n.step = len(all)
		step := Step{Change: c, Outcome: o}
		if n.leftOut != "" {
			step.Outcome, step.Why = LeftOut, n.leftOut
		}
		all = append(all, step)
	}
	return all
}

// applier applies one plan.
type applier struct {
	ctx      context.Context
	plan     *plan
	contents *os.File
	report   *Report
	temp     string
	again    bool // an earlier application may have left something
	roots    []int
	// made holds the inodes of the folders that were made.
	made map[*node]uint64
	// late are folders whose mode is set when all in them is done.
	late []*node
}

func (a *applier) close() {
	for _, fd := range a.roots {
		unix.Close(fd)
	}
}

func (a *applier) settle(n *node, o Outcome, why string) {
	s := &a.report.Steps[n.step]
	s.Outcome, s.Why = o, why
}

func (a *applier) pending(n *node) bool { return a.report.Steps[n.step].Outcome == NotWritten }

// conflictError is a path that the host has changed.
type conflictError struct{ why string }

func (e *conflictError) Error() string { return e.why }

func conflict(format string, args ...any) error {
	return &conflictError{fmt.Sprintf(format, args...)}
}

// look looks at everything, and settles what becomes of each path as if it had
// been written. What is left to write stays pending.
func (a *applier) look() error {
	if why := a.plan.set.Incomplete(); why != "" {
		return fmt.Errorf("%w: not all changes could be read, so that a part of them would be applied: %s", tranca.ErrRefused, why)
	}
	for i := range a.plan.set.Mounts {
		fd, err := a.plan.set.Mounts[i].open()
		if err != nil {
			return fmt.Errorf("%w: %w; nothing was written", tranca.ErrRefused, err)
		}
		a.roots = append(a.roots, fd)
	}
	a.report.Steps = a.plan.steps(NotWritten)
	for _, n := range a.plan.all {
		if !n.does() {
			continue
		}
		if a.ctx.Err() != nil {
			return context.Cause(a.ctx)
		}
		if err := a.lookAt(n); err != nil {
			return err
		}
	}
	if n := a.report.Count(Refused); n > 0 {
		return fmt.Errorf("%w: %d of the paths changed on the host since the sandbox saw them; nothing was written", tranca.ErrRefused, n)
	}
	if err := a.room(); err != nil {
		return err
	}
	if a.plan.opts.DryRun {
		for i := range a.report.Steps {
			if s := &a.report.Steps[i]; s.Outcome == NotWritten {
				s.Outcome = Written
			}
		}
	}
	return nil
}

func (a *applier) lookAt(n *node) error {
	already, err := a.verdict(n)
	var changed *conflictError
	switch {
	case errors.As(err, &changed):
		a.settle(n, Refused, changed.why)
	case err != nil:
		return fmt.Errorf("%s: %w; nothing was written", a.plan.set.Place(n.Entry), err)
	case already:
		a.settle(n, Already, "")
	}
	return nil
}

// verdict looks at one path: is it what is asked for, or still what it was?
func (a *applier) verdict(n *node) (already bool, err error) {
	dir, err := a.folder(n)
	if err != nil {
		return false, err
	}
	var now *State
	if dir >= 0 {
		defer unix.Close(dir)
		st, err := statAt(dir, path.Base(n.Path))
		if err != nil {
			return false, err
		}
		if st != nil {
			now = stateOf(st)
		}
	}
	if now == nil && n.Kind == Removed {
		return true, nil
	}
	if now != nil && n.Kind != Removed {
		if same, err := a.isDone(dir, n, now); same || err != nil {
			return same, err
		}
	}
	if n.Conflict != "" {
		return false, conflict("%s", n.Conflict)
	}
	if err := compare(n.Entry, now); err != nil {
		return false, err
	}
	if n.baseFolder() && n.Type != tranca.FileDirectory {
		return false, a.onlyKnown(dir, n)
	}
	return false, nil
}

// folder opens the folder of a node; -1 is one that is still to be made.
func (a *applier) folder(n *node) (int, error) {
	up := n.parent
	fd, err := openInside(a.roots[n.Mount], path.Dir(n.Path), unix.O_PATH|unix.O_DIRECTORY)
	switch {
	case err != nil && up != nil && up.Type == tranca.FileDirectory && !up.baseFolder():
		// To be made, in the place of a file or of nothing.
		return -1, nil
	case errors.Is(err, unix.ENOENT) && n.Kind == Removed:
		return -1, nil
	case errors.Is(err, unix.ENOENT):
		return -1, conflict("its folder was removed on the host")
	case errors.Is(err, unix.ELOOP), errors.Is(err, unix.ENOTDIR):
		return -1, conflict("its folder, or one above it, is a link or no folder on the host now")
	case errors.Is(err, unix.EXDEV):
		return -1, conflict("another file system is mounted there on the host now")
	case err != nil:
		return -1, err
	}
	if err := a.checkFolder(fd, up); err != nil {
		unix.Close(fd)
		return -1, err
	}
	return fd, nil
}

// checkFolder checks that an open folder is the one that was there, or that was
// made by this application.
func (a *applier) checkFolder(fd int, n *node) error {
	if n == nil {
		return nil
	}
	var st unix.Stat_t
	if err := unix.Fstat(fd, &st); err != nil {
		return os.NewSyscallError("fstat", err)
	}
	want, made := a.made[n]
	if !made && n.baseFolder() {
		want, made = n.Base.Inode, true
	}
	if made && st.Ino != want {
		return conflict("its folder is another one on the host now")
	}
	return nil
}

// compare compares what the host has with what it had.
func compare(e *Entry, now *State) error {
	was := e.Base
	switch {
	case was == nil && now == nil:
		return nil
	case was == nil:
		return conflict("the host has a %s there now", now.Type)
	case now == nil:
		return conflict("it was removed on the host")
	case was.Type != now.Type:
		return conflict("it is a %s on the host now", now.Type)
	case was.Inode != now.Inode:
		return conflict("it is another %s on the host now", now.Type)
	case was.Mode != now.Mode && e.Kind != Folder:
		return conflict("its mode was changed on the host")
	case was.Type == tranca.FileDirectory:
		return nil
	case was.Size != now.Size || was.Modified != now.Modified || was.Changed != now.Changed:
		return conflict("it was changed on the host")
	}
	return nil
}

// isDone reports whether the host has what is asked for.
func (a *applier) isDone(dir int, n *node, now *State) (bool, error) {
	if now.Type != n.Type {
		return false, nil
	}
	name := path.Base(n.Path)
	switch n.Type {
	case tranca.FileDirectory:
		return now.Mode&maxMode == n.Mode, nil
	case tranca.FileSymlink:
		target, err := readLink(dir, name)
		return target == n.Link, err
	case tranca.FileRegular:
		if now.Size != n.Size || now.Mode&maxMode != n.Mode {
			return false, nil
		}
		return a.sameContent(dir, name, n)
	}
	return false, nil
}

// onlyKnown refuses to remove a folder that holds what the set doesn't know.
func (a *applier) onlyKnown(dir int, n *node) error {
	fd, err := openInside(dir, path.Base(n.Path), folderFlags)
	if err != nil {
		return err
	}
	defer unix.Close(fd)
	names, more, err := list(fd, len(n.children)+1)
	if err != nil {
		return err
	}
	for _, name := range names {
		// What an application left that was killed is cleared before it is in the way.
		if name != a.temp && !slices.ContainsFunc(n.children, func(c *node) bool { return path.Base(c.Path) == name }) {
			return conflict("%.200q was put into it on the host", name)
		}
	}
	if more {
		return conflict("something was put into it on the host")
	}
	return nil
}

// room refuses to begin what the disk has no room for.
func (a *applier) room() error {
	need := make([]int64, len(a.roots))
	for _, n := range a.plan.all {
		if n.does() && n.Type == tranca.FileRegular && a.pending(n) {
			need[n.Mount] += n.Size
		}
	}
	for i, root := range a.roots {
		var fs unix.Statfs_t
		if unix.Fstatfs(root, &fs) == nil && fs.Blocks > 0 && need[i] > int64(fs.Bavail)*fs.Bsize {
			return fmt.Errorf("%w: %s has room for %d bytes, and %d are to be written; nothing was written",
				tranca.ErrNoSpace, a.plan.set.Mounts[i].Source, int64(fs.Bavail)*fs.Bsize, need[i])
		}
	}
	return nil
}
