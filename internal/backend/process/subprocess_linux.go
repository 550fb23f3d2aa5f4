package process

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path"
	"path/filepath"
	"strconv"
	"strings"
	"sync"

	"golang.org/x/sys/unix"

	"tranca"
	"tranca/internal/confine"
	"tranca/internal/guest/bootspec"
	"tranca/internal/guest/host"
	"tranca/internal/linux/cleanup"
	"tranca/internal/linux/forkexec"
	"tranca/internal/machine"
	"tranca/internal/weaken"
)

// SubprocessName is the weaker rung's name in policies and flags.
const SubprocessName = "subprocess"

// nobody is the user that the weaker rung runs code as when the supervisor is
// root.
const nobody = 65534

// Subprocess is the weaker rung: a child process with resource limits, a
// temporary folder, a clean environment and no network. It hides no files and
// shares the host's processes and kernel. It is for code that one almost
// trusts, and is never chosen unless it is named.
type Subprocess struct {
	image   *os.File
	spawner *confine.Spawner
	root    bool
	report  tranca.Report

	life machine.Lifetime

	mu    sync.Mutex
	swept map[string]bool // temporary folders
}

var _ tranca.Backend = (*Subprocess)(nil)

// NewSubprocess makes the weaker rung.
func NewSubprocess() (*Subprocess, error) {
	root := os.Geteuid() == 0
	img, err := confine.AgentImage()
	if err != nil {
		return nil, err
	}
	confine.RaiseDescriptors()
	s := &Subprocess{image: img, spawner: confine.NewSpawner(), root: root, swept: map[string]bool{}}
	s.report = tranca.Report{
		Backend: SubprocessName, Level: tranca.LevelSubprocess, Guarantees: s.guarantees(),
		Facts: map[string]string{"kernel": confine.KernelRelease(), "user id": strconv.Itoa(os.Geteuid())},
	}
	return s, nil
}

// Name returns "subprocess".
func (s *Subprocess) Name() string { return SubprocessName }

// Level returns the level that the backend has wherever it runs.
func (s *Subprocess) Level() tranca.Level { return tranca.LevelSubprocess }

// Attach is always [tranca.ErrGone].
func (s *Subprocess) Attach(_ context.Context, id tranca.ID) (tranca.Sandbox, error) {
	return nil, fmt.Errorf("%w: sandbox %s: a subprocess dies with the process that made it", tranca.ErrGone, id)
}

func (s *Subprocess) guarantees() []tranca.Guarantee {
	held := func(item tranca.Item, mechanism string) tranca.Guarantee {
		return tranca.Guarantee{Item: item, Held: true, Mechanism: mechanism}
	}
	lack := func(item tranca.Item, what string) tranca.Guarantee {
		return tranca.Guarantee{Item: item, Missing: "a subprocess " + what, Mend: "choose --backend process"}
	}
	user := lack(tranca.ItemUser, "of an ordinary user runs as that user")
	if s.root {
		user = held(tranca.ItemUser, "user nobody, which all subprocesses share")
	}
	return []tranca.Guarantee{
		held(tranca.ItemIsolation, "a child process; it shares the host's kernel, processes and files"),
		lack(tranca.ItemFiles, "sees the host's files as its user does, or those of a chroot"),
		lack(tranca.ItemMounts, "has no mounts of its own"),
		lack(tranca.ItemMountDisk, "has no mounts of its own"),
		lack(tranca.ItemProtect, "has no mounts of its own"),
		lack(tranca.ItemProcesses, "sees the host's processes, and may signal those of its user"),
		lack(tranca.ItemIPC, "shares the host's IPC"),
		held(tranca.ItemNetwork, "own network namespace with nothing but loopback"),
		user,
		held(tranca.ItemPrivileges, "no_new_privs and no capability"),
		lack(tranca.ItemSyscalls, "may make every system call of its user"),
		lack(tranca.ItemLandlock, "is not restricted by Landlock"),
		lack(tranca.ItemDevices, "sees the host's devices"),
		held(tranca.ItemEnvironment, "own environment for each program"),
		lack(tranca.ItemHostname, "sees the host's name"),
		lack(tranca.ItemLifetime, "can leave its parent by making new sessions, and may then outlive a killed supervisor"),
		held(tranca.ItemWall, "monotonic clock of the supervisor, then kill of the programs"),
		held(tranca.ItemCPUTime, "RLIMIT_CPU for each process"),
		lack(tranca.ItemCPUs, "has no share of its own"),
		{Item: tranca.ItemMemory, Missing: "RLIMIT_AS bounds each process, nothing bounds the tree", Mend: "choose --backend process"},
		lack(tranca.ItemPIDs, "shares its user's count of processes"),
		held(tranca.ItemOpenFiles, "RLIMIT_NOFILE"),
		held(tranca.ItemFileSize, "RLIMIT_FSIZE"),
		lack(tranca.ItemDisk, "writes to the host's disk"),
		lack(tranca.ItemInodes, "writes to the host's disk"),
		held(tranca.ItemOutput, "the supervisor keeps the first bytes of each stream and drains the rest"),
	}
}

// Report says what was found when the backend was made. See [tranca.Reporter].
func (s *Subprocess) Report() tranca.Report { return s.report }

// Probe starts a trial.
func (s *Subprocess) Probe(ctx context.Context) (tranca.Report, error) {
	if err := s.life.Enter(SubprocessName); err != nil {
		return s.report, err
	}
	defer s.life.Leave()
	trial, err := s.boot(ctx, trialPolicy())
	if err != nil {
		return s.report, err
	}
	// Also when the caller has gone: nothing of the trial may stay.
	return s.report, trial.Close(context.WithoutCancel(ctx))
}

// Create starts an agent in a folder of its own. See [tranca.Backend].
func (s *Subprocess) Create(ctx context.Context, spec tranca.Spec) (tranca.Sandbox, error) {
	if err := s.life.Enter(SubprocessName); err != nil {
		return nil, err
	}
	b, err := s.boot(ctx, &spec.Policy)
	if err != nil {
		s.life.Leave()
		return nil, err
	}
	b.release = s.life.Leave
	sb, err := host.New(b, spec)
	if err != nil {
		return nil, errors.Join(err, b.Close(context.WithoutCancel(ctx)))
	}
	return sb, nil
}

func (s *Subprocess) boot(ctx context.Context, p *tranca.Policy) (*plainBox, error) {
	if len(p.Mounts) > 0 {
		return nil, &tranca.RefusalError{Backend: SubprocessName, Problems: []tranca.Problem{{
			Item: tranca.ItemMounts, Asked: "mount " + p.Mounts[0].Source,
			Missing: "a subprocess has no mounts of its own: it sees the host's files", Mend: "choose --backend process",
		}}}
	}
	var cu cleanup.Stack
	defer cu.Clean()
	if p.Chroot != "" && !s.root {
		return nil, &tranca.RefusalError{Backend: SubprocessName, Problems: []tranca.Problem{{
			Item: tranca.ItemFiles, Asked: "chroot to " + p.Chroot, Missing: "only root may change the root",
			Mend: "run it as root, or choose --backend process, which needs no chroot",
		}}}
	}
	home, err := s.makeFolder(p.Chroot)
	if err != nil {
		return nil, err
	}
	cu.Add(func() { _ = home.remove() })
	pl := &plainPlan{spec: s.spec(p, home.path), home: home, limits: p.Limits, spaces: unix.CLONE_NEWNET}
	if !s.root {
		pl.spaces |= unix.CLONE_NEWUSER
	}
	if weaken.Enabled {
		s.takeAway(pl)
	}
	m := &plainBox{limits: pl.limits, home: home, limit: make(chan tranca.Reason, 1), end: confine.NewDestruction()}
	a, err := confine.StartAgent(ctx, s.spawner.Spawn, pl.spec, func(files []*os.File) (*forkexec.Script, error) {
		return s.script(pl, files), nil
	}, s.mapUser)
	if err != nil {
		return nil, confine.Refusal(SubprocessName, s.root, err)
	}
	m.agent, m.stream, m.diagnosis = a.Child, a.Stream, a.Diagnosis
	m.pid = a.Child.PID
	for _, item := range tranca.Items() {
		if g := s.report.Find(item); g.Held {
			m.enforcement = append(m.enforcement, tranca.Enforcement{Item: item, Mechanism: g.Mechanism, Status: tranca.StatusEnforced})
		} else {
			m.enforcement = append(m.enforcement, tranca.Enforcement{Item: item, Mechanism: "not enforced: " + g.Missing, Status: tranca.StatusWaived})
		}
	}
	cu.Release()
	return m, nil
}

// makeFolder makes the sandbox's folder, which only the code's user enters, and
// sweeps what others left beside it.
func (s *Subprocess) makeFolder(root string) (*plainFolder, error) {
	owner := os.Geteuid()
	if s.root {
		owner = nobody
	}
	dir := filepath.Join(root, os.TempDir())
	s.mu.Lock()
	swept := s.swept[dir]
	s.swept[dir] = true
	s.mu.Unlock()
	if !swept {
		sweepPlainFolders(dir, owner)
	}
	return newPlainFolder(dir, owner)
}

// spec says what the agent does. The policy's /work is the temporary folder.
func (s *Subprocess) spec(p *tranca.Policy, home string) *bootspec.Spec {
	inside := strings.TrimPrefix(home, p.Chroot)
	workdir := p.Workdir
	if rest, ok := strings.CutPrefix(workdir, "/work"); ok && (rest == "" || rest[0] == '/') {
		workdir = path.Join(inside, rest)
	}
	q := p.Clone()
	for k, v := range map[string]string{"HOME": inside, "TMPDIR": inside} {
		if _, set := q.Env[k]; !set {
			if q.Env == nil {
				q.Env = map[string]string{}
			}
			q.Env[k] = v
		}
	}
	spec := &bootspec.Spec{
		Plain: true, Chroot: p.Chroot,
		CodeUID: nobody, CodeGID: nobody, AgentUID: nobody, Landlock: -1,
		Env: confine.Environment(&q), Path: confine.SearchPath, Workdir: workdir,
		Rlimits: confine.Rlimits(p.Limits, confine.PerProcess{Memory: true, CPU: true}),
	}
	if !s.root {
		spec.CodeUID, spec.CodeGID = uint32(os.Geteuid()), uint32(os.Getegid())
	}
	return spec
}

// plainPlan is a sandbox of the weaker rung before it is made.
type plainPlan struct {
	spec   *bootspec.Spec
	home   *plainFolder
	limits tranca.Limits
	spaces uintptr // the namespaces, as clone flags
}

func (s *Subprocess) script(pl *plainPlan, files []*os.File) *forkexec.Script {
	script := forkexec.New(pl.spaces).WithPIDFD()
	script.DefaultSignals()
	script.Setsid()
	// No death signal: no namespace ends the programs with the agent, so it
	// must live on for a moment when its supervisor dies, to do it.
	var fds []int
	for _, f := range files {
		fds = append(fds, int(f.Fd()))
	}
	moved := script.Files(fds, int(s.image.Fd()))
	if !s.root {
		script.Capabilities(1 << unix.CAP_NET_ADMIN)
		script.Ambient(1 << unix.CAP_NET_ADMIN)
	}
	if !pl.spec.Omit.Has(bootspec.Privileges) {
		script.NoNewPrivileges()
	}
	script.ExecFD(moved[0], []string{"init"}, confine.AgentEnv)
	return script
}

// mapUser keeps the caller's own user in the user namespace that an
// unprivileged network namespace needs.
func (s *Subprocess) mapUser(_ context.Context, pid int) error {
	if s.root {
		return nil
	}
	uid, gid := uint32(os.Geteuid()), uint32(os.Getegid())
	return confine.WriteMaps(pid, []confine.IDMap{{Inside: uid, Outside: uid}}, []confine.IDMap{{Inside: gid, Outside: gid}}, false)
}

// Close waits for the sandboxes and frees what the backend holds. See
// [Backend.Close].
func (s *Subprocess) Close(ctx context.Context) error {
	return s.life.Close(ctx, SubprocessName, func() error {
		s.spawner.Close()
		return s.image.Close()
	})
}
