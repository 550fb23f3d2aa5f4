package app

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"tranca"
	"tranca/hostile"
	"tranca/hostile/attempt/image"
	"tranca/hostile/place"
	"tranca/hostile/report"
	"tranca/hostile/suite"
	"tranca/hostile/world"
	"tranca/internal/app/backends"
	"tranca/internal/backend"
	"tranca/internal/backend/container"
	"tranca/internal/backend/gvisor"
	"tranca/internal/bench/baseline"
	"tranca/internal/changeset"
	"tranca/internal/cli"
	"tranca/internal/engine"
	"tranca/internal/guest/sentryspec"
	"tranca/internal/hostsetup"
	imagestore "tranca/internal/image"
	"tranca/internal/policy"
	"tranca/internal/weaken"
)

// subprocess is tried in the disposable place alone: it hides neither files nor
// processes, and what a program kills or removes there is the place's.
const subprocess = "subprocess"

// proof is one run of the hostile suite.
type proof struct {
	setup   cli.HostileSetup
	probes  []*hostile.Probe
	program []byte
	dir     string // of this run's own files
	columns []suite.Column
	undo    []func()
}

// runHostile runs the suite.
func runHostile(ctx context.Context, setup cli.HostileSetup) (*report.Report, error) {
	p := &proof{setup: setup}
	defer p.close()
	if err := p.prepare(); err != nil {
		return nil, err
	}
	r := p.report()
	if err := p.findColumns(ctx); err != nil {
		return nil, err
	}
	for _, c := range p.columns {
		r.Columns = append(r.Columns, c.Column)
	}
	s := suite.Suite{
		Probes: p.probes, Columns: p.columns, Jobs: jobs, Progress: setup.Progress,
		Stage: suite.Stage{Program: filepath.Join(p.dir, "probe")}, Control: p.inPlace(),
	}
	r.Cells = s.Run(ctx)
	r.Seconds = time.Since(r.Began).Seconds()
	if ctx.Err() != nil {
		r.Partial, r.Stopped = true, context.Cause(ctx).Error()
	}
	return r, nil
}

// jobs is how many cells are tried at once. More would not end sooner: most of
// them wait for a limit, and the rest is for two processors.
const jobs = 4

func (p *proof) close() {
	for _, undo := range slices.Backward(p.undo) {
		undo()
	}
}

// prepare reads the probes and puts their program where the host can run it.
func (p *proof) prepare() error {
	all, err := probesOf(p.setup.ProbesDir)
	if err != nil {
		return err
	}
	for _, one := range all {
		fits, err := report.Selects(p.setup.Only, one.ID)
		if err != nil {
			return err
		}
		if fits {
			p.probes = append(p.probes, one)
		}
	}
	if p.setup.Quick {
		p.probes = oneForEachRow(p.probes)
	}
	if len(p.probes) == 0 {
		return fmt.Errorf("%w: no probe fits %q: `tranca hostile --list` has them all", tranca.ErrNotFound, p.setup.Only)
	}
	if p.program, err = image.Program(); err != nil {
		return err
	}
	if p.dir, err = os.MkdirTemp("", "tranca-hostile-"); err != nil {
		return err
	}
	p.undo = append(p.undo, func() { _ = os.RemoveAll(p.dir) })
	if err := os.Setenv(world.EnvironmentSecret, "ts"+strings.ToLower(rand.Text())); err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(p.dir, "probe"), p.program, 0o700)
}

func probesOf(dir string) ([]*hostile.Probe, error) {
	if dir == "" {
		return hostile.Probes()
	}
	return hostile.Load(os.DirFS(dir))
}

// oneForEachRow keeps the first probe of each row.
func oneForEachRow(all []*hostile.Probe) (few []*hostile.Probe) {
	seen := map[string]bool{}
	for _, p := range all {
		if !seen[p.Rows[0]] {
			few = append(few, p)
		}
		seen[p.Rows[0]] = true
	}
	return few
}

func (p *proof) report() *report.Report {
	return &report.Report{
		Schema: report.Schema, Began: time.Now().UTC(), Version: cli.Version,
		Host: thisHost(), Probes: described(p.probes),
	}
}

func thisHost() report.Host {
	var u unix.Utsname
	_ = unix.Uname(&u)
	return report.Host{
		System: hostsetup.ReadDistribution("/").Name, Kernel: unix.ByteSliceToString(u.Release[:]),
		Arch: runtime.GOARCH, UserID: os.Geteuid(), CPUs: runtime.NumCPU(),
	}
}

// described is what a report says of probes.
func described(probes []*hostile.Probe) (all []report.Probe) {
	for _, p := range probes {
		all = append(all, report.Probe{
			ID: p.ID, Group: p.Group(), Try: p.Try, Why: p.Why, Guarantee: p.Guarantee,
			Severity: string(p.Severity), Rows: p.Rows, Program: p.Text,
		})
	}
	return all
}

// hostileProbes lists the probes of a folder, or of this build.
func hostileProbes(dir string) ([]report.Probe, error) {
	all, err := probesOf(dir)
	return described(all), err
}

// inPlace makes trials in the disposable place.
func (p *proof) inPlace() suite.Control {
	o := place.Options{
		Command: []string{"/proc/self/exe", cli.HostilePlace},
		Env:     append(slices.Clone(minimalEnv()), world.EnvironmentSecret+"="+os.Getenv(world.EnvironmentSecret)),
	}
	return func(ctx context.Context, probe *hostile.Probe, twin bool, column string) *suite.Observation {
		return o.Try(ctx, place.Task{Probe: probe.ID, Text: probe.Text, Column: column, Waive: p.setup.Waive, Twin: twin})
	}
}

// minimalEnv is what bare programs get of the operator's environment: nothing
// that could be a secret.
func minimalEnv() []string {
	env := []string{"PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"}
	for _, name := range []string{"HOME", "USER"} {
		if v := os.Getenv(name); v != "" {
			env = append(env, name+"="+v)
		}
	}
	return append(env, weaken.Environ()...)
}

// findColumns finds out which boundaries there are here.
func (p *proof) findColumns(ctx context.Context) error {
	p.columns = append(p.columns, suite.Column{Column: report.Column{
		Name: suite.NoBoundary, Kind: report.ColumnControl,
	}})
	all, err := backends.All(0)
	if err != nil {
		return err
	}
	for _, b := range all.All() {
		p.undo = append(p.undo, func() { _ = closeProbed(ctx, b) })
	}
	if err := checkNames(p.setup.Backends, all); err != nil {
		return err
	}
	for _, b := range all.All() {
		if p.wants(b.Name()) {
			p.tell("looking at " + b.Name())
			p.addBackend(ctx, b)
		}
	}
	p.addReference(ctx)
	if err := p.addAgainst(ctx); err != nil {
		return err
	}
	return p.checkFound()
}

// checkFound refuses a run in which a column that was named is none, or in which
// there is nothing but the control.
func (p *proof) checkFound() error {
	var names, missing []string
	tried := false
	for _, c := range p.columns[1:] {
		names = append(names, c.Name)
		if tried = tried || c.Missing == ""; c.Missing != "" {
			missing = append(missing, c.Name+": "+c.Missing)
		}
	}
	for _, name := range p.setup.Backends {
		if !slices.ContainsFunc(names, func(column string) bool { return column == name || strings.HasPrefix(column, name+" (") }) {
			return report.NoSuch("backend", name, names)
		}
	}
	if !tried {
		return fmt.Errorf("%w: there is no boundary here to try: %s; `tranca doctor` says what mends it", tranca.ErrUnavailable, strings.Join(missing, "; "))
	}
	return nil
}

// addReference adds what `docker run` is without a flag, where there is an
// engine with an image that has Python: it shows what the flags of the hard one
// are for. Its containers are the engine's own, so that what a program takes there
// is bounded by the program alone.
func (p *proof) addReference(ctx context.Context) {
	named, image := os.Getenv("TRANCA_CONTAINER_ENGINE"), os.Getenv("TRANCA_CONTAINER_IMAGE")
	if !p.setup.Reference || image == "" {
		return
	}
	args := []string{"docker"}
	if host := baseline.DockerHost(named); host != "" {
		args = append(args, "--host", host)
	}
	target := &suite.Against{Args: append(args, "run", "--rm", "--interactive", image, "python3", "-I", "-")}
	c := report.Column{
		Name: "docker run", Kind: report.ColumnReference,
		Command: strings.Join(target.Args, " "), Tool: target.Tool(ctx),
	}
	if err := target.Try(ctx, "import ctypes, json, resource\n"); err != nil {
		c.Missing = fmt.Sprintf("%s can't run Python with its standard library: %v", c.Command, err)
	}
	p.columns = append(p.columns, suite.Column{Column: c, Target: target, Python: true})
}

func (p *proof) tell(note string) {
	if p.setup.Progress != nil {
		p.setup.Progress(report.Progress{Note: note})
	}
}

// checkNames refuses names that no backend has.
func checkNames(names []string, all *backend.Registry) error {
	for _, name := range names {
		base, _, _ := strings.Cut(name, " (")
		if !slices.Contains(all.Names(), base) {
			return report.NoSuch("backend", name, all.Names())
		}
	}
	return nil
}

func (p *proof) wants(backend string) bool {
	return len(p.setup.Backends) == 0 || slices.ContainsFunc(p.setup.Backends, func(name string) bool {
		base, _, _ := strings.Cut(name, " (")
		return base == backend
	})
}

// addBackend adds the columns of a backend: one for each of its runtimes that
// works here, or one.
func (p *proof) addBackend(ctx context.Context, b tranca.Backend) {
	held, err := suite.Hold(b)
	if err != nil {
		p.missing(b, b.Name(), err)
		return
	}
	kept := held.All()[0]
	found, err := kept.Probe(ctx)
	if err != nil {
		p.missing(b, b.Name(), err)
		return
	}
	p.addColumn(held, b.Name(), "", found)
	runtimes, ok := tranca.As[tranca.RuntimeProber](kept)
	if !ok {
		return
	}
	for _, name := range rest(runtimeNames(found)) {
		column := fmt.Sprintf("%s (%s)", b.Name(), name)
		if !p.setup.Wants(column) {
			continue
		}
		found, err := runtimes.ProbeRuntime(ctx, name)
		if err != nil {
			p.missing(b, column, err)
			continue
		}
		p.addColumn(held, column, name, found)
	}
}

func (p *proof) missing(b tranca.Backend, column string, err error) {
	c := report.Column{Name: column, Kind: report.ColumnBackend, Level: backend.Level(b), Missing: err.Error()}
	p.columns = append(p.columns, suite.Column{Column: c})
}

// addColumn adds what a report is about.
func (p *proof) addColumn(held *backend.Registry, column, runtime string, found tranca.Report) {
	c := suite.Column{Column: report.Column{
		Name: column, Kind: report.ColumnBackend, Level: found.Level,
		Guarantees: found.Guarantees, Waived: p.waived(found),
	}}
	c.Python = inPython(p.waived(found))
	if column != subprocess {
		c.Target = p.box(held, column, runtime, found)
	}
	p.columns = append(p.columns, c)
}

// waived are the items that are waived: those that were named, and those that
// this host can't hold and that can be waived, since a column that is refused
// as a whole would show nothing. The report names them, and they are not
// promised.
func (p *proof) waived(found tranca.Report) []tranca.Item {
	waived := slices.Clone(p.setup.Waive)
	for _, item := range tranca.Waivable() {
		if !found.Holds(item) && !slices.Contains(waived, item) {
			waived = append(waived, item)
		}
	}
	return waived
}

// slack is what a run may take beyond its limit: the kill of a tree, on a host
// that other things share.
const slack = 15 * time.Second

func (p *proof) box(held *backend.Registry, column, runtime string, found tranca.Report) *suite.Box {
	name := held.All()[0].Name()
	waived, python := p.waived(found), ""
	if inPython(waived) {
		python = "python3"
	}
	kernel := ""
	if name == gvisor.Name {
		kernel = sentryspec.Process
	}
	return &suite.Box{
		Kernel: kernel,
		Engine: name == container.Name, OwnKernel: found.Level >= tranca.LevelGVisor,
		Python: python, Bare: column == subprocess, Backends: held, Images: imagestore.New(imagestore.Options{}), Program: p.program, Slack: slack,
		Policy: suitePolicy(name, runtime, found, waived),
		Config: engine.Config{Changes: func() (*changeset.Store, error) {
			return changeset.OpenStore(filepath.Join(p.dir, "changes"))
		}},
		Supervised: &suite.Supervised{
			Command: []string{"/proc/self/exe", cli.HostileSupervisor}, Env: os.Environ(), Column: column, Waive: p.setup.Waive,
		},
	}
}

// inPython reports whether the static program, whose runtime reserves much address
// space and uses little, can't run: where no control group bounds memory, each
// process has a limit of that.
func inPython(waived []tranca.Item) bool { return slices.Contains(waived, tranca.ItemMemory) }

func suitePolicy(name, runtime string, found tranca.Report, waived []tranca.Item) tranca.Policy {
	base := policy.Default()
	base.Floor, base.Backend, base.Runtime, base.Waive = found.Level, name, runtime, waived
	return base
}

// addAgainst adds somebody else's sandboxes.
func (p *proof) addAgainst(ctx context.Context) error {
	for _, template := range p.setup.Against {
		name, args, err := report.ParseCommand(template)
		if err != nil {
			return err
		}
		target := &suite.Against{Args: args}
		p.columns = append(p.columns, suite.Column{Target: target, Python: true, Column: report.Column{
			Name: name, Kind: report.ColumnAgainst, Command: template, Tool: target.Tool(ctx),
		}})
	}
	seen := map[string]bool{}
	for _, c := range p.columns {
		if seen[c.Name] {
			return fmt.Errorf("%w: two columns are called %q: name one by NAME=COMMAND", tranca.ErrInvalid, c.Name)
		}
		seen[c.Name] = true
	}
	return nil
}

var errNoTarget = errors.New("there is no such column in the disposable place")
