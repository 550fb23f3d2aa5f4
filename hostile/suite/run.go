package suite

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"tranca"
	"tranca/hostile"
	"tranca/hostile/report"
)

// Control runs a trial in the disposable place: without a boundary where column
// is [NoBoundary] or [NoBoundaryPython], else behind a reference.
type Control func(ctx context.Context, p *hostile.Probe, twin bool, column string) *Observation

// NoBoundary is the name of the control's column, and NoBoundaryPython what its
// form in Python is called, which is the control of columns whose programs are in
// Python.
const (
	NoBoundary       = "none"
	NoBoundaryPython = "none (Python)"
)

// Column is a boundary to try. Target is nil for those whose trials are made in
// the disposable place.
type Column struct {
	report.Column
	Target Target
	// Python says that its programs are in the form in Python, so that their
	// control is, too.
	Python bool
}

// Suite is a run to be made.
type Suite struct {
	Probes  []*hostile.Probe
	Columns []Column
	Stage   Stage
	Control Control
	// Jobs is how many cells are tried at once, but for probes that are alone.
	Jobs int
	// Progress is told of each cell that begins or is done; it may be nil. It is
	// called by several goroutines at once.
	Progress func(report.Progress)
}

// cellPatience bounds one cell.
const cellPatience = 3 * time.Minute

// Run tries every probe against every column and returns the cells that were
// decided until ctx ended. The probes that measure neighbours run when nothing
// else does.
func (s *Suite) Run(ctx context.Context) []report.Cell {
	r := &run{Suite: s, controls: map[controlOf]*control{}}
	for _, p := range s.Probes {
		for _, form := range []string{NoBoundary, NoBoundaryPython} {
			r.controls[controlOf{p.ID, form}] = &control{}
		}
	}
	var work []cellOf
	for _, c := range s.Columns {
		for _, p := range s.Probes {
			if c.Missing == "" {
				work = append(work, cellOf{p, c})
			}
		}
	}
	r.total = len(work)
	together := slices.DeleteFunc(slices.Clone(work), cellOf.alone)
	alone := slices.DeleteFunc(work, func(c cellOf) bool { return !c.alone() })
	r.several(ctx, together, max(s.Jobs, 1))
	r.several(ctx, alone, 1)
	return r.cells
}

type cellOf struct {
	probe  *hostile.Probe
	column Column
}

// alone says that nothing runs beside it: it measures others, kills a supervisor,
// whose remains another one that starts would sweep, or is about processes of a
// kernel of its own, which nothing tells from those of others.
func (c cellOf) alone() bool {
	if c.probe.Alone || c.probe.KillSupervisor {
		return true
	}
	about := []tranca.Item{tranca.ItemLifetime, tranca.ItemUser, tranca.ItemSyscalls}
	return !c.probe.Kernel && ownKernel(&c.column.Column) && slices.Contains(about, c.probe.Guarantee)
}

type run struct {
	*Suite
	controls map[controlOf]*control
	total    int
	done     atomic.Int64

	mu    sync.Mutex
	cells []report.Cell
}

// control is the bare run of a probe in one form, made once for all columns.
type control struct {
	once sync.Once
	seen *Observation
}

type controlOf struct{ probe, form string }

func (r *run) several(ctx context.Context, work []cellOf, jobs int) {
	next := make(chan cellOf)
	var wg sync.WaitGroup
	for range jobs {
		wg.Go(func() {
			for c := range next {
				r.one(ctx, c)
			}
		})
	}
	for _, c := range work {
		select {
		case next <- c:
		case <-ctx.Done():
		}
	}
	close(next)
	wg.Wait()
}

func (r *run) tell(p report.Progress) {
	if r.Progress != nil {
		p.Done, p.Total = int(r.done.Load()), r.total
		r.Progress(p)
	}
}

// one decides one cell. A cell whose run was interrupted is left out: it shows
// nothing.
func (r *run) one(ctx context.Context, c cellOf) {
	if ctx.Err() != nil {
		return
	}
	r.tell(report.Progress{Probe: c.probe.ID, Column: c.column.Name})
	limited, cancel := context.WithTimeout(ctx, cellPatience)
	defer cancel()
	cell := r.decide(limited, c)
	if ctx.Err() != nil {
		return
	}
	r.done.Add(1)
	r.mu.Lock()
	r.cells = append(r.cells, cell)
	r.mu.Unlock()
	r.tell(report.Progress{Probe: c.probe.ID, Column: c.column.Name, Cell: &cell})
}

func (r *run) decide(ctx context.Context, c cellOf) report.Cell {
	p, column := c.probe, c.column
	began := time.Now()
	var twin, bare, tried *Observation
	form := NoBoundary
	if column.Python {
		form = NoBoundaryPython
	}
	switch {
	case column.Kind == report.ColumnControl:
		twin = r.Control(ctx, p, true, NoBoundary)
		tried = r.bare(ctx, p, form)
	case column.Target == nil:
		bare = r.bare(ctx, p, form)
		twin = r.Control(ctx, p, true, column.Name)
		tried = r.Control(ctx, p, false, column.Name)
	default:
		if why := column.Target.Cannot(p); why != "" {
			return report.Cell{Probe: p.ID, Column: column.Name, Verdict: report.NotApplicable, Why: why}
		}
		bare = r.bare(ctx, p, form)
		twin = r.Stage.Try(ctx, p, true, column.Target)
		tried = r.Stage.Try(ctx, p, false, column.Target)
	}
	cell := Judge(p, &column.Column, form, twin, bare, tried)
	cell.Seconds = time.Since(began).Seconds()
	if ctx.Err() != nil && cell.Verdict != report.Escaped {
		cell.Verdict, cell.Why = report.Unknown, fmt.Sprintf("it did not end within %s", cellPatience)
	}
	return cell
}

func (r *run) bare(ctx context.Context, p *hostile.Probe, form string) *Observation {
	c := r.controls[controlOf{p.ID, form}]
	// It is all columns', so that no cell's deadline is its own; a place has one.
	c.once.Do(func() { c.seen = r.Control(context.WithoutCancel(ctx), p, false, form) })
	return c.seen
}
