package measure

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"tranca"
	"tranca/internal/bench"
	"tranca/internal/bench/sample"
	"tranca/internal/hoststate"
)

// Config is what is measured, and how much.
type Config struct {
	// Subjects begin with the bare baseline.
	Subjects []Subject
	// Loop does a bare start without the harness.
	Loop func(context.Context) error
	// Result holds what is known beforehand: host, version, what was asked for.
	Result bench.Result
	Quick  bool
	Rounds int
	Seed   uint64
	// Progress, where set, is told what is done now.
	Progress func(Step)
}

// The phases that share the time of a quick run.
const (
	phaseStarts   = "starts"
	phaseLoads    = "loads"
	phaseSessions = "sessions"
	phaseOutput   = "output"
	phaseFiles    = "files"
	phase1        = "1 caller"
	phase8        = "8 callers"
	phase64       = "64 callers"
	phaseRest     = "rest"
)

// Step is how far a run is.
type Step struct {
	// Phase says what is measured, Subject of whom.
	Phase, Subject string
	// Number counts phases from 1 on, of Of.
	Number, Of int
	// Samples counts what was measured in this phase.
	Samples int
}

// run is one run of the benchmark.
type run struct {
	cfg  Config
	pace pace
	step Step
	all  []*subject
	// began is when it began.
	began time.Time
	// before is what there was on the host at the beginning; nil is not known.
	before *hoststate.State
}

// subject is one that is being measured.
type subject struct {
	Subject
	runner  Runner // nil where it isn't open
	samples map[bench.MeasureName][]float64
	missing map[bench.MeasureName]string
}

func (s *subject) add(name bench.MeasureName, v float64) {
	s.samples[name] = append(s.samples[name], v)
}

// clear takes a blurred sample for none: the subject is not to blame.
func (s *subject) clear(err error, names ...bench.MeasureName) error {
	if !errors.Is(err, errBlurred) {
		return err
	}
	for _, name := range names {
		s.missing[name] = err.Error()
	}
	return nil
}

func (s *subject) addTime(name bench.MeasureName, d time.Duration) { s.add(name, float64(d)) }

// Run measures. The result is there also with an error, which is only that of
// ctx: then it is a partial one.
func Run(ctx context.Context, cfg Config) (*bench.Result, error) {
	if len(cfg.Subjects) == 0 || cfg.Subjects[0].About.Kind != bench.KindBare {
		return nil, errors.New("the first subject is the bare baseline")
	}
	r := newRun(cfg)
	err := r.phases(ctx)
	r.closeAll(ctx)
	return r.finish(err), err
}

func newRun(cfg Config) *run {
	r := &run{cfg: cfg, pace: newPace(cfg.Rounds, cfg.Quick, cfg.Seed), began: time.Now()}
	for _, s := range cfg.Subjects {
		r.all = append(r.all, &subject{
			Subject: s, samples: map[bench.MeasureName][]float64{}, missing: map[bench.MeasureName]string{},
		})
	}
	r.cfg.Result.Started = r.began.UTC().Truncate(time.Second)
	return r
}

func (r *run) phases(ctx context.Context) error {
	phases := []struct {
		name string
		do   func(context.Context) error
	}{
		{"opening", r.open},
		{"baseline, first", func(ctx context.Context) error { return r.baseline(ctx, &r.cfg.Result.Trust.FirstNS) }},
		{"harness", r.harness},
		{phaseStarts, r.starts},
		{phaseLoads, r.loads},
		{phaseSessions, r.sessions},
		{phaseOutput, r.output},
		{phaseFiles, r.files},
		{phase1, func(ctx context.Context) error { return r.rate(ctx, bench.Throughput1, 1) }},
		{phase8, func(ctx context.Context) error { return r.rate(ctx, bench.Throughput8, 8) }},
		{phase64, func(ctx context.Context) error { return r.rate(ctx, bench.Throughput64, 64) }},
		{"idle memory", r.idle},
		{"what is left", r.left},
		{"baseline, last", func(ctx context.Context) error { return r.baseline(ctx, &r.cfg.Result.Trust.LastNS) }},
		{"what is left still", r.stillLeft},
	}
	r.step.Of = len(phases)
	for i, p := range phases {
		r.step.Phase, r.step.Number, r.step.Samples = p.name, i+1, 0
		r.tell("")
		if err := p.do(ctx); err != nil {
			return err
		}
	}
	return nil
}

func (r *run) tell(subject string) {
	r.step.Subject = subject
	if r.cfg.Progress != nil {
		r.cfg.Progress(r.step)
	}
}

// open opens each subject and lets it run once, which warms it up.
func (r *run) open(ctx context.Context) error {
	// Where it can't be read, each subject is looked at for itself in the end.
	r.before, _ = hoststate.Take(hoststate.Default())
	for _, s := range r.all {
		if s.About.Unavailable != "" {
			continue
		}
		r.tell(s.About.Name)
		err := r.openOne(ctx, s)
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		if err != nil {
			s.About.Unavailable = reason(err)
		}
	}
	if bare := r.all[0]; bare.About.Unavailable != "" {
		for _, s := range r.all[1:] {
			if s.About.Unavailable == "" {
				s.About.Unavailable = "nothing can be held against it: bare: " + bare.About.Unavailable
			}
		}
	}
	return nil
}

// reason says why a subject can't run, and where that is only for items that may
// be waived, how to measure it without them.
func reason(err error) string {
	var refusal *tranca.RefusalError
	if !errors.As(err, &refusal) || len(refusal.Problems) == 0 {
		return err.Error()
	}
	var waive []string
	for _, p := range refusal.Problems {
		if !slices.Contains(tranca.Waivable(), p.Item) {
			return err.Error()
		}
		if flag := "--waive " + string(p.Item); !slices.Contains(waive, flag) {
			waive = append(waive, flag)
		}
	}
	return err.Error() + " (to measure it without: " + strings.Join(waive, " ") + ")"
}

func (r *run) openOne(ctx context.Context, s *subject) error {
	ctx, cancel := r.patient(ctx)
	defer cancel()
	runner, err := s.Open(ctx)
	if err != nil {
		return err
	}
	if _, _, err := start(ctx, runner.Run); err != nil {
		return errors.Join(err, r.closeRunner(ctx, runner))
	}
	runner.Describe(&s.About)
	s.runner = runner
	return nil
}

// patient bounds one sample: a subject that hangs has failed.
func (r *run) patient(ctx context.Context) (context.Context, context.CancelFunc) {
	return context.WithTimeoutCause(ctx, r.pace.patience, fmt.Errorf("it took longer than %s", r.pace.patience))
}

// closeTime bounds the end of one subject.
const closeTime = 30 * time.Second

func (r *run) closeRunner(ctx context.Context, runner Runner) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), closeTime)
	defer cancel()
	return runner.Close(ctx)
}

// closeAll closes what is open, also when the run was stopped.
func (r *run) closeAll(ctx context.Context) {
	for _, s := range r.all {
		r.closeOne(ctx, s)
	}
}

func (r *run) closeOne(ctx context.Context, s *subject) {
	if s.runner == nil {
		return
	}
	if err := r.closeRunner(ctx, s.runner); err != nil {
		s.fail("its end", err)
	}
	s.runner = nil
}

// overdue reports whether the time of a quick run is over, a little more given.
func (r *run) overdue() bool {
	return r.pace.total > 0 && time.Since(r.began) > r.pace.total+r.pace.atEnd/2
}

// fail remembers the first thing that went wrong.
func (s *subject) fail(phase string, err error) {
	if s.About.Failed == "" {
		s.About.Failed = phase + ": " + err.Error()
	}
}

// opened lists the subjects that run.
func (r *run) opened() []*subject {
	var all []*subject
	for _, s := range r.all {
		if s.runner != nil {
			all = append(all, s)
		}
	}
	return all
}

// spread times subjects by a plan. names are the measures that are missing where
// one fails.
func (r *run) spread(ctx context.Context, of []*subject, plan sample.Plan, names []bench.MeasureName,
	do func(context.Context, *subject) error, took func(*subject, time.Duration),
) error {
	subjects := make([]sample.Subject, len(of))
	for i, s := range of {
		subjects[i] = sample.Subject{Name: s.About.Name, Do: func(ctx context.Context) error {
			ctx, cancel := r.patient(ctx)
			defer cancel()
			return do(ctx, s)
		}}
	}
	if r.pace.total > 0 {
		plan.Budget = budget(r.step.Phase, r.pace.total-time.Since(r.began))
		if plan.Budget > 0 {
			// On a busy host one phase must not take what the others have.
			plan.Deadline = time.Now().Add(min(2*plan.Budget, r.pace.total-time.Since(r.began)))
		}
		plan.First = r.step.Phase == phaseStarts // without them there is nothing to show
	}
	return sample.Spread(ctx, subjects, plan, func(i int, d time.Duration) {
		r.step.Samples++
		r.tell(of[i].About.Name)
		if took != nil {
			took(of[i], d)
		}
	}, func(i int, err error) { r.failed(ctx, of[i], names, err) })
}

// failed notes that a subject failed, and finds out whether it still runs at
// all: one that doesn't is left out from then on.
func (r *run) failed(ctx context.Context, s *subject, names []bench.MeasureName, err error) {
	s.fail(r.step.Phase, err)
	for _, name := range names {
		s.missing[name] = "failed: " + err.Error()
	}
	ctx, cancel := r.patient(ctx)
	defer cancel()
	if _, _, err := start(ctx, s.runner.Run); err != nil {
		r.closeOne(ctx, s)
	}
}
