package engine

import (
	"context"
	"sync"
	"time"

	"tranca"
)

// failedFor is how long a failed probe is believed: a host can be mended while
// a server runs, and asking again at each request would cost each of them.
const failedFor = 10 * time.Second

// probes keeps what each backend reported of this host.
type probes struct {
	mu    sync.Mutex
	found map[probed]*probe
}

// probed is what a report is about: a backend, by one of its runtimes where a
// policy names one.
type probed struct{ backend, runtime string }

type probe struct {
	turn   chan struct{} // holds a token while nobody probes
	known  bool
	at     time.Time
	report tranca.Report
	err    error
}

func newProbes() *probes { return &probes{found: map[probed]*probe{}} }

// get returns the report of a backend, from a probe that is kept until forget
// is called, or for some seconds where it failed. Callers that come while one
// probes wait for it. A backend without runtimes is probed as if none was
// named; its report says that it has none.
func (p *probes) get(ctx context.Context, b tranca.Backend, runtime string) (tranca.Report, error) {
	probe := b.Probe
	if runtime != "" {
		if r, ok := tranca.As[tranca.RuntimeProber](b); ok {
			probe = func(ctx context.Context) (tranca.Report, error) { return r.ProbeRuntime(ctx, runtime) }
		} else {
			runtime = ""
		}
	}
	kept := p.of(b, runtime)
	select {
	case kept.turn <- struct{}{}:
	case <-ctx.Done():
		return tranca.Report{}, context.Cause(ctx)
	}
	defer func() { <-kept.turn }()
	if kept.known && (kept.err == nil || time.Since(kept.at) < failedFor) {
		return kept.report, kept.err
	}
	report, err := probe(ctx)
	if ctx.Err() != nil {
		// The caller went away; that says nothing about the host.
		return tranca.Report{}, context.Cause(ctx)
	}
	report = withOwn(report)
	report.Backend = b.Name()
	kept.known, kept.at, kept.report, kept.err = true, time.Now(), report, err
	return report, err
}

// before is get for a backend that is about to make a sandbox. What it found
// when it was made does then, for the making is the trial: a probe would only
// make it twice.
func (p *probes) before(ctx context.Context, b tranca.Backend, runtime string) (tranca.Report, error) {
	if runtime != "" {
		return p.get(ctx, b, runtime)
	}
	r, ok := tranca.As[tranca.Reporter](b)
	if !ok {
		return p.get(ctx, b, "")
	}
	report := withOwn(r.Report())
	report.Backend = b.Name()
	if !report.Holds(tranca.ItemIsolation) {
		return p.get(ctx, b, "") // it can't run here at all, and a probe says why
	}
	return report, nil
}

// forget makes the next get probe again.
func (p *probes) forget(b tranca.Backend, runtime string) {
	kept := p.of(b, runtime)
	kept.turn <- struct{}{}
	kept.known = false
	<-kept.turn
}

func (p *probes) of(b tranca.Backend, runtime string) *probe {
	p.mu.Lock()
	defer p.mu.Unlock()
	about := probed{b.Name(), runtime}
	kept := p.found[about]
	if kept == nil {
		kept = &probe{turn: make(chan struct{}, 1)}
		p.found[about] = kept
	}
	return kept
}

// Reports returns what each backend enforces on this host, from probes that
// are kept, in the order of the registry. errs holds an error for each
// backend that can't run here at all, and nil for the others.
func (e *Engine) Reports(ctx context.Context) (reports []tranca.Report, errs []error) {
	for _, b := range e.cfg.Backends.All() {
		report, err := e.probes.get(ctx, b, "")
		report.Backend = b.Name()
		reports, errs = append(reports, report), append(errs, err)
	}
	return reports, errs
}

// The items that the engine itself enforces, whatever the backend.
const (
	wallMechanism   = "the engine's monotonic clock, then a kill of the whole tree"
	outputMechanism = "the engine keeps the first bytes of each stream and drains the rest"
)

// withOwn adds the engine's own guarantees to a report.
func withOwn(r tranca.Report) tranca.Report {
	all := make([]tranca.Guarantee, 0, len(r.Guarantees)+2)
	for _, g := range r.Guarantees {
		if g.Item != tranca.ItemWall && g.Item != tranca.ItemOutput {
			all = append(all, g)
		}
	}
	r.Guarantees = append(all,
		tranca.Guarantee{Item: tranca.ItemWall, Held: true, Mechanism: wallMechanism},
		tranca.Guarantee{Item: tranca.ItemOutput, Held: true, Mechanism: outputMechanism},
	)
	return r
}

// statement puts the engine's own two items into a backend's statement, in
// the order of [tranca.Items].
func statement(given []tranca.Enforcement) []tranca.Enforcement {
	byItem := make(map[tranca.Item]tranca.Enforcement, len(given)+2)
	for _, s := range given {
		byItem[s.Item] = s
	}
	byItem[tranca.ItemWall] = tranca.Enforcement{
		Item: tranca.ItemWall, Mechanism: wallMechanism, Status: tranca.StatusEnforced,
	}
	byItem[tranca.ItemOutput] = tranca.Enforcement{
		Item: tranca.ItemOutput, Mechanism: outputMechanism, Status: tranca.StatusEnforced,
	}
	all := make([]tranca.Enforcement, 0, len(byItem))
	for _, item := range tranca.Items() {
		if s, ok := byItem[item]; ok {
			all = append(all, s)
		}
	}
	return all
}
