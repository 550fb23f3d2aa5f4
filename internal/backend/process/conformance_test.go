package process_test

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"tranca"
	"tranca/backendtest"
	"tranca/internal/backend/process"
	"tranca/internal/hostiletest"
	"tranca/internal/policy"
	"tranca/internal/require"
)

func TestProcess(t *testing.T) {
	b, err := process.New(process.Options{})
	if err != nil {
		t.Fatal(err)
	}
	report, err := b.Probe(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if err := b.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	// What this host can't enforce for this user is waived by name, and not
	// expected.
	lacking := map[tranca.Item][]backendtest.Ability{
		tranca.ItemMemory:  {backendtest.EndsByMemory, backendtest.BoundsTreeMemory, backendtest.CountsUsage},
		tranca.ItemCPUTime: {backendtest.EndsByCPU, backendtest.BoundsTreeCPU, backendtest.CountsUsage},
		tranca.ItemPIDs:    {backendtest.BoundsProcesses, backendtest.SeesProcessLimit},
	}
	expect := backendtest.Expect{
		Environment: []string{"HOME", "LANG", "LOGNAME", "PATH", "TMPDIR", "USER"},
	}
	for item, abilities := range lacking {
		if !report.Holds(item) {
			expect.Lacks = append(expect.Lacks, abilities...)
		}
	}
	if report.Facts["cgroup"] == "none" {
		expect.Lacks = append(expect.Lacks, backendtest.SeesProcessLimit)
	}
	expect.Policy = func(p *tranca.Policy) {
		p.Waive = append(p.Waive, hostiletest.Lacking(&report)...)
	}
	backendtest.Run(t, func(t *testing.T) tranca.Backend {
		b, err := process.New(process.Options{})
		if err != nil {
			t.Fatal(err)
		}
		return b
	}, expect)
}

func TestSubprocess(t *testing.T) {
	expect := backendtest.Expect{
		Environment: []string{"HOME", "LANG", "LOGNAME", "PATH", "TMPDIR", "USER"},
		Lacks: []backendtest.Ability{
			backendtest.EndsByMemory, backendtest.BoundsTreeMemory, backendtest.BoundsTreeCPU,
			backendtest.BoundsProcesses, backendtest.SeesProcessLimit, backendtest.BoundsDisk,
			backendtest.BoundsInodes, backendtest.CountsUsage, backendtest.OwnWorkdir,
		},
		Policy: func(p *tranca.Policy) {
			p.Floor, p.Backend = tranca.LevelSubprocess, process.SubprocessName
		},
	}
	if os.Geteuid() == 0 {
		t.Chdir("/")
	}
	backendtest.Run(t, func(t *testing.T) tranca.Backend {
		b, err := process.NewSubprocess()
		if err != nil {
			t.Fatal(err)
		}
		return b
	}, expect)
}

// Under a chroot programs see its tree and nothing else of the host's.
func TestSubprocessInAChroot(t *testing.T) {
	require.Root(t)
	ldd := require.Program(t, "ldd")
	root := t.TempDir()
	if err := os.Chmod(root, 0o755); err != nil {
		t.Fatal(err)
	}
	for _, dir := range []string{"bin", "tmp", "proc", "dev"} {
		if err := os.Mkdir(filepath.Join(root, dir), 0o777); err != nil {
			t.Fatal(err)
		}
	}
	if err := unix.Mknod(filepath.Join(root, "dev/null"), unix.S_IFCHR|0o666, int(unix.Mkdev(1, 3))); err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(filepath.Join(root, "dev/null"), 0o666); err != nil {
		t.Fatal(err)
	}
	needed, err := exec.Command(ldd, "/bin/sh").Output()
	if err != nil {
		t.Fatal(err)
	}
	for _, word := range append(strings.Fields(string(needed)), "/bin/sh") {
		if filepath.IsAbs(word) {
			copyFile(t, word, filepath.Join(root, word))
		}
	}
	b, err := process.NewSubprocess()
	if err != nil {
		t.Fatal(err)
	}
	defer b.Close(t.Context())
	p := policy.Default()
	p.Floor, p.Backend, p.Chroot = tranca.LevelSubprocess, process.SubprocessName, root
	sb, err := b.Create(t.Context(), tranca.Spec{ID: tranca.NewID(), Policy: p})
	if err != nil {
		t.Fatal(err)
	}
	defer sb.Close(t.Context())
	var out bytes.Buffer
	proc, err := sb.Start(t.Context(), tranca.Command{Args: []string{"/bin/sh", "-c", "echo /*; echo x >$HOME/f; read y <$HOME/f; echo $y"}, Stdout: &out, Stderr: &out})
	if err != nil {
		t.Fatal(err)
	}
	if exit, err := proc.Wait(t.Context()); err != nil || !exit.Success() {
		t.Fatalf("%v %v %s", exit, err, out.String())
	}
	if !regexp.MustCompile(`^/bin /dev( /lib\S*)* /proc /tmp\nx\n$`).MatchString(out.String()) {
		t.Errorf("it sees %q", out.String())
	}
}

func copyFile(t *testing.T, from, to string) {
	t.Helper()
	content, err := os.ReadFile(from)
	if err == nil {
		err = os.MkdirAll(filepath.Dir(to), 0o755)
	}
	if err == nil {
		err = os.WriteFile(to, content, 0o755)
	}
	if err != nil {
		t.Fatal(err)
	}
}
