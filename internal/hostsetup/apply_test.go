package hostsetup

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"tranca/internal/require"
)

// program puts a program into a folder of its own at the front of PATH. It
// writes down its arguments and does nothing else: what stands in for the
// host's service manager and AppArmor, which a temporary root does not have.
func program(t *testing.T, names ...string) (calls func() string) {
	t.Helper()
	folder := t.TempDir()
	record := filepath.Join(folder, "calls")
	for _, name := range names {
		script := "#!/bin/sh\necho " + name + " \"$@\" >> " + record + "\n"
		if err := os.WriteFile(filepath.Join(folder, name), []byte(script), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	t.Setenv("PATH", folder+":"+os.Getenv("PATH")+":/usr/sbin:/sbin")
	return func() string {
		text, _ := os.ReadFile(record)
		return string(text)
	}
}

func read(t *testing.T, path string) string {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil && !os.IsNotExist(err) {
		t.Fatal(err)
	}
	return string(text)
}

// TestApplyAndUndo makes all changes in a temporary root by the very lines
// that are printed, makes them again, and takes them back.
func TestApplyAndUndo(t *testing.T) {
	require.Root(t)
	calls := program(t, "systemctl", "apparmor_parser")
	_, err := exec.LookPath("usermod")
	require.Check(t, "usermod", err == nil, "no usermod on PATH")
	h := hostWith(t, map[string]string{
		userNamespaceSwitch:    "1\n",
		"usr/local/bin/tranca": "x",
		"etc/apparmor.d/other": "x",
		"run/systemd/system/x": "",
		"etc/passwd":           "root:x:0:0::/root:/bin/sh\nalice:x:1000:1000::/home/alice:/bin/sh\n",
		"etc/group":            "root:x:0:\nalice:x:1000:\n",
		"etc/shadow":           "root:*:1::::::\nalice:*:1::::::\n",
		"etc/login.defs":       "SUB_UID_COUNT 65536\n",
		"etc/subuid":           "bob:100000:65536\n",
		"etc/subgid":           "bob:100000:65536\n",
	})
	var out bytes.Buffer
	if err := Apply(&out, plan(t, h), false); err != nil {
		t.Fatalf("%v\n%s", err, out.String())
	}
	if got := read(t, h.path(profileFile)); got != profileText(h.Program) {
		t.Errorf("profile %q", got)
	}
	if got := read(t, h.path(dropIn)); got != dropInText {
		t.Errorf("drop-in %q", got)
	}
	if got := read(t, h.path("etc/subuid")); !strings.Contains(got, "alice:165536:65536") {
		t.Errorf("subuid %q", got)
	}
	if got := calls(); !strings.Contains(got, "apparmor_parser -r") || !strings.Contains(got, "systemctl daemon-reload") {
		t.Errorf("called %q", got)
	}
	for _, s := range plan(t, h) {
		if !s.Done {
			t.Errorf("%s: not done", s.Title)
		}
	}
	out.Reset()
	if err := Apply(&out, plan(t, h), false); err != nil || strings.Count(out.String(), "nothing to do") != 3 {
		t.Errorf("again: %v\n%s", err, out.String())
	}
	for range 2 { // undoing twice is no error either
		if err := Apply(&out, plan(t, h), true); err != nil {
			t.Fatalf("undo: %v\n%s", err, out.String())
		}
	}
	if got := read(t, h.path(profileFile)) + read(t, h.path(dropIn)); got != "" {
		t.Errorf("left behind: %q", got)
	}
	if got := read(t, h.path("etc/subuid")) + read(t, h.path("etc/subgid")); got != "bob:100000:65536\nbob:100000:65536\n" {
		t.Errorf("subuid and subgid %q", got)
	}
}

func TestApplyStopsAtTheFirstThatFails(t *testing.T) {
	var out bytes.Buffer
	err := Apply(&out, []Step{
		{Title: "one", Do: []string{"echo did one", "false", "echo went on"}},
		{Title: "two", Do: []string{"echo did two"}},
	}, false)
	if err == nil || !strings.Contains(err.Error(), "one: ") {
		t.Errorf("error %v", err)
	}
	if got := out.String(); !strings.Contains(got, "\ndid one\n") || strings.Contains(got, "\nwent on\n") || strings.Contains(got, "two") {
		t.Errorf("it said\n%s", got)
	}
}

func TestWhatIsBlockedIsAnErrorInTheEnd(t *testing.T) {
	var out bytes.Buffer
	err := Apply(&out, []Step{{Title: "one", Blocked: "because"}, {Title: "two", Do: []string{"echo did two"}}}, false)
	if err == nil || !strings.Contains(out.String(), "left out: because") || !strings.Contains(out.String(), "\ndid two\n") {
		t.Errorf("error %v\n%s", err, out.String())
	}
}

// TestDelegationWithoutSystemd makes folders in the place of control groups.
func TestDelegationWithoutSystemd(t *testing.T) {
	require.Root(t)
	h := hostWith(t, map[string]string{"sys/fs/cgroup/memory/x": "", "sys/fs/cgroup/pids/x": ""})
	h.User, h.UID = "nobody", 65534
	s := delegation(h)
	var out bytes.Buffer
	if s.Done || Apply(&out, []Step{s}, false) != nil {
		t.Fatalf("done %v\n%s", s.Done, out.String())
	}
	if want := "TRANCA_CGROUP=" + h.path("sys/fs/cgroup/memory/tranca-nobody") + ":"; !strings.Contains(out.String(), want) {
		t.Errorf("it does not say %q:\n%s", want, out.String())
	}
	if !ownedBy(h.path("sys/fs/cgroup/memory/tranca-nobody"), 65534) || !delegation(h).Done {
		t.Error("the group is not the user's")
	}
	if err := Apply(&out, []Step{delegation(h)}, true); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(h.path("sys/fs/cgroup/memory/tranca-nobody")); !os.IsNotExist(err) {
		t.Errorf("left behind: %v", err)
	}
	if s := delegation(hostWith(t, nil)); s.Blocked == "" {
		t.Error("a host without control groups is not blocked")
	}
}

func TestUnifiedDelegationNamesTheGroup(t *testing.T) {
	h := hostWith(t, map[string]string{"sys/fs/cgroup/cgroup.controllers": "cpu memory pids\n"})
	s := delegation(h)
	text := strings.Join(s.Do, "\n")
	for _, want := range []string{"+cpu +memory +pids", "/tranca-alice/cgroup.procs", "chown alice"} {
		if !strings.Contains(text, want) {
			t.Errorf("%q is missing in %q", want, text)
		}
	}
}
