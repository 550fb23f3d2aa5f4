package cgroup

import (
	"encoding/json"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/sys/unix"

	"tranca"
	"tranca/internal/linux/supervisor"
	"tranca/internal/require"
)

func TestFindHoldsAll(t *testing.T) {
	tree := needTree(t, Options{})
	s := tree.Support()
	for _, f := range []Feature{s.Memory, s.PIDs, s.CPU, s.CPUTime, s.Kill} {
		if !strings.HasPrefix(f.Mechanism, "cgroup v") || f.Missing != "" {
			t.Errorf("%+v", f)
		}
	}
	if !slices.Contains([]string{"v1", "v2", "hybrid"}, s.Version) {
		t.Errorf("version %q", s.Version)
	}
}

func TestFindRefusesOptions(t *testing.T) {
	for _, o := range []Options{
		{}, {ID: "../../etc"}, {ID: "0123456789abcdef", Paths: []string{"relative"}},
		{ID: "0123456789abcdef", Paths: []string{"/sys/fs/cgroup/../x"}},
	} {
		if _, err := Find(o); !errors.Is(err, tranca.ErrInvalid) {
			t.Errorf("%+v: %v", o, err)
		}
	}
	failed := errors.New("no notes today")
	// A scope of systemd would go by itself, and is not looked for here.
	tree, err := Find(Options{ID: "0123456789abcdef", Bus: "none", Note: func(string) error { return failed }})
	if err != nil {
		t.Fatal(err)
	}
	defer tree.Close()
	// Nothing is made that could not be swept.
	if left := folders(t, "0123456789abcdef"); len(left) > 0 || tree.Support().Memory.Held {
		t.Errorf("made without a note: %v, %+v", left, tree.Support())
	}
}

// helpSupport prints what is found when the cgroup mounts are as HIDE says.
func helpSupport() error {
	text, err := os.ReadFile("/proc/self/mountinfo")
	if err != nil {
		return err
	}
	mounts, err := parseMounts(string(text))
	if err != nil {
		return err
	}
	if err := unix.Mount("", "/", "", unix.MS_REC|unix.MS_PRIVATE, ""); err != nil {
		return err
	}
	for _, m := range slices.Backward(mounts) {
		if os.Getenv("HIDE") == "all" {
			err = unix.Unmount(m.point, unix.MNT_DETACH)
		} else {
			err = unix.Mount("", m.point, "", unix.MS_REMOUNT|unix.MS_BIND|unix.MS_RDONLY, "")
		}
		if err != nil {
			return &os.PathError{Op: "hide", Path: m.point, Err: err}
		}
	}
	tree, err := Find(Options{ID: "0123456789abcdef", Bus: "none"})
	if err != nil {
		return err
	}
	defer tree.Close()
	return json.NewEncoder(os.Stdout).Encode(tree.Support())
}

// A container's tree is often mounted read-only, which root's rights and the
// files' modes do not show.
func TestFindInReadOnlyTree(t *testing.T) {
	s := supportWith(t, "write")
	for name, f := range map[string]Feature{"memory": s.Memory, "pids": s.PIDs, "cpu": s.CPU, "time": s.CPUTime, "kill": s.Kill} {
		if f.Held || f.Missing == "" || f.Mend == "" {
			t.Errorf("%s: %+v", name, f)
		}
	}
	if !strings.Contains(s.Memory.Missing, "read-only") || s.Version != "none" {
		t.Errorf("%+v", s)
	}
}

func TestFindWithoutMounts(t *testing.T) {
	s := supportWith(t, "all")
	want := "no cgroup file system with controller memory is mounted"
	if s.Memory.Missing != want || s.Memory.Mend == "" || s.Kill.Held {
		t.Errorf("%+v", s)
	}
}

func supportWith(t *testing.T, hide string) Support {
	t.Helper()
	require.Root(t)
	cmd := exec.Command("/proc/self/exe")
	cmd.Env = append(os.Environ(), helperEnv+"=support", "HIDE="+hide)
	cmd.SysProcAttr = &syscall.SysProcAttr{Cloneflags: unix.CLONE_NEWNS}
	out, err := cmd.Output()
	if err != nil {
		t.Fatal(err, string(out))
	}
	var s Support
	if err := json.Unmarshal(out, &s); err != nil {
		t.Fatal(err)
	}
	return s
}

func TestExplain(t *testing.T) {
	for name, c := range map[string]struct {
		f    finder
		v2   bool
		err  error
		want string // in Missing
		mend string
	}{
		"container": {finder{}, false, unix.EROFS, "read-only", "run the container with"},
		"user, v1":  {finder{euid: 1000}, false, unix.EACCES, "may not make groups", "as root: chown 1000 /cg"},
		"user, v2":  {finder{euid: 1000}, true, unix.EACCES, "may not make groups", "systemd-run --user --scope"},
		"WSL":       {finder{euid: 1000, wsl: true}, true, unix.EACCES, "may not make groups", "systemd=true"},
		"crowded":   {finder{euid: 1000}, true, unix.EBUSY, "other processes", "systemd-run --user --scope"},
		"old":       {finder{}, true, unix.ENOENT, "the kernel or the group above lacks it", ""},
		"bounded":   {finder{}, true, unix.EAGAIN, "", "cgroup.max.descendants"},
	} {
		got := c.f.explain("/cg", c.v2, &os.PathError{Op: "mkdir", Path: "/cg/x", Err: c.err})
		if got.Held || !strings.Contains(got.Missing, c.want) || !strings.Contains(got.Missing, "/cg/x") ||
			!strings.Contains(got.Mend, c.mend) || (c.mend == "" && got.Mend != "") {
			t.Errorf("%s: %+v", name, got)
		}
	}
}

func TestSwapWithoutAccounting(t *testing.T) {
	// A folder without memory.swap.max, as of a kernel that doesn't account.
	dir, err := openFolder(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	defer dir.Close()
	f := finder{swap: true}
	for _, v2 := range []bool{false, true} {
		if got := f.tryMemory(place{dir, "."}, v2); got.Held || !strings.Contains(got.Missing, "swap is on") {
			t.Errorf("%+v", got)
		}
	}
}

// The order in which folders of a v2 tree are tried. The tree here is of
// plain folders: only their names, marks and rights count.
func TestCandidates(t *testing.T) {
	top := t.TempDir()
	for _, dir := range []string{"a/app.slice/me.scope", "a/tranca"} {
		dir = filepath.Join(top, dir)
		if err := os.MkdirAll(dir, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	for _, dir := range []string{"a", "a/app.slice", "a/app.slice/me.scope"} {
		if err := os.WriteFile(filepath.Join(top, dir, "cgroup.type"), nil, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	in := func(name string) string { return filepath.Join(top, name) }
	scope := in("a/app.slice/me.scope")
	m := mount{root: "/", point: top, v2: true}
	need := []string{ctlMemory}
	check := func(name string, f *finder, own string, need []string, want ...candidate) {
		t.Helper()
		got := f.candidates(m, own, true, need)
		if d := cmp.Diff(want, got, cmp.AllowUnexported(candidate{})); d != "" {
			t.Errorf("%s: %s", name, d)
		}
	}
	root, user := &finder{}, &finder{euid: os.Geteuid() + 1}
	check("hybrid", root, scope, nil, candidate{scope, false})
	check("root of all", root, top, need, candidate{top, false})
	above := []candidate{{in("a/app.slice"), false}, {in("a"), false}, {top, false}}
	check("root", root, scope, need, above...)
	check("user", user, scope, need, append(slices.Clone(above), candidate{scope, true})...)
	named := &finder{Options: Options{Paths: []string{in("a/tranca"), "/elsewhere"}}}
	check("named", named, scope, need, append([]candidate{{in("a/tranca"), false}}, above...)...)
	if err := unix.Setxattr(scope, "user.delegate", []byte("1"), 0); err != nil {
		t.Logf("no extended attributes here: %v", err)
		return
	}
	check("delegated", root, scope, need, append([]candidate{{scope, true}}, above...)...)
}

// A user with folders of his own runs the other tests.
func TestAsUser(t *testing.T) {
	require.Root(t)
	_ = needTree(t, Options{})
	paths, into := delegate(t, nobody)
	cmd := exec.Command("/proc/self/exe", "-test.v", "-test.run", "^(TestFindHoldsAll|TestCreate|TestJoin|TestOut|TestProcesses|TestKill|TestDestroy|TestSweep)")
	cmd.Env = append(os.Environ(), pathsEnv+"="+strings.Join(paths, ":"),
		"TRANCA_PROVIDES=cgroup", "TRANCA_REQUIRE_LOG=", "TMPDIR=/tmp", "XDG_RUNTIME_DIR=")
	cmd.Dir = "/"
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: nobody, Gid: nobody}}
	if into != nil {
		cmd.SysProcAttr.UseCgroupFD, cmd.SysProcAttr.CgroupFD = true, int(into.Fd())
	}
	out, err := cmd.CombinedOutput()
	if err != nil || !strings.Contains(string(out), "--- PASS: TestKillForkBomb") {
		t.Errorf("as user %d: %v\n%s", nobody, err, out)
	}
}

const nobody = 65534

// delegate makes a folder for a user in each hierarchy, and under v2 one in it
// for his process to live in.
func delegate(t *testing.T, uid int) (paths []string, into *os.File) {
	t.Helper()
	s, err := supervisor.Open(filepath.Join(t.TempDir(), "delegate"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Close() })
	tree := newTree(t, Options{})
	name := "tranca-test-" + s.ID()
	all := slices.Clone(tree.v1)
	if tree.v2 != nil {
		all = append(all, tree.v2)
	}
	for _, h := range all {
		dir := filepath.Join(h.base, name)
		if err := os.Mkdir(dir, 0o755); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() {
			if err := os.Remove(dir); err != nil {
				t.Error(err)
			}
		})
		paths = append(paths, dir)
		own := []string{dir}
		if h.v2 {
			run := filepath.Join(dir, "run")
			if err := os.Mkdir(run, 0o755); err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() {
				if err := os.Remove(run); err != nil {
					t.Error(err)
				}
			})
			if into, err = os.Open(run); err != nil {
				t.Fatal(err)
			}
			own = append(own, dir+"/cgroup.procs", dir+"/cgroup.subtree_control", run, run+"/cgroup.procs")
		}
		for _, path := range own {
			if err := os.Chown(path, uid, uid); err != nil {
				t.Fatal(err)
			}
		}
	}
	return paths, into
}

func TestNamedPathOfAnotherMount(t *testing.T) {
	f := &finder{mounts: []mount{{point: "/cg", v2: true}, {point: "/cg/memory", controllers: []string{ctlMemory}}}}
	f.Paths = []string{"/cg/memory/x", "/cg/y", "/cgz"}
	for i, want := range [][]string{{"/cg/y"}, {"/cg/memory/x"}} {
		if d := cmp.Diff(want, f.named(f.mounts[i])); d != "" {
			t.Errorf("mount %s: %s", strconv.Quote(f.mounts[i].point), d)
		}
	}
}
