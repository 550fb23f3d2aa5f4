package hostcheck

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/fstest"
	"time"

	"github.com/rogpeppe/go-internal/txtar"

	"tranca"
	"tranca/internal/advisory"
	"tranca/internal/hostiletest"
)

var update = flag.Bool("update", false, "write the golden results anew")

// fixture is a host made of files; the comment says what its trials find.
func fixture(t *testing.T, name string) *Host {
	t.Helper()
	archive, err := txtar.ParseFile(name)
	if err != nil {
		t.Fatal(err)
	}
	root := fstest.MapFS{}
	for _, f := range archive.Files {
		root[f.Name] = &fstest.MapFile{Data: f.Data}
	}
	versions, report := map[string]string{}, tranca.Report{Backend: "process"}
	h := &Host{FS: root, Root: t.TempDir(), UID: 1000, Trials: fromFiles(), Holes: advisory.BuiltIn()}
	for line := range strings.Lines(string(archive.Comment)) {
		words := strings.Fields(line)
		switch {
		case len(words) == 3 && words[0] == "trial":
			h.Trials[words[1]] = func(context.Context, *Host) (string, string, error) { return words[2], "as the fixture says", nil }
		case len(words) > 2 && words[0] == "version":
			versions[words[1]] = strings.Join(words[2:], " ")
		case len(words) == 4 && words[0] == "item":
			report.Guarantees = append(report.Guarantees, tranca.Guarantee{
				Item: tranca.Item(words[2]), Held: words[3] == "held", Mechanism: "a trial", Missing: "a trial failed",
			})
		}
	}
	if report.Guarantees != nil {
		h.Reports = []tranca.Report{report}
	}
	if len(archive.Files) > 0 {
		h.Version = func(_ context.Context, program string) (string, string, error) {
			if versions[program] == "" {
				return "", "", nil
			}
			return "/usr/bin/" + program, versions[program] + "\nmore lines\n", nil
		}
	}
	return h
}

// TestHosts holds the whole list over hosts made of files to what is written
// beside them.
func TestHosts(t *testing.T) {
	files, err := filepath.Glob("testdata/*.txtar")
	if err != nil || len(files) < 3 {
		t.Fatal(files, err)
	}
	for _, name := range files {
		var got strings.Builder
		for _, r := range Run(t.Context(), BuiltIn(), fixture(t, name)) {
			fmt.Fprintf(&got, "%-20s %-8s %s\n", r.ID, r.Result, r.Seen)
			for _, a := range r.Advisories {
				fmt.Fprintf(&got, "    %s: %s\n", a.ID, a.Behaviour)
			}
		}
		golden := strings.TrimSuffix(name, ".txtar") + ".golden"
		if *update {
			if err := os.WriteFile(golden, []byte(got.String()), 0o644); err != nil {
				t.Fatal(err)
			}
		}
		want, err := os.ReadFile(golden)
		if err != nil || got.String() != string(want) {
			t.Errorf("%s: %v; got\n%s", name, err, got.String())
		}
	}
}

// TestEachCheckCanFailAndPass: no check of the list has but one answer.
func TestEachCheckCanFailAndPass(t *testing.T) {
	good := Run(t.Context(), BuiltIn(), fixture(t, "testdata/hardened.txtar"))
	bad := Run(t.Context(), BuiltIn(), fixture(t, "testdata/careless.txtar"))
	for i, c := range BuiltIn().Rows {
		if good[i].Result != OK {
			t.Errorf("%s: %s on the hardened host: %s", c.ID, good[i].Result, good[i].Seen)
		}
		if r := bad[i].Result; r != Weak && r != Open {
			t.Errorf("%s: %s on the careless host: %s", c.ID, r, bad[i].Seen)
		}
	}
}

// TestBuiltIn: each row is whole, decides probes that there are, and says what
// to do about it.
func TestBuiltIn(t *testing.T) {
	known := map[string]bool{}
	for _, r := range hostiletest.Rows() {
		known[r.ID] = true
	}
	security, err := os.ReadFile("../../docs/SECURITY.md")
	if err != nil {
		t.Fatal(err)
	}
	l := BuiltIn()
	if len(l.Rows) < 50 || strings.Count(string(builtInText), "\n{") != len(l.Rows) {
		t.Errorf("%d checks; want one row on a line", len(l.Rows))
	}
	groups := []string{}
	for _, c := range l.Rows {
		if len(c.Probes) == 0 || c.Mend == "" {
			t.Errorf("%s decides nothing, or has no mend", c.ID)
		}
		for _, id := range c.Probes {
			if !known[id] && !strings.Contains(string(security), "| "+id+" |") {
				t.Errorf("%s decides %s, which is in no list", c.ID, id)
			}
		}
		if n := len(groups); n == 0 || groups[n-1] != c.Group {
			if slices.Contains(groups, c.Group) {
				t.Errorf("%s stands apart from its group %q", c.ID, c.Group)
			}
			groups = append(groups, c.Group)
		}
	}
	for _, h := range advisory.BuiltIn().Holes() {
		for _, id := range h.Probes {
			if !known[id] {
				t.Errorf("%s is tried by %s, which is in no list", h.ID, id)
			}
		}
		if h.Check != "" && !slices.ContainsFunc(l.Rows, func(c Check) bool { return c.ID == h.Check }) {
			t.Errorf("%s is tried by the check %s, which there is not", h.ID, h.Check)
		}
	}
	for _, name := range Trials() {
		if !slices.ContainsFunc(l.Rows, func(c Check) bool { return c.Trial == name }) {
			t.Errorf("nothing asks for the trial %s", name)
		}
	}
}

const head = "{\"schema\": \"tranca.hostchecks/1\", \"date\": \"2099-01-01\", \"rows\": [\n"

const row = `{"id": "a", "group": "g", "looks": "x", "kind": "file", "paths": ["proc/a"], "rules": [{"in": ["1"], "is": "ok"}, {"is": "open"}], "absent": "unknown", "probes": ["KRN-06"], "risk": "Bad."}`

func TestRowsThatCannotBeRead(t *testing.T) {
	if _, err := Parse("f", []byte(head+row+"\n]}")); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct{ change, into, want string }{
		{`"id": "a"`, `"id": "A b"`, `id "A b"`},
		{`"kind": "file"`, `"kind": "run"`, `kind "run": want one of`},
		{`"kind": "file"`, `"kind": "trial"`, `has trial, and nothing else`},
		{`"proc/a"`, `"/proc/a"`, "without a leading slash"},
		{`"proc/a"`, `"proc/../etc/shadow"`, "below proc/ or sys/"},
		{`"proc/a"`, `"etc/shadow"`, "below proc/ or sys/"},
		{`, {"is": "open"}`, ``, "the last has none"},
		{`{"in": ["1"], "is": "ok"}, `, `{"is": "ok"}, `, "all rules but the last"},
		{`"is": "open"`, `"is": "bad"`, `is "bad"`},
		{`"in": ["1"]`, `"version": "new"`, `version "new"`},
		{`"absent": "unknown", `, ``, "absent"},
		{"KRN-06", "KRN6", `probe "KRN6"`},
		{"Bad.", "Bad", "full stop"},
		{`"paths": ["proc/a"]`, `"paths": ["proc/a"], "command": "rm"`, `unknown field "command"`},
		{`"kind": "file", "paths": ["proc/a"]`, `"kind": "trial", "trial": "format"`, "absent"},
		{row, strings.Replace(strings.Replace(row, `"kind": "file", "paths": ["proc/a"]`, `"kind": "trial", "trial": "format"`, 1), `"absent": "unknown", `, "", 1), `trial "format": this program knows`},
		{row, row + ",\n" + row, `f:3: the check "a" is listed twice`},
	} {
		_, err := Parse("f", []byte(head+strings.Replace(row, c.change, c.into, 1)+"\n]}"))
		if !errors.Is(err, tranca.ErrInvalid) || !strings.Contains(fmt.Sprint(err), c.want) || !strings.Contains(fmt.Sprint(err), "f:") {
			t.Errorf("%s -> %s: %v, want %s", c.change, c.into, err, c.want)
		}
	}
}

// TestNewerList: an operator's list counts instead.
func TestNewerList(t *testing.T) {
	read := func(string) ([]byte, error) { return []byte(head + row + "\n]}"), nil }
	if l := Installed("/f", read); l.Source != "/f" || len(l.Rows) != 1 || l.Note != "" {
		t.Errorf("%+v", l)
	}
	broken := func(string) ([]byte, error) { return []byte(head), nil }
	if l := Installed("/f", broken); l.Source != "built in" || !strings.Contains(l.Note, "/f:2: it ends") {
		t.Errorf("%s, %s", l.Source, l.Note)
	}
	if _, err := Named("/f", broken); !errors.Is(err, tranca.ErrInvalid) {
		t.Error(err)
	}
}

// TestATrialThatHangs is unknown, and the rest goes on.
func TestATrialThatHangs(t *testing.T) {
	h := fixture(t, "testdata/hardened.txtar")
	h.Trials[trialKVM] = func(ctx context.Context, _ *Host) (string, string, error) {
		select {} //nolint:staticcheck // as a call that nothing ends
	}
	ctx, cancel := context.WithTimeout(t.Context(), 300*time.Millisecond)
	defer cancel()
	for _, r := range Run(ctx, BuiltIn(), h) {
		if (r.ID == "kvm") != (r.Result == Unknown) {
			t.Errorf("%s: %s, %s", r.ID, r.Result, r.Seen)
		}
	}
}

// TestThisHost looks at the real one: each check has an answer within the time
// that one may take, and what files say is what they say.
func TestThisHost(t *testing.T) {
	h := This(advisory.BuiltIn(), nil, nil)
	all := Run(t.Context(), BuiltIn(), h)
	seen := map[string]Result{}
	for _, r := range all {
		seen[r.ID] = r
		if !r.Result.valid() || r.Seen == "" || strings.Contains(r.Seen, "no answer within") {
			t.Errorf("%+v", r)
		}
	}
	release, err := os.ReadFile("/proc/sys/kernel/osrelease")
	if err != nil {
		t.Fatal(err)
	}
	if got := seen["kernel-version"].Seen; got != "osrelease is "+strings.TrimSpace(string(release)) {
		t.Errorf("kernel: %s", got)
	}
	if seen["limits"].Result != Open || !strings.Contains(seen["limits"].Seen, "can't be used here") {
		t.Errorf("without a report: %+v", seen["limits"])
	}
	if seen["cgroup-version"].Result == Unknown || seen["landlock"].Result == Unknown || seen["userns"].Result == Unknown {
		t.Errorf("%+v", seen)
	}
}

// FuzzList shows of any bytes: no panic, and a list that is accepted can be
// used on a host.
func FuzzList(f *testing.F) {
	f.Add([]byte(head + row + "\n]}"))
	f.Add(builtInText)
	h := &Host{FS: fstest.MapFS{"proc/a": {Data: []byte("[1] 2")}, "proc/swaps": {}}, Trials: fromFiles(), Holes: advisory.BuiltIn()}
	f.Fuzz(func(t *testing.T, data []byte) {
		l, err := Parse("f", data)
		if err != nil {
			if !errors.Is(err, tranca.ErrInvalid) || strings.Contains(err.Error(), "\n") {
				t.Fatal(err)
			}
			return
		}
		for _, r := range Run(t.Context(), l, h) {
			if !r.Result.valid() {
				t.Fatalf("%+v", r)
			}
		}
	})
}

// FuzzMountinfo shows that no text of the kernel's breaks the looking.
func FuzzMountinfo(f *testing.F) {
	f.Add("22 1 8:1 / / rw - ext4 /dev/sda1 rw\n", "9:name=systemd:/\n0::/x\n")
	f.Add(" - \n\\040", ":::")
	f.Fuzz(func(t *testing.T, mounts, own string) {
		h := &Host{FS: fstest.MapFS{"proc/self/mountinfo": {Data: []byte(mounts)}, "proc/self/cgroup": {Data: []byte(own)}, "var/lib/docker/x": {}}}
		if word, _, err := cgroupVersion(t.Context(), h); (word == "") != (err != nil) {
			t.Fatal(word, err)
		}
		if word, _, err := h.groups(nil); (word == "") != (err != nil) {
			t.Fatal(word, err)
		}
		c := Check{Kind: KindMount, Paths: []string{"var/lib/docker"}, Rules: []Rule{{Is: OK}}, Absent: OK}
		c.mount(h)
	})
}
