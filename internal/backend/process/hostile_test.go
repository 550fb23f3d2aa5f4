package process

import (
	"context"
	"crypto/rand"
	"maps"
	"os"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"tranca"
	"tranca/internal/hostiletest"
	"tranca/internal/require"
)

// The hostile programs. Each row of the tables in hostile_*_test.go is one of
// the catalogue's: a program that tries to get past a boundary in one or more
// ways, and a benign twin on the same path. Every attempt has to be denied in
// the sandbox, and has to be seen escaping with the boundary taken away.

// row is one hostile program.
type row struct {
	id, what string
	// needs are parts of the host without which the row shows nothing.
	needs []string
	// scene plants what the program looks for, and opens the policy as far as
	// the row needs. It is called anew for each run.
	scene func(*scene)
	// program is Python, after the prelude. It gets scene.vars as V.
	program string
	// after is a second program in the same sandbox; its lines join those of
	// the first.
	after string
	// holds take single layers away, under which it must be denied all the same.
	holds []control
	// controls take the boundary away.
	controls []control
	// blind are attempts that no control lets escape on every host, each with
	// the reason.
	blind map[string]string
	// check is a further look from the host, after the sandbox is gone.
	check func(*scene, *hostiletest.Report)
}

// control runs a row with the boundary taken away.
type control struct {
	what string
	// weaken changes the sandbox and policy its policy. Where a control has
	// none of weaken, policy and vars, the program runs on the bare host, as a
	// child of the test.
	weaken weakening
	policy func(*tranca.Policy)
	// vars change what the program is given: another target for the same acts.
	vars map[string]any
	// root: only root can do without the boundary.
	root bool
	// escapes are the attempts that come out; nil stands for all but the blind.
	escapes []string
}

// weakening takes something away from a sandbox before it is made.
type weakening func(*scene, *plan)

// scene is what a row plays in.
type scene struct {
	testing.TB
	b      *Backend
	policy tranca.Policy
	// canary is planted on the host and told to nobody inside; mark is in the
	// arguments of everything that the row starts.
	canary, mark string
	vars         map[string]any
	// effect decides an attempt by what it did on the host, whatever the
	// program says.
	effect map[string]func() bool
	blind  map[string]string
	dir    string // a folder on the host, of the row's own
	bare   bool
	tty    *os.File // the controlling terminal of a bare program
	// terminal gives the program in the sandbox one of the sandbox's own.
	terminal *tranca.TerminalSize
}

// runRows runs a table.
func runRows(t *testing.T, rows []row) {
	t.Helper()
	b := newBackend(t)
	for _, r := range rows {
		t.Run(r.id+" "+r.what, func(t *testing.T) { r.run(t, b) })
	}
}

func (r *row) run(t *testing.T, b *Backend) {
	for _, part := range r.needs {
		b.needs(t, part)
	}
	s := r.newScene(t, b, false)
	got := s.play(r, nil)
	got.Contained(t, "in the sandbox")
	if r.check != nil {
		r.check(s, got)
	}
	var shown []string
	for _, c := range r.controls {
		shown = append(shown, got.Expected(c.escapes, s.blind)...)
	}
	got.Shown(t, shown, s.blind)
	for _, c := range r.holds {
		t.Run("also without "+c.what, func(t *testing.T) {
			r.newScene(t, b, false).play(r, c.weaken).Contained(t, "without "+c.what)
		})
	}
	for _, c := range r.controls {
		t.Run("without "+c.what, func(t *testing.T) { r.control(t, b, c, got) })
	}
}

// control runs the row once more and wants to see it escape.
func (r *row) control(t *testing.T, b *Backend, c control, contained *hostiletest.Report) {
	if c.root {
		require.Root(t)
	}
	s := r.newScene(t, b, c.bare())
	maps.Copy(s.vars, c.vars)
	if c.policy != nil {
		c.policy(&s.policy)
	}
	s.play(r, c.weaken).Escaped(t, c.what, contained.Expected(c.escapes, s.blind))
}

// bare reports whether the control runs on the host itself.
func (c *control) bare() bool { return c.weaken == nil && c.policy == nil && c.vars == nil }

func (r *row) newScene(t testing.TB, b *Backend, bare bool) *scene {
	t.Helper()
	s := &scene{
		TB: t, b: b, policy: testPolicy(b), bare: bare,
		canary: "canary-" + rand.Text(), mark: "mark-" + rand.Text(),
		effect: map[string]func() bool{}, blind: map[string]string{},
	}
	maps.Copy(s.blind, r.blind)
	s.dir = hostiletest.OpenFolder(t)
	s.vars = map[string]any{
		"mark": s.mark, "bare": bare, "root": os.Geteuid() == 0, "nr": callNumbers,
		"single": b.host.IDs == nil,
	}
	if r.scene != nil {
		r.scene(s)
	}
	return s
}

// play runs the row's programs and reads what they tell.
func (s *scene) play(r *row, weaken weakening) *hostiletest.Report {
	s.Helper()
	got := &hostiletest.Report{}
	programs := []string{r.program}
	if r.after != "" {
		programs = append(programs, r.after)
	}
	if s.bare {
		for _, p := range programs {
			s.playBare(p, got)
		}
	} else {
		sb := s.open(weaken)
		for _, p := range programs {
			s.playIn(sb, p, got)
		}
		closeBox(s, sb)
	}
	got.Decide(s.effect)
	return got
}

// open makes a sandbox of the scene's policy.
func (s *scene) open(weaken weakening) tranca.Sandbox {
	s.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	if weaken != nil {
		s.b.weaken = func(pl *plan) { weaken(s, pl) }
	}
	defer func() { s.b.weaken = nil }()
	sb, err := s.b.Create(ctx, tranca.Spec{ID: "i00000000000000000000", Policy: s.policy})
	if err != nil {
		s.Fatal(err)
	}
	return sb
}

func closeBox(t testing.TB, sb tranca.Sandbox) {
	t.Helper()
	hostiletest.Close(t, "sandbox", sb)
}

// argv is the command that runs a program of the suite.
func (s *scene) argv(program string) []string {
	s.Helper()
	return hostiletest.Argv(s, program, s.vars)
}

func (s *scene) playIn(sb tranca.Sandbox, program string, got *hostiletest.Report) {
	s.Helper()
	got.Take(s.runIn(sb, s.argv(program)...), s.canary)
}

// runIn runs a command to its end.
func (s *scene) runIn(sb tranca.Sandbox, args ...string) hostiletest.Outcome {
	s.Helper()
	return ended(s, hostiletest.Run(s, sb, tranca.Command{Args: args, Terminal: s.terminal}))
}

// ended ends the test where nobody knows how a command ended.
func ended(t testing.TB, o hostiletest.Outcome) hostiletest.Outcome {
	t.Helper()
	if o.Err != nil {
		t.Fatalf("wait: %v\n%s", o.Err, o.Stderr)
	}
	return o
}

// playBare runs a program as a child of the test, with nothing around it.
func (s *scene) playBare(program string, got *hostiletest.Report) {
	s.Helper()
	got.Take(hostiletest.RunBare(s, s.argv(program), s.tty), s.canary)
}

// needs asks for a part of the host, as this backend found it.
func (b *Backend) needs(t testing.TB, part string) {
	t.Helper()
	g := map[string]tranca.Item{
		"memory limit": tranca.ItemMemory, "pids limit": tranca.ItemPIDs, "cpu limit": tranca.ItemCPUs,
		"cpu time limit": tranca.ItemCPUTime,
	}
	switch item := g[part]; {
	case part == "root":
		require.Root(t)
	case part == "ids":
		require.Check(t, "subids", b.host.IDs != nil, b.host.IDsMissing)
	case item != "":
		require.Check(t, "cgroup", b.report.Holds(item), b.report.Find(item).Missing)
	default:
		t.Fatalf("no part %q", part)
	}
}

// unfiltered and unlocked take single layers away. The agent's own filter goes
// with the code's, which inherits it.
func unfiltered(s *scene, pl *plan) { s.b.switches()[tranca.ItemSyscalls](pl) }

func unlocked(_ *scene, pl *plan) { pl.Boot.Landlock = -1 }

func all(weaken ...weakening) weakening {
	return func(s *scene, pl *plan) {
		for _, w := range weaken {
			w(s, pl)
		}
	}
}

// callNumbers are the system calls that programs make by number.
var callNumbers = map[string]int{
	"unshare": unix.SYS_UNSHARE, "setns": unix.SYS_SETNS, "clone": unix.SYS_CLONE, "clone3": unix.SYS_CLONE3,
	"add_key": unix.SYS_ADD_KEY, "request_key": unix.SYS_REQUEST_KEY, "keyctl": unix.SYS_KEYCTL,
	"bpf": unix.SYS_BPF, "perf_event_open": unix.SYS_PERF_EVENT_OPEN, "userfaultfd": unix.SYS_USERFAULTFD,
	"io_uring_setup": unix.SYS_IO_URING_SETUP, "io_uring_enter": unix.SYS_IO_URING_ENTER,
	"io_uring_register": unix.SYS_IO_URING_REGISTER, "ptrace": unix.SYS_PTRACE,
	"process_vm_readv": unix.SYS_PROCESS_VM_READV, "process_vm_writev": unix.SYS_PROCESS_VM_WRITEV,
	"pidfd_open": unix.SYS_PIDFD_OPEN, "pidfd_getfd": unix.SYS_PIDFD_GETFD,
	"init_module": unix.SYS_INIT_MODULE, "kexec_load": unix.SYS_KEXEC_LOAD, "swapon": unix.SYS_SWAPON,
	"swapoff": unix.SYS_SWAPOFF, "reboot": unix.SYS_REBOOT, "settimeofday": unix.SYS_SETTIMEOFDAY,
	"syslog": unix.SYS_SYSLOG, "acct": unix.SYS_ACCT, "quotactl": unix.SYS_QUOTACTL,
	"delete_module": unix.SYS_DELETE_MODULE, "clock_settime": unix.SYS_CLOCK_SETTIME,
	"personality": unix.SYS_PERSONALITY, "mount": unix.SYS_MOUNT, "umount2": unix.SYS_UMOUNT2,
	"pivot_root": unix.SYS_PIVOT_ROOT, "fsopen": unix.SYS_FSOPEN, "fsconfig": unix.SYS_FSCONFIG,
	"fsmount": unix.SYS_FSMOUNT, "open_tree": unix.SYS_OPEN_TREE, "move_mount": unix.SYS_MOVE_MOUNT,
	"mount_setattr": unix.SYS_MOUNT_SETATTR, "chroot": unix.SYS_CHROOT, "openat2": unix.SYS_OPENAT2,
	"fchmodat2": unix.SYS_FCHMODAT2, "mknodat": unix.SYS_MKNODAT, "open_by_handle_at": unix.SYS_OPEN_BY_HANDLE_AT,
	"name_to_handle_at": unix.SYS_NAME_TO_HANDLE_AT, "mlockall": unix.SYS_MLOCKALL,
	"memfd_create": unix.SYS_MEMFD_CREATE, "execveat": unix.SYS_EXECVEAT, "shmget": unix.SYS_SHMGET,
	"shmat": unix.SYS_SHMAT, "shmctl": unix.SYS_SHMCTL, "msgget": unix.SYS_MSGGET, "msgctl": unix.SYS_MSGCTL,
	"mq_open": unix.SYS_MQ_OPEN, "mq_unlink": unix.SYS_MQ_UNLINK, "sched_setscheduler": unix.SYS_SCHED_SETSCHEDULER,
	"prctl": unix.SYS_PRCTL, "capset": unix.SYS_CAPSET, "setresuid": unix.SYS_SETRESUID, "ioprio_set": unix.SYS_IOPRIO_SET,
	"sync": unix.SYS_SYNC, "syncfs": unix.SYS_SYNCFS, "socket": unix.SYS_SOCKET, "setgroups": unix.SYS_SETGROUPS,
	"ioctl": unix.SYS_IOCTL, "linkat": unix.SYS_LINKAT, "renameat2": unix.SYS_RENAMEAT2,
}
