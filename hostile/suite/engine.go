package suite

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"path"
	"slices"
	"sync"
	"time"

	"tranca"
	"tranca/hostile"
	"tranca/hostile/attempt"
	"tranca/hostile/world"
	"tranca/internal/engine"
)

// Box is one of tranca's backends, used through the engine as every surface
// does it.
type Box struct {
	// Backends is a registry of the backend alone, of [Hold].
	Backends engine.Backends
	// Images are the root trees that policies may name; nil for the host's alone.
	Images engine.Images
	// Policy is what the suite's policies are made from: floor, backend, image,
	// runtime, waivers.
	Policy tranca.Policy
	// Program is the static program.
	Program []byte
	// Python, where set, is an interpreter inside by which the form in Python is
	// run instead: where memory is bounded by the address space of each process,
	// the static program, whose runtime reserves much and uses little, can't run.
	Python string
	// Bare says that the backend hides no files: a program starts in a folder of
	// its own, somewhere among the host's.
	Bare bool
	// OwnKernel says that programs run in a kernel of their own, in which the host
	// can't see them by their mark: in trials about what is left, which run alone,
	// whatever is there after them and was not before is left.
	OwnKernel bool
	// Kernel is what the processes of that kernel are called on the host, where
	// they are tranca's.
	Kernel string
	// Engine says that an engine starts the sandboxes' processes, not tranca.
	Engine bool
	// Slack is what a run may take beyond its wall-clock limit.
	Slack time.Duration
	// Config is what else engines are made from.
	Config engine.Config
	// Supervised runs the trials in which tranca itself is killed.
	Supervised *Supervised
}

// Sandboxes have these folders of their own.
const (
	boxSpace = "/work"
	boxTmp   = "/tmp"
)

// View implements [Target].
func (b *Box) View() world.View {
	if b.Bare {
		return world.View{Space: ".", Tmp: boxTmp, Bare: true}
	}
	return world.View{Space: boxSpace, Tmp: boxTmp, Kernel: b.Kernel}
}

// Cannot implements [Target].
func (b *Box) Cannot(p *hostile.Probe) string {
	if p.KillSupervisor && b.Supervised == nil {
		return "here nobody supervises that could be killed"
	}
	if b.Python != "" && !p.SaidInPython() {
		return "it can't be said in Python, in which this column's programs are: " + p.PythonWhy
	}
	return ""
}

// Run implements [Target].
func (b *Box) Run(ctx context.Context, t *Trial) (*Outcome, error) {
	if t.Probe.KillSupervisor && !t.Twin {
		return b.Supervised.run(ctx, t, b.Engine)
	}
	return b.trial(ctx, t)
}

// engine makes one for sandboxes under a policy.
func (b *Box) engine(p tranca.Policy) (*engine.Engine, error) {
	cfg := b.Config
	cfg.Backends, cfg.Images, cfg.Policy, cfg.MaxTTL = b.Backends, b.Images, p, -1
	return engine.New(cfg)
}

func (b *Box) trial(ctx context.Context, t *Trial) (*Outcome, error) {
	p, err := t.Policy(b.Policy)
	if err != nil {
		return nil, err
	}
	e, err := b.engine(p)
	if err != nil {
		return nil, err
	}
	r := &boxRun{box: b, e: e, t: t, limits: p.Limits, begin: newBarrier(), out: newOutcome()}
	left := func(*Outcome) {}
	if t.Probe.Guarantee == tranca.ItemLifetime && !t.Twin && b.OwnKernel {
		if left, err = watchLeft(b.Engine); err != nil {
			return nil, errors.Join(err, e.Close(ctx))
		}
	}
	err = r.all(ctx)
	closing, cancel := ending(ctx)
	defer cancel()
	if err := e.Close(closing); err != nil {
		r.trouble("the engine's end: %v", err)
	}
	left(r.out)
	return r.out, err
}

// ending is a context for what has to be done though a run is over: it has its own
// bound.
func ending(ctx context.Context) (context.Context, context.CancelFunc) {
	return context.WithTimeout(context.WithoutCancel(ctx), endsBy)
}

// endsBy is how long the end of a sandbox or an engine may take.
const endsBy = 30 * time.Second

// Supervise runs a program in a sandbox and returns when it has ended, with its
// output going to out and without a world around it: for the process that [Supervised] kills.
func (b *Box) Supervise(ctx context.Context, probe *hostile.Probe, p *attempt.Program, out io.Writer) error {
	policy, err := probe.Policy.Apply(b.Policy, nil)
	if err != nil {
		return err
	}
	e, err := b.engine(policy)
	if err != nil {
		return err
	}
	r := &boxRun{box: b, e: e, limits: policy.Limits, live: out, out: newOutcome()}
	err = r.inSession(ctx, func(s *engine.Session) error {
		_, err := r.run(ctx, s, "output", p)
		return err
	})
	closing, cancel := ending(ctx)
	defer cancel()
	return errors.Join(err, e.Close(closing))
}

// boxRun is one trial in sandboxes of one engine.
type boxRun struct {
	box    *Box
	e      *engine.Engine
	t      *Trial
	limits tranca.Limits
	live   io.Writer // takes output as it comes; nil for nobody

	// begin is where the programs of two sandboxes wait for each other.
	begin barrier

	mu  sync.Mutex
	out *Outcome
}

// barrier lets two pass when both have come, or one of them never will.
type barrier struct {
	once    [2]sync.Once
	arrived [2]chan struct{}
}

func newBarrier() barrier {
	return barrier{arrived: [2]chan struct{}{make(chan struct{}), make(chan struct{})}}
}

// come says that one is here, or never will be.
func (b *barrier) come(who int) { b.once[who].Do(func() { close(b.arrived[who]) }) }

// meet waits for the other.
func (b *barrier) meet(ctx context.Context, who int) {
	b.come(who)
	select {
	case <-b.arrived[1-who]:
	case <-ctx.Done():
	}
}

func (r *boxRun) trouble(format string, args ...any) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.out.Trouble = append(r.out.Trouble, fmt.Sprintf(format, args...))
}

func (r *boxRun) see(what string, data []byte) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if kept := r.out.Seen.Output[what]; len(kept) < mostSeen {
		r.out.Seen.Output[what] = append(kept, data...)
	}
}

func (r *boxRun) all(ctx context.Context) error {
	beside := r.neighbour(ctx)
	err := r.first(ctx)
	r.begin.come(theProgram)
	if b, e := beside(); e != nil {
		r.trouble("the neighbour: %v", e)
	} else {
		r.out.Beside = b
	}
	if err != nil || r.t.Next == nil {
		return err
	}
	return r.inSession(ctx, func(s *engine.Session) error {
		ran, err := r.run(ctx, s, "the next sandbox", r.t.Next)
		r.out.Next = ran
		return err
	})
}

// first runs the attempt, what follows in the same sandbox, and what is
// collected.
func (r *boxRun) first(ctx context.Context) error {
	return r.inSession(ctx, func(s *engine.Session) error {
		if r.t.Beside != nil {
			r.begin.meet(ctx, theProgram)
		}
		stop := r.collectDuring(ctx, s)
		ran, err := r.run(ctx, s, "output", r.t.Attempt)
		stop()
		if err != nil {
			return err
		}
		r.out.Attempt = *ran
		r.collect(ctx, s, false)
		if r.t.Again != nil {
			r.out.Again, err = r.run(ctx, s, "output of the second run", r.t.Again)
			if errors.Is(err, tranca.ErrGone) && r.t.Probe.Limit.Named(ran.Exit.Reason, ran.Hits) {
				r.out.Again, err = nil, nil // a sandbox that died of its limit, and says so
			}
		}
		return err
	})
}

// The two that meet at the beginning.
const (
	theProgram = iota
	theNeighbour
)

// neighbour starts the program beside, and returns how to wait for it.
func (r *boxRun) neighbour(ctx context.Context) func() (*Ran, error) {
	if r.t.Beside == nil {
		return func() (*Ran, error) { return nil, nil }
	}
	type answer struct {
		ran *Ran
		err error
	}
	c := make(chan answer, 1)
	go func() {
		var a answer
		defer r.begin.come(theNeighbour)
		a.err = r.inSession(ctx, func(s *engine.Session) error {
			r.begin.meet(ctx, theNeighbour)
			ran, err := r.run(ctx, s, "output beside", r.t.Beside)
			a.ran = ran
			return err
		})
		c <- a
	}()
	return func() (*Ran, error) {
		a := <-c
		return a.ran, a.err
	}
}

// inSession does something in a sandbox of its own.
func (r *boxRun) inSession(ctx context.Context, do func(*engine.Session) error) error {
	s, err := r.e.Open(ctx, tranca.CreateRequest{})
	if err != nil {
		return err
	}
	err = do(s)
	closing, cancel := ending(ctx)
	defer cancel()
	if err := s.Close(closing); err != nil {
		r.trouble("the sandbox's end: %v", err)
	}
	return err
}

// run runs one of the trial's programs.
func (r *boxRun) run(ctx context.Context, s *engine.Session, what string, p *attempt.Program) (*Ran, error) {
	command, input, err := r.program(ctx, s, p)
	if err != nil {
		return nil, err
	}
	began := time.Now()
	limited, cancel := context.WithTimeout(ctx, r.limits.Wall+r.box.Slack)
	defer cancel()
	res, err := s.Run(limited, tranca.Request{Command: command, Stdin: bytes.NewReader(input), Stdout: r.live})
	if err != nil {
		return nil, err
	}
	took := time.Since(began)
	if limited.Err() != nil && ctx.Err() == nil {
		r.trouble("it still ran %s after its limit of %s", r.box.Slack, r.limits.Wall)
	}
	ran := r.ran(what, res, took)
	ran.Began = began
	return ran, nil
}

// program returns what runs a program, and its input. It puts the static program
// into the sandbox.
func (r *boxRun) program(ctx context.Context, s *engine.Session, p *attempt.Program) (command []string, input []byte, err error) {
	if r.box.Python != "" {
		script, err := attempt.Python(*p)
		return []string{r.box.Python, "-I", "-", p.Mark}, []byte(script), err
	}
	file := path.Join(boxSpace, "probe")
	if _, err := s.Files().Write(ctx, file, bytes.NewReader(r.box.Program), 0o755); err != nil {
		return nil, nil, fmt.Errorf("put the program into the sandbox: %w", err)
	}
	input, err = json.Marshal(p)
	return []string{file, p.Mark}, input, err
}

func (r *boxRun) ran(what string, res *tranca.Result, took time.Duration) *Ran {
	r.see(what, res.Stdout)
	r.see(what, res.Stderr)
	r.tell(res.Changes)
	ran := &Ran{
		Exit: res.Exit, Hits: res.LimitsHit, Printed: int64(len(res.Stdout) + len(res.Stderr)),
		Cut: res.StdoutTruncated || res.StderrTruncated, WallMS: took.Milliseconds(), CPUMS: res.Usage.CPUMS,
	}
	ran.Lines, ran.Done = readLines(res.Stdout)
	return ran
}

// tell notes which paths the result names as executable by the host.
func (r *boxRun) tell(changes []tranca.Change) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, c := range changes {
		if c.HostExecutable {
			r.out.Seen.Told[c.Path] = true
		}
	}
}

// most is how much is read of a collected file.
const most = 1 << 20

// mostSeen is how much is kept of one stream, and of what is read of a file again
// and again.
const mostSeen = 8 << 20

// collect reads paths by the file interface, as a host does that wants what the
// code made.
func (r *boxRun) collect(ctx context.Context, s *engine.Session, during bool) {
	for _, c := range r.t.Collect {
		if c.During != during {
			continue
		}
		limited, cancel := context.WithTimeout(ctx, 5*time.Second)
		got, err := r.fetch(limited, s, c)
		if limited.Err() != nil && ctx.Err() == nil {
			r.trouble("reading %s from outside did not end within 5 s", c.Path)
		}
		cancel()
		if !during && (errors.Is(err, tranca.ErrGone) || errors.Is(err, tranca.ErrUnavailable)) {
			r.out.Lost = err.Error()
		}
		if err != nil {
			got.Said = err.Error()
		}
		if !during {
			r.out.Collected = append(r.out.Collected, got)
		}
	}
}

func (r *boxRun) fetch(ctx context.Context, s *engine.Session, c hostile.Collect) (got Collected, err error) {
	got.Path = c.Path
	if c.List {
		all, err := s.Files().List(ctx, c.Path, 8)
		for _, f := range all {
			r.see("names of files", []byte(f.Path+" "+f.LinkTarget+"\n"))
		}
		got.Said, got.Brought = fmt.Sprintf("%d names", len(all)), len(all) > 0
		return got, err
	}
	f, err := s.Files().Read(ctx, c.Path, 0)
	if err != nil {
		return got, err
	}
	defer f.Close()
	data, err := io.ReadAll(io.LimitReader(f, most))
	r.see("the collected file "+c.Path, data)
	got.Said, got.Brought = fmt.Sprintf("%d bytes", len(data)), len(data) > 0
	return got, err
}

// collectDuring collects again and again while the program runs.
func (r *boxRun) collectDuring(ctx context.Context, s *engine.Session) (stop func()) {
	if !slices.ContainsFunc(r.t.Collect, func(c hostile.Collect) bool { return c.During }) {
		return func() {}
	}
	ctx, cancel := context.WithCancel(ctx)
	enough := world.Every(time.Millisecond, func() { r.collect(ctx, s, true) })
	return func() {
		cancel() // what is being read, too
		enough()
	}
}
