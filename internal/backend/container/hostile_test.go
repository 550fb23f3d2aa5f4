package container_test

import (
	"maps"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"tranca"
	"tranca/internal/backend/container"
	engineapi "tranca/internal/backend/container/docker"
	"tranca/internal/guest/bootspec"
	"tranca/internal/require"
)

// The hostile programs for containers: each row is one of the catalogue's. What
// it tries has to be denied in the sandbox, beside allowed acts that work, and
// has to be seen coming through with the guarantee taken away.

// hostile is one row.
type hostile struct {
	id, what string
	// tries are acts, "NAME" or "NAME|ARGUMENT".
	tries []string
	// controls take the guarantee away.
	controls []loosened
	// blind are tries that no control lets through on every host, with the
	// reason.
	blind map[string]string
}

// loosened is a way to take a guarantee away.
type loosened struct {
	what string
	// weaken changes what is asked of engine and agent. Nil runs the acts on
	// the bare host, as root.
	weaken func(*engineapi.Config, *bootspec.Spec)
	// comes are the tries that come through.
	comes []string
}

// twins are allowed acts on the paths of the hostile ones.
var twins = []string{"try=make file|/work", "try=make file|/tmp", "try=make file|/dev/shm", "try=read|/proc/self/status", "try=open write|/dev/null"}

func runHostile(t *testing.T, rows []hostile) {
	t.Helper()
	o, _ := docker.options(t)
	imageSpec{files: map[string]string{"etc/kept": "x"}, folders: []string{"open"}}.load(t, &o)
	b := open(t, o)
	defer b.Close(t.Context())
	for _, r := range rows {
		t.Run(r.id+" "+r.what, func(t *testing.T) { r.run(t, b) })
	}
}

func (r *hostile) run(t *testing.T, b tranca.Backend) {
	shown := maps.Clone(r.blind)
	if shown == nil {
		shown = map[string]string{}
	}
	got := playIn(t, b, r.tries, nil)
	for _, name := range r.tries {
		if got[name] == "" || got[name] == "escaped" {
			t.Errorf("%s: %q", name, got[name])
		}
	}
	for _, c := range r.controls {
		var loose map[string]string
		if c.weaken != nil {
			loose = playIn(t, b, c.comes, c.weaken)
		} else {
			loose = playBare(t, c.comes)
		}
		for _, name := range c.comes {
			shown[name] = c.what
			if loose[name] != "escaped" {
				t.Errorf("%s: without %s it is still %q", name, c.what, loose[name])
			}
		}
	}
	for _, name := range r.tries {
		if shown[name] == "" {
			t.Errorf("%s: no control lets it come through, so that it is denied shows nothing", name)
		}
	}
}

// playIn tries in a sandbox, in one program after another, so that what one act
// does to its process changes no other.
func playIn(t *testing.T, b tranca.Backend, tries []string, weaken func(*engineapi.Config, *bootspec.Spec)) map[string]string {
	t.Helper()
	container.Weaken(b, weaken)
	defer container.Weaken(b, nil)
	sb := create(t, b, testPolicy())
	defer sb.Close(t.Context())
	said, exit := run(t, sb, append([]string{"/bin/probe"}, twins...)...)
	if strings.Count(said, "\tescaped\n") != len(twins) {
		t.Errorf("allowed acts fail: %v\n%s", exit, said)
	}
	got := map[string]string{}
	for _, name := range tries {
		said, exit := run(t, sb, "/bin/probe", "try="+name)
		got[name] = verdict(said, name, exit.String())
	}
	return got
}

// playBare tries on the host.
func playBare(t *testing.T, tries []string) map[string]string {
	t.Helper()
	require.Root(t)
	got := map[string]string{}
	for _, name := range tries {
		cmd := exec.Command("/proc/self/exe", "try="+name)
		cmd.Env = append(os.Environ(), probeVariable+"=inside")
		cmd.Dir = t.TempDir()
		out, err := cmd.CombinedOutput()
		end := "exit 0"
		if err != nil {
			end = err.Error()
		}
		got[name] = verdict(string(out), name, end)
	}
	return got
}

func verdict(said, name, end string) string {
	for line := range strings.Lines(said) {
		if v, ok := strings.CutPrefix(strings.TrimSuffix(line, "\n"), name+"\t"); ok {
			return v
		}
	}
	return "it ended with " + end + ": " + said
}

func unfiltered(c *engineapi.Config, s *bootspec.Spec) {
	c.HostConfig.SecurityOpt = []string{"no-new-privileges", "seccomp=unconfined"}
	s.Filter, s.AgentFilter, s.Filtered = nil, nil, false
}

func unmasked(c *engineapi.Config, s *bootspec.Spec) {
	c.HostConfig.MaskedPaths = []string{}
	s.Audit = false
}

// onHostNetwork shares the host's network. Landlock keeps abstract sockets apart
// as well, so that goes with it.
func onHostNetwork(c *engineapi.Config, s *bootspec.Spec) {
	c.NetworkDisabled, c.HostConfig.NetworkMode = false, "host"
	s.Audit, s.Landlock = false, -1
}

// showing has the container show a folder of the host.
func showing(dir string) func(*engineapi.Config, *bootspec.Spec) {
	return func(c *engineapi.Config, _ *bootspec.Spec) {
		c.HostConfig.Mounts = append(c.HostConfig.Mounts, engineapi.Mount{Type: "bind", Source: dir, Target: dir, ReadOnly: true})
	}
}

func writable(c *engineapi.Config, s *bootspec.Spec) {
	c.HostConfig.ReadonlyRootfs = false
	s.Audit, s.Landlock = false, -1
}

func TestHostileKernel(t *testing.T) {
	const (
		sysctl = "a sysctl of the host refuses it too"
		module = "only in a kernel that has it"
	)
	byFilter := []string{
		"clone user", "clone user mount", "clone user net", "clone upper bits", "unshare", "setns user",
		"add_key", "keyctl", "request_key", "io_uring_setup", "io_uring_enter", "io_uring_register",
		"ptrace", "process_vm_readv", "process_vm_writev", "pidfd_getfd", "personality", "AF_NETLINK",
	}
	byRights := []string{"setns", "swapon", "reboot", "settimeofday", "syslog", "open_by_handle_at", "AF_PACKET", "raw IP"}
	runHostile(t, []hostile{
		{
			id: "KRN-01 KRN-03 KRN-04 KRN-05 KRN-06 KRN-07 KRN-09 MEM-08 NET-12", what: "ask the kernel for what no program needs",
			tries:    append(slices.Clone(byFilter), "bpf", "perf_event_open", "userfaultfd"),
			controls: []loosened{{"the filters", unfiltered, byFilter}},
			blind:    map[string]string{"bpf": sysctl, "perf_event_open": sysctl, "userfaultfd": sysctl},
		},
		{
			id: "KRN-08 FS-20 NET-09 NET-11", what: "administer the host, take raw sockets",
			tries:    append(slices.Clone(byRights), "init_module", "kexec_load", "acct", "quotactl", "AF_ALG", "AF_VSOCK", "ping"),
			controls: []loosened{{"any boundary", nil, byRights}},
			blind: map[string]string{
				"init_module": module, "kexec_load": module, "acct": module, "quotactl": module,
				"AF_ALG": module, "AF_VSOCK": module, "ping": sysctl,
			},
		},
		{
			id: "KRN-15", what: "have a right left over",
			tries: []string{
				"capability|CapEff", "capability|CapPrm", "capability|CapBnd", "capability|CapInh", "capability|CapAmb",
				"new privileges", "unfiltered", "same user", "become root",
			},
			controls: []loosened{{"any boundary", nil, []string{
				"capability|CapEff", "capability|CapPrm", "capability|CapBnd", "new privileges", "same user", "become root",
			}}},
			blind: map[string]string{
				"capability|CapInh": "a service may start with none", "capability|CapAmb": "a service may start with none",
				"unfiltered": "where the suite itself runs in a container it is filtered",
			},
		},
		{
			id: "CPU-13 MEM-05 MEM-11", what: "take more than a share",
			tries:    []string{"real time", "negative nice", "huge pages", "lower the OOM score"},
			controls: []loosened{{"any boundary", nil, []string{"negative nice"}}},
			blind: map[string]string{
				"real time": "a control group without real-time bandwidth refuses it too", "huge pages": "only where the host has set some aside",
				"lower the OOM score": "root itself may lack the right, in a container",
			},
		},
	})
}

func TestHostileFiles(t *testing.T) {
	t.Setenv("TRANCA_TEST_CANARY", "secret")
	secret := hostFolder(t)
	if err := os.WriteFile(secret+"/canary", []byte("secret"), 0o644); err != nil { //nolint:gosec // to be found
		t.Fatal(err)
	}
	socket := listenIn(t, secret)
	mark := startMarked(t)
	const (
		permission = "its owner is another user, whatever else holds"
		first      = "a host's first process may be closed to its root as well; process.TestHostileKernel has the same acts come through against a child"
	)
	runHostile(t, []hostile{
		{
			id: "FS-01 FS-05", what: "read a secret of the host, connect to its sockets",
			tries:    []string{"read|" + secret + "/canary", "dial unix|" + socket, "dial unix|/var/run/docker.sock", "list|" + secret},
			controls: []loosened{{"a tree of its own", showing(secret), []string{"read|" + secret + "/canary", "dial unix|" + socket, "list|" + secret}}},
			blind:    map[string]string{"dial unix|/var/run/docker.sock": "only where Docker is"},
		},
		{
			id: "FS-02", what: "see a variable of the host",
			tries:    []string{"variable|TRANCA_TEST_CANARY", "variable|HOSTNAME"},
			controls: []loosened{{"any boundary", nil, []string{"variable|TRANCA_TEST_CANARY"}}},
			blind:    map[string]string{"variable|HOSTNAME": "the engine gives it to the agent alone"},
		},
		{
			id: "FS-03 FS-04 KRN-07", what: "look into the first process, end it, see the host's",
			tries: []string{
				"read|/proc/1/environ", "open read|/proc/1/mem", "list|/proc/1/fd", "list|/proc/1/root", "read|/proc/1/maps",
				"end the first process", "see process|" + strings.ToUpper(mark),
			},
			controls: []loosened{{"any boundary", nil, []string{"see process|" + strings.ToUpper(mark)}}},
			blind: map[string]string{
				"read|/proc/1/environ": first, "open read|/proc/1/mem": first, "list|/proc/1/fd": first,
				"list|/proc/1/root": first, "read|/proc/1/maps": first, "end the first process": "on the host it would end it",
			},
		},
		{
			id: "FS-10", what: "open the kernel's own files",
			tries: []string{
				"open write|/proc/sys/kernel/core_pattern", "open write|/proc/sysrq-trigger", "open write|/proc/sys/kernel/modprobe",
				"read|/proc/keys", "read|/proc/interrupts", "read|/proc/kallsyms", "read|/proc/cmdline", "list|/sys", "read|/proc/kcore",
			},
			controls: []loosened{
				{"masks", unmasked, []string{"read|/proc/interrupts", "read|/proc/cmdline", "list|/sys"}},
				{"any boundary", nil, []string{"open write|/proc/sys/kernel/core_pattern"}},
			},
			blind: map[string]string{
				"open write|/proc/sysrq-trigger": "only in a kernel with it", "open write|/proc/sys/kernel/modprobe": "only in a kernel with modules",
				"read|/proc/keys": "a kernel may have no keys to show", "read|/proc/kallsyms": "only in a kernel with it", "read|/proc/kcore": "only in a kernel with it",
			},
		},
		{
			id: "FS-12 FS-13 FS-14", what: "devices, mounts, another root",
			tries: []string{
				"devices", "mknod", "mount", "remount", "umount", "pivot_root", "fsopen", "move_mount", "mount_setattr", "chroot",
			},
			controls: []loosened{{"any boundary", nil, []string{"mknod", "pivot_root", "fsopen", "move_mount", "mount_setattr", "chroot"}}},
			blind: map[string]string{
				"devices": "the host may itself be a container with few", "mount": "it would change the host",
				"remount": "it would change the host", "umount": "it would change the host",
			},
		},
		{
			id: "FS-15", what: "see control groups",
			tries:    []string{"group"},
			controls: []loosened{{"masks", unmasked, []string{"group"}}},
		},
		{
			id: "FS-09 DSK-04 DSK-05", what: "write outside of the declared places",
			tries: []string{
				"make file|/open", "make file|/", "make file|/etc", "make file|/bin", "make file|/.tranca", "make file|/dev", "make file|/run",
				"open write|/.tranca/agent", "open write|/bin/probe", "open write|/etc/kept", "open write|/proc/1/exe", "hard link|/bin/probe",
			},
			controls: []loosened{{"a read-only root", writable, []string{"make file|/open"}}},
			blind: map[string]string{
				"make file|/": permission, "make file|/etc": permission, "make file|/bin": permission, "make file|/.tranca": permission,
				"make file|/dev": permission, "make file|/run": permission, "open write|/.tranca/agent": permission,
				"open write|/bin/probe": permission, "open write|/etc/kept": permission, "open write|/proc/1/exe": permission,
				"hard link|/bin/probe": "it is another file system",
			},
		},
	})
}

func TestHostileNetwork(t *testing.T) {
	tcp, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer tcp.Close()
	name := "tranca-test-" + strings.ToLower(string(tranca.NewID()))
	abstract, err := net.Listen("unix", "@"+name)
	if err != nil {
		t.Fatal(err)
	}
	defer abstract.Close()
	runHostile(t, []hostile{
		{
			id: "NET-01 NET-07 NET-13 FS-05", what: "reach the host's loopback and its abstract sockets",
			tries:    []string{"dial tcp|" + tcp.Addr().String(), "dial abstract|" + name},
			controls: []loosened{{"a network of its own", onHostNetwork, []string{"dial tcp|" + tcp.Addr().String(), "dial abstract|" + name}}},
		},
		{
			id: "NET-06", what: "ask a metadata service",
			tries: []string{"dial tcp|169.254.169.254:80", "dial tcp|[fd00:ec2::254]:80"},
			blind: map[string]string{"dial tcp|169.254.169.254:80": "only in a cloud", "dial tcp|[fd00:ec2::254]:80": "only in a cloud"},
		},
	})
}

// TEN-04: two sandboxes have no objects of the kernel in common.
func TestHostileTenants(t *testing.T) {
	o, _ := docker.options(t)
	imageSpec{}.load(t, &o)
	b := open(t, o)
	defer b.Close(t.Context())
	const key = "77143920"
	meets := func() string {
		one, two := create(t, b, testPolicy()), create(t, b, testPolicy())
		defer one.Close(t.Context())
		defer two.Close(t.Context())
		made, _ := run(t, one, "/bin/probe", "try=make shared memory|"+key, "write=/work/token", "write=/tmp/token", "write=/dev/shm/token")
		if made != "make shared memory|"+key+"\tescaped\n<nil>\n<nil>\n<nil>\n" {
			t.Fatalf("the first says %q", made)
		}
		found, _ := run(t, two, "/bin/probe", "try=shared memory|"+key, "list=/work", "list=/tmp", "list=/dev/shm")
		return found
	}
	if found := meets(); !strings.HasPrefix(found, "shared memory|"+key+"\tdenied") || strings.Contains(found, "token") {
		t.Errorf("the second finds %q", found)
	}
	container.Weaken(b, func(c *engineapi.Config, s *bootspec.Spec) { c.HostConfig.IpcMode, s.Audit = "host", false })
	defer exec.Command("ipcrm", "-M", key).Run() //nolint:errcheck // of the control
	if found := meets(); !strings.HasPrefix(found, "shared memory|"+key+"\tescaped") {
		t.Errorf("with the host's objects the second finds %q", found)
	}
}

// hostFolder is a folder of the host that everybody may enter.
func hostFolder(t *testing.T) string {
	t.Helper()
	dir, err := os.MkdirTemp("/var/tmp", "hostile-")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	if err := os.Chmod(dir, 0o755); err != nil { //nolint:gosec // on purpose
		t.Fatal(err)
	}
	return dir
}

// startMarked starts a process of the host that has the returned mark among its
// arguments.
func startMarked(t *testing.T) string {
	t.Helper()
	mark := "mark-" + strings.ToLower(string(tranca.NewID()))
	cmd := exec.Command("sleep", "600") //nolint:gosec // fixed
	cmd.Args = []string{mark, "600"}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = cmd.Process.Kill(); _ = cmd.Wait() })
	return mark
}

func listenIn(t *testing.T, dir string) string {
	t.Helper()
	path := filepath.Join(dir, "service.sock")
	l, err := net.Listen("unix", path)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	if err := os.Chmod(path, 0o777); err != nil { //nolint:gosec // on purpose
		t.Fatal(err)
	}
	return path
}
