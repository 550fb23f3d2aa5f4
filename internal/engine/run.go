package engine

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"tranca"
)

// run is one program in a box.
type run struct {
	b        *box
	plan     plan
	job      job
	started  time.Time
	out, err *capture
	over     chan struct{} // closed when output went beyond its bound
	wall     *time.Timer
	dir      string
	env      map[string]string
	endGroup bool           // its process group goes with it
	proc     tranca.Process // nil where none was started
	// kill ends the program, and all that it started where that can be told.
	kill func(ctx context.Context, proc tranca.Process) error
}

// run runs the only program of a box that is destroyed next.
func (b *box) run(ctx context.Context, j job) (*tranca.Result, error) {
	r := &run{b: b, plan: b.plan, job: j}
	r.kill = func(ctx context.Context, _ tranca.Process) error { return b.kill(ctx) }
	return r.do(ctx)
}

// do starts the program, waits for its end or stops it, and says what came
// out. When it returns without an error the program is dead; what it left
// behind may live until the box is killed or destroyed. An error means that
// no program ran.
func (r *run) do(ctx context.Context) (*tranca.Result, error) {
	limits := r.plan.kept()
	r.over = make(chan struct{})
	over := sync.OnceFunc(func() { close(r.over) })
	r.out = newCapture(limits.Output.Size, r.job.stdout, over)
	r.err = newCapture(limits.Output.Size, r.job.stderr, over)
	r.started = time.Now()
	r.wall = time.NewTimer(limits.Wall)
	defer r.wall.Stop()
	res := r.b.result(r.plan)
	stop, err := r.start(ctx)
	switch {
	case err == nil:
		r.b.e.tellBoth(ctx, tranca.Event{Kind: tranca.EventStarted, ID: res.ID, Backend: res.Backend})
		r.watch(ctx, res)
	case stop != "":
		res.Exit = tranca.Exit{Code: -1, Reason: stop}
		r.notStarted(ctx, res)
	case sandboxFailed(err):
		fail(res, "the sandbox failed before the program started: "+err.Error())
	default:
		r.finish(ctx, nil)
		return nil, err
	}
	r.finish(ctx, res)
	return res, nil
}

// start starts the program, within the wall clock. stop is set where the
// clock or the caller ended the attempt.
func (r *run) start(ctx context.Context) (stop tranca.Reason, err error) {
	startCtx, cancel := context.WithDeadline(ctx, r.started.Add(r.plan.kept().Wall))
	defer cancel()
	dir := r.dir
	if dir == "" {
		dir = r.plan.policy.Workdir
	}
	var tried []string
	for _, a := range r.job.tries(dir) {
		var proc tranca.Process
		proc, err = r.b.sb.Start(startCtx, tranca.Command{
			Args: a.args, Env: r.env, Dir: r.dir, Stdin: a.stdin, Stdout: r.out, Stderr: r.err,
			EndGroup: r.endGroup,
		})
		if err == nil {
			r.proc = proc
			return "", nil
		}
		if !errors.Is(err, tranca.ErrNotFound) {
			break
		}
		tried = append(tried, a.args[0])
	}
	switch {
	case ctx.Err() != nil:
		return tranca.EndClosed, err
	case startCtx.Err() != nil:
		return tranca.EndWall, err
	case errors.Is(err, tranca.ErrNotFound) && r.job.language != "":
		return "", fmt.Errorf("%w: no interpreter for %s in the sandbox: looked for %v", tranca.ErrNotFound, r.job.language, tried)
	}
	return "", err
}

// notStarted ends what a start that was cut off may have left running.
func (r *run) notStarted(ctx context.Context, res *tranca.Result) {
	if err := r.kill(ctx, nil); err != nil {
		fail(res, "the sandbox could not be stopped: "+err.Error())
	}
}

// waited is what a wait returned.
type waited struct {
	exit tranca.Exit
	err  error
	// alive says that a kill failed, so that something may still run.
	alive bool
}

// watch waits for the end of the program, or stops it, and settles the reason.
func (r *run) watch(ctx context.Context, res *tranca.Result) {
	waitCtx, cancel := context.WithCancel(context.WithoutCancel(ctx))
	defer cancel()
	done := make(chan waited, 1)
	go func() {
		exit, err := r.proc.Wait(waitCtx)
		done <- waited{exit: exit, err: err}
	}()
	over := r.over
	if r.plan.policy.Limits.Output.OnExceed != tranca.ExceedKill {
		over = nil
	}
	var end waited
	var stop tranca.Reason
	select {
	case end = <-done:
	case <-r.wall.C:
		stop = tranca.EndWall
	case <-over:
		stop = tranca.EndOutput
	case <-ctx.Done():
		stop = tranca.EndClosed
	}
	if stop != "" {
		end = r.stop(ctx, done)
		if end.err != nil && !end.alive {
			res.Notes = append(res.Notes, "it was stopped, but its sandbox had failed: "+end.err.Error())
		}
	}
	killedByOutput := false
	if over != nil {
		select {
		case <-over:
			killedByOutput = true
		default:
		}
	}
	res.Exit = settle(end, stop, killedByOutput)
	if res.Exit.Reason == tranca.EndError {
		res.Notes = append(res.Notes, fmt.Sprintf("it is not known how the program ended: %v", end.err))
	}
}

// stop kills the program and returns how it ended.
func (r *run) stop(ctx context.Context, done <-chan waited) waited {
	killed := r.kill(ctx, r.proc)
	timer := time.NewTimer(r.b.e.cfg.CloseTimeout)
	defer timer.Stop()
	if killed != nil {
		// The box is destroyed next, which is the stronger kill.
		timer.Reset(0)
	}
	select {
	case w := <-done:
		return w
	case <-timer.C:
	}
	if killed == nil {
		killed = errors.New("the program was killed and no end was told")
	}
	return waited{err: fmt.Errorf("the sandbox could not be stopped: %w", killed), alive: true}
}

// settle finds the one end reason, in the order that the package comment
// gives. stop is why the engine stopped it, or empty.
func settle(end waited, stop tranca.Reason, outputKills bool) tranca.Exit {
	exit := end.exit
	// What is stopped is killed, whether or not there was a guest left to tell
	// of it: a kernel in user space dies with its programs.
	limit := func(reason tranca.Reason) tranca.Exit {
		return tranca.Exit{Code: -1, Signal: cmp.Or(exit.Signal, tranca.SIGKILL), Reason: reason}
	}
	switch {
	case end.err != nil && (stop == "" || end.alive):
		return tranca.Exit{Code: -1, Reason: tranca.EndError}
	case exit.Reason == tranca.EndMemory || exit.Reason == tranca.EndCPU:
		return limit(exit.Reason)
	case outputKills:
		return limit(tranca.EndOutput)
	case exit.Reason == tranca.EndExited:
		return exit
	case stop != "":
		return limit(stop)
	case exit.Reason == tranca.EndSignaled:
		return tranca.Exit{Code: -1, Signal: exit.Signal, Reason: tranca.EndSignaled}
	}
	// A backend that names no reason knows nothing.
	return tranca.Exit{Code: -1, Signal: exit.Signal, Reason: cmp.Or(exit.Reason, tranca.EndError)}
}

// finish ends the output streams and writes what is known into res, which may
// be nil where nothing ran.
func (r *run) finish(ctx context.Context, res *tranca.Result) {
	wall := time.Since(r.started)
	grace := r.b.e.cfg.StreamGrace
	if res == nil || ctx.Err() != nil {
		grace = min(grace, 100*time.Millisecond)
	}
	for _, s := range []struct {
		name string
		c    *capture
	}{{"stdout", r.out}, {"stderr", r.err}} {
		if missed := s.c.finish(grace); missed > 0 && res != nil {
			res.Notes = append(res.Notes, fmt.Sprintf(
				"the reader of the live %s was left behind: it did not take the last %d bytes; they are in the result", s.name, missed))
		}
	}
	if res == nil {
		return
	}
	res.Stdout, res.StdoutTruncated = r.out.bytes()
	res.Stderr, res.StderrTruncated = r.err.bytes()
	usage, err := r.b.usage(ctx)
	if err != nil && res.Exit.Reason != tranca.EndError {
		res.Notes = append(res.Notes, "the usage could not be read: "+err.Error())
	}
	res.Usage = tranca.RunUsage{
		WallMS: milliseconds(wall), CPUMS: milliseconds(usage.CPU),
		MemoryPeakBytes: usage.MemoryPeak, ProcessesPeak: usage.ProcessesPeak,
	}
	res.LimitsHit = hits(usage.Hit, res)
	exit := res.Exit
	r.b.e.tell(tranca.Event{Kind: tranca.EventEnded, ID: res.ID, Backend: res.Backend, Exit: &exit})
}

// hits joins what the backend saw with what the engine did, in a fixed order.
func hits(seen []tranca.LimitHit, res *tranca.Result) []tranca.LimitHit {
	var all []tranca.LimitHit
	for _, h := range []tranca.LimitHit{
		tranca.HitPIDs, tranca.HitDisk, tranca.HitInodes, tranca.HitFiles,
		tranca.HitFileSize, tranca.HitOutput,
	} {
		hit := slices.Contains(seen, h)
		switch h {
		case tranca.HitFileSize:
			hit = hit || res.Exit.Reason == tranca.EndSignaled && res.Exit.Signal == tranca.SIGXFSZ
		case tranca.HitOutput:
			hit = res.StdoutTruncated || res.StderrTruncated
		}
		if hit {
			all = append(all, h)
		}
	}
	return all
}
