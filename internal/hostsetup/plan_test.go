package hostsetup

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"tranca"
	"tranca/internal/require"
)

// hostWith makes a host tree of the given files.
func hostWith(t *testing.T, files map[string]string) Host {
	t.Helper()
	root, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	for name, text := range files {
		path := filepath.Join(root, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	return Host{Root: root, Program: "/usr/local/bin/tranca", User: "alice", UID: 1000}
}

func plan(t *testing.T, h Host) []Step {
	t.Helper()
	steps, err := Plan(h)
	if err != nil {
		t.Fatal(err)
	}
	if len(steps) != 3 {
		t.Fatalf("%d steps", len(steps))
	}
	return steps
}

func TestNamesThatWouldBeShellText(t *testing.T) {
	good := Host{Root: "/", Program: "/usr/bin/tranca", User: "alice", UID: 1}
	for name, change := range map[string]func(*Host){
		"user with a command": func(h *Host) { h.User = "a;reboot" },
		"user as a flag":      func(h *Host) { h.User = "-a" },
		"no user":             func(h *Host) { h.User = "" },
		"program with a blank": func(h *Host) {
			h.Program = "/opt/my tools/tranca"
		},
		"program with a pattern": func(h *Host) { h.Program = "/opt/*/tranca" },
		"relative program":       func(h *Host) { h.Program = "tranca" },
		"root with dots":         func(h *Host) { h.Root = "/a/../b" },
	} {
		h := good
		change(&h)
		if _, err := Plan(h); !errors.Is(err, tranca.ErrInvalid) {
			t.Errorf("%s: %v", name, err)
		}
	}
	good.UID = 0
	if steps, err := Plan(good); len(steps) != 0 || err != nil {
		t.Errorf("root: %d steps, %v", len(steps), err)
	}
}

func TestSubordinateIDsTouchNobodyElses(t *testing.T) {
	h := hostWith(t, map[string]string{
		"etc/subuid": "bob:100000:65536\nbroken\ncarol:165536:10\n",
		"etc/subgid": "bob:170000:65536\n",
	})
	s := subids(h)
	for _, want := range []string{"--add-subuids 235536-301071 alice", "--add-subgids 235536-301071 alice"} {
		if got := strings.Join(s.Do, "\n"); !strings.Contains(got, "usermod --prefix "+h.Root+" "+want+"\n") || s.Done {
			t.Errorf("%q, done %v; want %q", got, s.Done, want)
		}
	}
	h = hostWith(t, map[string]string{"etc/subuid": "alice:5:9\n", "etc/subgid": "1000:5:9\n"})
	if s := subids(h); !s.Done || len(s.Do) > 0 || len(s.Undo) > 0 {
		t.Errorf("who has some gets more: %q, or loses what others gave: %q", s.Do, s.Undo)
	}
}

func TestAppArmorOnlyWhereItIsRestricted(t *testing.T) {
	if s := apparmor(hostWith(t, nil)); !s.Done || len(s.Do) > 0 {
		t.Errorf("without the restriction: %q", s.Do)
	}
	h := hostWith(t, map[string]string{userNamespaceSwitch: "1\n", profileFile: profileText("/usr/local/bin/tranca")})
	if s := apparmor(h); !s.Done {
		t.Errorf("with the profile: %q", s.Do)
	}
	// A program that is not there, or not root's, gets no profile.
	h = hostWith(t, map[string]string{userNamespaceSwitch: "1\n"})
	if s := apparmor(h); s.Blocked == "" || len(s.Do) > 0 {
		t.Errorf("without the program: blocked %q, %q", s.Blocked, s.Do)
	}
}

func TestAppArmorRefusesAProgramThatOthersCouldReplace(t *testing.T) {
	require.Root(t)
	h := hostWith(t, map[string]string{userNamespaceSwitch: "1\n", "usr/local/bin/tranca": "x"})
	program := filepath.Join(h.Root, h.Program)
	folder := filepath.Dir(program)
	if s := apparmor(h); s.Blocked != "" || len(s.Do) != 2 {
		t.Fatalf("root's own: blocked %q, %q", s.Blocked, s.Do)
	}
	tests := map[string]func() error{
		"owner":           func() error { return os.Chown(program, 1000, 0) },
		"owner of folder": func() error { return os.Chown(folder, 1000, 0) },
		"mode":            func() error { return os.Chmod(program, 0o775) },
		"mode of folder":  func() error { return os.Chmod(folder, 0o777) },
		"link":            func() error { os.Remove(program); return os.Symlink("/bin/true", program) },
	}
	for name, change := range tests {
		t.Run(name, func(t *testing.T) {
			if err := change(); err != nil {
				t.Fatal(err)
			}
			if s := apparmor(h); s.Blocked == "" || len(s.Do) > 0 {
				t.Errorf("blocked %q, %q", s.Blocked, s.Do)
			}
			for _, path := range []string{program, folder} {
				os.Lchown(path, 0, 0)
				os.Chmod(folder, 0o755)
			}
			if name == "mode" {
				os.Chmod(program, 0o755)
			}
		})
	}
}

func TestPrintIsAScriptWithReasons(t *testing.T) {
	h := hostWith(t, map[string]string{"etc/os-release": "ID=debian\n", "run/systemd/system/x": ""})
	var out bytes.Buffer
	if err := Print(&out, plan(t, h), false); err != nil {
		t.Fatal(err)
	}
	text := out.String()
	for _, want := range []string{
		"set -eu\n", "usermod --prefix", "--del-subuids 100000-165535 alice", "apt-get install -y uidmap",
		"Delegate=cpu cpuset io memory pids", "systemctl daemon-reload\n", "# Nothing to do: this host has it.",
	} {
		if !strings.Contains(text, want) {
			t.Errorf("%q is missing in\n%s", want, text)
		}
	}
	if strings.Contains(text, "sudo") {
		t.Error("it calls sudo")
	}
}

func TestDistributions(t *testing.T) {
	tests := []struct{ release, want string }{
		{"ID=debian\nPRETTY_NAME=\"Debian GNU/Linux 12 (bookworm)\"", "apt-get install -y uidmap"},
		{"ID=pop\nID_LIKE=\"ubuntu debian\"", "apt-get install -y uidmap"},
		{"ID=alpine", "apk add shadow-uidmap"},
		{"ID='rocky'\nID_LIKE=\"rhel centos fedora\"", "dnf install -y shadow-utils"},
		{"ID=arch", "pacman -S --noconfirm shadow"},
		{"ID=opensuse-leap\nID_LIKE=\"suse opensuse\"", "zypper install -y shadow"},
		{"ID=plan9", "install the package that has newuidmap"},
	}
	for _, tt := range tests {
		d := ReadDistribution(hostWith(t, map[string]string{"etc/os-release": tt.release}).Root)
		if got := d.Mend("install newuidmap"); got != tt.want {
			t.Errorf("%s: %q, want %q", tt.release, got, tt.want)
		}
		if got := d.Mend("tranca setup --print"); got != "tranca setup --print" {
			t.Errorf("another mend became %q", got)
		}
	}
	if d := ReadDistribution(t.TempDir()); d.Name != "Linux" {
		t.Errorf("a host that says nothing is %q", d.Name)
	}
}
