package engine

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"tranca"
	"tranca/internal/changeset"
)

// copies are the mounts of mode cow of one sandbox; nil where it has none.
type copies struct {
	tracker *changeset.Tracker
	store   *changeset.Store
}

// track notes what the mounts of mode cow are, before their sandbox is made.
// Where nothing could be kept of them nothing is run: the work would be lost.
func (e *Engine) track(p *plan) (*copies, error) {
	var shown []changeset.Shown
	for _, m := range p.policy.Mounts {
		if m.Cow {
			shown = append(shown, changeset.Shown{
				Source: m.Source, Target: m.Target, Deny: m.Deny,
				Protected: func(name string) bool { return hostExecutable(name, m.Protect) },
			})
		}
	}
	if shown == nil {
		return nil, nil
	}
	store, err := e.changes()
	if err != nil {
		mend := "set XDG_STATE_HOME to a folder of your own"
		if e.cfg.Changes == nil {
			mend = "mode: ro, or run it by tranca run or tranca serve, which keep changes"
		}
		return nil, &tranca.RefusalError{Backend: p.backend.Name(), Problems: []tranca.Problem{{
			Item: tranca.ItemMounts, Asked: "mount " + shown[0].Target + " of mode cow",
			Missing: "what is written there could not be kept: " + strings.TrimPrefix(err.Error(), tranca.ErrUnavailable.Error()+": "),
			Mend:    mend,
		}}}
	}
	tracker, err := changeset.Track(shown)
	if err != nil {
		return nil, err
	}
	return &copies{tracker, store}, nil
}

// changes opens the store at its first use.
func (e *Engine) changes() (*changeset.Store, error) {
	if e.cfg.Changes == nil {
		return nil, errors.New("this engine has no place for it")
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.store == nil {
		store, err := e.cfg.Changes()
		if err != nil {
			return nil, err
		}
		e.store = store
	}
	return e.store, nil
}

// settle returns when nothing that the host changes from then on can be taken
// for older than the sandbox.
func (c *copies) settle() {
	if c != nil {
		c.tracker.Settle()
	}
}

func (b *box) reading() (changeset.Reading, error) {
	reader, ok := tranca.As[tranca.ChangeReader](b.sb)
	if !ok {
		return changeset.Reading{}, fmt.Errorf("%w: backend %s hands out no changes", tranca.ErrUnsupported, b.plan.backend.Name())
	}
	return changeset.Reading{
		ID: b.sb.ID(), Bounds: changeset.Bounds{Bytes: b.plan.policy.Limits.Disk.Size}, Open: reader.OpenChanges,
	}, nil
}

// written says what has been written so far. Programs may be writing meanwhile.
func (b *box) written(ctx context.Context) (*changeset.Set, error) {
	r, err := b.reading()
	if err != nil {
		return nil, err
	}
	return b.copies.tracker.Read(context.WithoutCancel(ctx), r)
}

// keep ends every program, and keeps what was written. It returns nil where
// that is nothing. It takes its own time, as destroying does.
func (b *box) keep(ctx context.Context) (*changeset.Set, error) {
	ctx = context.WithoutCancel(ctx)
	if err := b.kill(ctx); err != nil {
		return nil, fmt.Errorf("the sandbox could not be stopped: %w", err)
	}
	r, err := b.reading()
	if err != nil {
		return nil, err
	}
	draft, err := b.copies.store.Begin(b.sb.ID())
	if err != nil {
		return nil, err
	}
	r.Keep, r.Final = draft.Contents(), true
	set, err := b.copies.tracker.Read(ctx, r)
	if err != nil || len(set.Entries) == 0 && set.Incomplete() == "" {
		draft.Discard()
		return nil, err
	}
	return set, draft.Commit(set)
}

// keepInto keeps what a run has written, and puts it into its result.
func (b *box) keepInto(ctx context.Context, res *tranca.Result) {
	if b.copies == nil {
		return
	}
	set, err := b.keep(ctx)
	switch {
	case err != nil:
		b.e.cfg.Logger.ErrorContext(ctx, "changes not kept", "id", b.sb.ID(), "error", err)
		res.ChangesState = tranca.ChangesLost
		res.Notes = append(res.Notes, "what was written to mounts of mode cow is lost: "+err.Error())
	case set != nil:
		res.ChangesState = tranca.ChangesKept
		tell(set, res)
	}
}

// tell puts a set into a result.
func tell(set *changeset.Set, res *tranca.Result) {
	addChanges(res, set.Changes())
	if why := set.Incomplete(); why != "" {
		res.Notes = append(res.Notes, "the list of changes is not complete: "+why)
	}
	conflicts := 0
	for i := range set.Entries {
		if set.Entries[i].Conflict != "" {
			conflicts++
		}
	}
	if conflicts > 0 {
		res.Notes = append(res.Notes, fmt.Sprintf("%d of the changed paths were changed on the host too, while the sandbox lived", conflicts))
	}
}

// keepLast keeps what a session has written, when nothing runs in it any more.
func (s *Session) keepLast(ctx context.Context) {
	if s.box.copies == nil {
		return
	}
	set, err := s.box.keep(ctx)
	switch {
	case err != nil:
		s.e.cfg.Logger.Error("changes of a session not kept", "id", s.ID(), "error", err)
	case set != nil:
		s.e.cfg.Logger.Info("changes of a session are kept", "id", s.ID(), "changes", len(set.Changes()))
	}
}

// Changes says what has been written to the session's mounts of mode cow so far,
// sorted by path, with notes on what could not be seen. When the session has
// ended they are kept under its ID. Errors wrap [tranca.ErrGone].
func (s *Session) Changes(ctx context.Context) ([]tranca.Change, []string, error) {
	done, err := s.use()
	if err != nil {
		return nil, nil, err
	}
	defer done()
	if s.box.copies == nil {
		return nil, nil, nil
	}
	set, err := s.box.written(ctx)
	if err != nil {
		return nil, nil, s.because(err)
	}
	var res tranca.Result
	tell(set, &res)
	return res.Changes, res.Notes, nil
}

// toldSoFar puts what was written so far into the result of a run.
func (s *Session) toldSoFar(ctx context.Context, res *tranca.Result) {
	if s.box.copies == nil {
		return
	}
	set, err := s.box.written(ctx)
	if err != nil {
		res.Notes = append(res.Notes, "the changes could not be read: "+err.Error())
		return
	}
	tell(set, res)
}
