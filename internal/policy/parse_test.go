package policy

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"tranca"
)

// TestDefault holds the defaults that are promised.
func TestDefault(t *testing.T) {
	want := tranca.Policy{
		Floor: tranca.LevelGVisor, Image: "host", KnownVulnerabilities: tranca.VulnerabilitiesWarn,
		Limits: tranca.Limits{
			Wall: 30e9, CPUTime: 30e9, MilliCPUs: 1000, Memory: 256 << 20, Processes: 64,
			OpenFiles: 256, FileSize: 64 << 20,
			Disk:   tranca.Disk{Size: 64 << 20, Inodes: 16384, Backing: tranca.BackingMemory},
			Output: tranca.Output{Size: 1 << 20, OnExceed: tranca.ExceedTruncate},
		},
		User: tranca.User{Name: "user", UID: 1000, GID: 1000}, Workdir: "/work",
		Hostname: "sandbox", Network: tranca.NetworkNone, MinLandlockABI: 1, Source: "default",
	}
	if diff := cmp.Diff(want, Default()); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if bad := Validate(Default()); len(bad) > 0 {
		t.Errorf("the default is not valid: %v", bad)
	}
}

// TestParseSmallest shows that what is left out has its default.
func TestParseSmallest(t *testing.T) {
	for _, text := range []string{"version: 1", "{version: 1}", `{"version": 1}`, "---\nversion: 1\n", "# a\n---\nversion: 1 # b\n", "\ufeffversion: 1"} {
		got, err := Parse("default", []byte(text))
		if err != nil {
			t.Errorf("%q: %v", text, err)
			continue
		}
		if diff := cmp.Diff(Default(), got); diff != "" {
			t.Errorf("%q (-default +got):\n%s", text, diff)
		}
	}
}

func TestParseEverything(t *testing.T) {
	data, err := os.ReadFile("testdata/everything.yaml")
	if err != nil {
		t.Fatal(err)
	}
	want := tranca.Policy{
		Floor: tranca.LevelProcess, Backend: "process", Image: "registry.example:5000/team/tools:1.2",
		Runtime: "runsc", KnownVulnerabilities: tranca.VulnerabilitiesRefuse,
		Limits: tranca.Limits{
			Wall: 90e9, CPUTime: 500e6, MilliCPUs: 500, Memory: 512 << 20, Processes: 10,
			OpenFiles: 100, FileSize: 1 << 30,
			Disk:   tranca.Disk{Size: 1 << 30, Inodes: 1000, Backing: tranca.BackingFile},
			Output: tranca.Output{Size: 65536, OnExceed: tranca.ExceedKill},
		},
		Mounts: []tranca.Mount{
			{Source: "/home/me/project", Target: "/project", Writable: true, DiskUnbounded: true, Deny: []string{"secrets"}, Protect: []string{".git/hooks"}},
			{Source: "/srv/data set", Target: "/work/data"},
			{Source: "/srv/out", Target: "/out", Writable: true, Protect: DefaultProtect()},
			{Source: "/srv/all", Target: "/all", Writable: true, Protect: []string{}},
			{Source: "/srv/src", Target: "/src", Cow: true, Deny: []string{".env"}, Protect: DefaultProtect()},
		},
		Env:  map[string]string{"LANG": "C.UTF-8", "EMPTY": "", "NUMBER": "1", "LONG": "two\nlines\n"},
		User: tranca.User{Name: "user", UID: 12, GID: 34}, Workdir: "/project/x", Hostname: "a.example",
		Network: tranca.NetworkNone, MinLandlockABI: 3, KeepFiles: true,
		Waive: []tranca.Item{tranca.ItemMemory, tranca.ItemLandlock}, Source: "p.yaml",
	}
	got, err := Parse("p.yaml", data)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// TestStarter shows that the starter says nothing but the defaults, and says
// every field.
func TestStarter(t *testing.T) {
	got, err := Parse(SourceDefault, Starter())
	if err != nil {
		t.Fatal(err)
	}
	want := Default()
	want.Env = map[string]string{} // the starter says that there are none
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-default +starter):\n%s", diff)
	}
	for _, f := range table() {
		name := f.path[strings.LastIndexByte(f.path, '.')+1:]
		if !strings.Contains(string(Starter()), name+":") {
			t.Errorf("the starter lacks %s", f.path)
		}
	}
	for i, line := range strings.Split(string(Starter()), "\n") {
		if len(line) > 80 {
			t.Errorf("line %d has %d characters", i+1, len(line))
		}
	}
}

// TestForms shows that a generated policy, written as JSON and as YAML, is
// read as what it was.
func TestForms(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		want := validPolicy(t)
		want.Source = "p"
		for form, text := range map[string]string{
			"JSON":   string(asJSON(want, "")),
			"indent": string(asJSON(want, "\t")),
			"YAML":   "# YAML, since JSON has no comments\n" + string(asJSON(want, "  ")),
		} {
			got, err := Parse("p", []byte(text))
			if err != nil {
				t.Fatalf("%s: %v\n%s", form, err, text)
			}
			if Digest(got) != Digest(want) {
				t.Fatalf("%s (-want +got):\n%s", form, cmp.Diff(want, got))
			}
		}
	})
}

// asJSON writes a policy as a file has it.
func asJSON(p tranca.Policy, indent string) []byte {
	root := map[string]any{"version": 1}
	for _, f := range table() {
		var v any
		switch {
		case f.kind == kindCPUs:
			v = json.Number(f.format(number(f.ref(&p))))
		case f.kind == kindCount:
			v = number(f.ref(&p))
		case f.numeric():
			v = f.format(number(f.ref(&p)))
		case f.kind == kindWord, f.kind == kindName && word(f.ref(&p)) != "":
			v = word(f.ref(&p))
		default:
			continue
		}
		place := root
		names := strings.Split(f.path, ".")
		for _, name := range names[:len(names)-1] {
			if place[name] == nil {
				place[name] = map[string]any{}
			}
			place = place[name].(map[string]any)
		}
		place[names[len(names)-1]] = v
	}
	root["session"] = map[string]any{"keep_files": p.KeepFiles}
	root["user"] = formatUser(p.User)
	root["environment"] = joinEnv(map[string]string{}, p.Env)
	root["waive"] = append([]tranca.Item{}, p.Waive...)
	mounts := []any{}
	for _, m := range p.Mounts {
		mounts = append(mounts, mountAsJSON(m))
	}
	root["mounts"] = mounts
	text, err := json.MarshalIndent(root, "", indent)
	if indent == "" {
		text, err = json.Marshal(root)
	}
	if err != nil {
		panic(err)
	}
	return text
}

func mountAsJSON(m tranca.Mount) map[string]any {
	out := map[string]any{"source": m.Source, "target": m.Target, "mode": "ro"}
	switch {
	case m.Writable:
		out["mode"] = "rw"
	case m.Cow:
		out["mode"] = "cow"
	}
	if m.Writable || m.Cow {
		out["protect"] = append([]string{}, m.Protect...)
	}
	if m.DiskUnbounded {
		out["disk"] = "unbounded"
	}
	if len(m.Deny) > 0 {
		out["deny"] = m.Deny
	}
	return out
}

// TestExamples shows that every example policy is valid and is what its name
// promises.
func TestExamples(t *testing.T) {
	files, err := filepath.Glob("../../examples/policies/*.yaml")
	if err != nil || len(files) < 3 {
		t.Fatalf("got %d examples, %v", len(files), err)
	}
	for _, file := range files {
		t.Run(filepath.Base(file), func(t *testing.T) {
			data, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			if _, err := Parse(file, data); err != nil {
				t.Fatal(err)
			}
		})
	}
}

// TestHardContainer compares the example with the flags that it stands for.
func TestHardContainer(t *testing.T) {
	const file = "../../examples/policies/hard-container.yaml"
	data, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	got, err := Parse(file, data)
	if err != nil {
		t.Fatal(err)
	}
	want := Default()
	want.Source = file
	want.Floor = tranca.LevelProcess // as that of the container
	want.Limits.Memory = 512 << 20
	want.Limits.MilliCPUs = 500
	want.User = tranca.User{Name: "nobody", UID: 65534, GID: 65534}
	want.Mounts = []tranca.Mount{{
		Source: "/srv/agent/work", Target: "/work/agent", Writable: true, DiskUnbounded: true, Protect: DefaultProtect(),
	}}
	want.Workdir = "/work/agent"
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}
