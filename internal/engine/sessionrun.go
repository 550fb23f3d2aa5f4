package engine

import (
	"context"
	"errors"

	"tranca"
)

// Run runs one request in the session's sandbox, after the runs that came
// before, unless the configuration lets several go on at once. Its Narrow may
// lower Wall and Output, add variables and choose the folder; everything else
// was settled when the session was opened.
//
// At its end, what it left running is killed: all that runs in the sandbox,
// where nothing else that was started by a call is still running there. Beside
// others that is its process group, and what has left that is killed when the
// last of them ends; a note of the result says that counters and changes are
// shared. The error wraps [tranca.ErrGone] once the session has
// ended, and [tranca.ErrClosed] too where its owner ended it.
func (s *Session) Run(ctx context.Context, req tranca.Request) (*tranca.Result, error) {
	res, err := s.runOne(ctx, req)
	s.e.stats.ran(res, err)
	return res, err
}

func (s *Session) runOne(ctx context.Context, req tranca.Request) (*tranca.Result, error) {
	j, err := newJob(req)
	if err != nil {
		return nil, err
	}
	ctx, done, err := s.work(ctx)
	if err != nil {
		return nil, err
	}
	defer done()
	if err := s.turns.enter(ctx, onePlace); err != nil {
		return nil, s.because(err)
	}
	defer s.turns.leave(onePlace)
	p, env, err := s.narrow(req.Narrow)
	if err != nil {
		return nil, err
	}
	if err := s.admit(ctx); err != nil {
		return nil, err
	}
	defer s.e.flight.leave(onePlace)
	return s.run(ctx, &run{b: s.box, plan: p, job: j, dir: req.Narrow.Workdir, env: env})
}

// because prefers the reason for which the session is gone.
func (s *Session) because(err error) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.gone != nil {
		return s.gone
	}
	return err
}

// run runs when its turn has come.
func (s *Session) run(ctx context.Context, r *run) (*tranca.Result, error) {
	place, err := s.join(ctx)
	if err != nil {
		return nil, err
	}
	defer place.settled()
	before := snapshot(ctx, r.plan.policy.Mounts)
	r.kill, r.endGroup = place.kill, true
	res, err := r.do(ctx)
	shared := place.shared()
	if killed := place.leave(ctx, true); killed != nil {
		s.fail("it could not be stopped: " + killed.Error())
		if res != nil {
			fail(res, s.because(killed).Error())
		}
		err = joined(err, s.because(killed))
	}
	if err != nil && res == nil {
		return nil, err
	}
	if res.Exit.Reason == tranca.EndError {
		s.fail("it failed in an earlier run" + lastNote(res))
	}
	s.note(res, shared)
	before.into(ctx, res)
	s.toldSoFar(ctx, res)
	return res, nil
}

// lastNote is what is known of a failure.
func lastNote(res *tranca.Result) string {
	if len(res.Notes) == 0 {
		return ""
	}
	return ": " + res.Notes[len(res.Notes)-1]
}

// joined adds to an error, where there is one.
func joined(err, more error) error {
	if err == nil {
		return nil
	}
	return errors.Join(err, more)
}

// note adds what is special about a run in a session.
func (s *Session) note(res *tranca.Result, shared bool) {
	s.mu.Lock()
	s.runs++
	earlier, gone := s.runs > 1, s.gone
	s.mu.Unlock()
	if shared {
		res.Notes = append(res.Notes, "other programs ran in this sandbox meanwhile: usage, limits and changes are those of all together")
	}
	if earlier {
		res.Notes = append(res.Notes, "files of an earlier run in this sandbox stay, and stay charged to its memory and disk")
	}
	if res.Exit.Reason == tranca.EndClosed && gone != nil {
		res.Notes = append(res.Notes, "the session ended: "+gone.Error())
	}
}
