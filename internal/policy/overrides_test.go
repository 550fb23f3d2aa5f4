package policy

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"tranca"
)

func TestApplyNothing(t *testing.T) {
	got, err := Apply(Default(), Overrides{})
	if err != nil || got.Source != SourceDefault {
		t.Errorf("got %q, %v", got.Source, err)
	}
	if diff := cmp.Diff(Default(), got); diff != "" {
		t.Error(diff)
	}
}

// TestApplyEverything sets each flag.
func TestApplyEverything(t *testing.T) {
	mount := tranca.Mount{Source: "/s", Target: "/t", Writable: true, DiskUnbounded: true}
	got, err := Apply(Default(), Overrides{
		Floor: new(tranca.LevelGVisor), Backend: new("other"),
		Wall: new(time.Hour), CPUTime: new(2 * time.Hour), MilliCPUs: new(int64(2500)), Memory: new(4 * gib),
		Processes: new(int64(1000)), OpenFiles: new(int64(2000)), FileSize: new(gib), DiskSize: new(2 * gib),
		DiskInodes: new(int64(99)), Output: new(2 * mib), Mounts: []tranca.Mount{mount},
		Env: map[string]string{"A": "1"}, Workdir: new("/t"), Waive: []tranca.Item{tranca.ItemUser, tranca.ItemUser},
	})
	if err != nil {
		t.Fatal(err)
	}
	want := Default()
	want.Floor, want.Backend, want.Source = tranca.LevelGVisor, "other", "flags"
	want.Limits = tranca.Limits{
		Wall: time.Hour, CPUTime: 2 * time.Hour, MilliCPUs: 2500, Memory: 4 * gib, Processes: 1000, OpenFiles: 2000,
		FileSize: gib, Disk: tranca.Disk{Size: 2 * gib, Inodes: 99, Backing: tranca.BackingMemory},
		Output: tranca.Output{Size: 2 * mib, OnExceed: tranca.ExceedTruncate},
	}
	want.Mounts, want.Env, want.Workdir = []tranca.Mount{mount}, map[string]string{"A": "1"}, "/t"
	want.Waive = []tranca.Item{tranca.ItemUser}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// TestApplyDisk shows that less memory alone needs no word about the disk, but
// a word about the disk counts.
func TestApplyDisk(t *testing.T) {
	got, err := Apply(Default(), Overrides{Memory: new(64 * mib)})
	if err != nil || got.Limits.Disk.Size != 32*mib {
		t.Errorf("got %s, %v", FormatSize(got.Limits.Disk.Size), err)
	}
	_, err = Apply(Default(), Overrides{Memory: new(64 * mib), DiskSize: new(64 * mib)})
	if err == nil || !strings.Contains(err.Error(), "--disk: 64MiB is more than half") {
		t.Errorf("got %v", err)
	}
}

func TestApplyErrors(t *testing.T) {
	for want, o := range map[string]Overrides{
		"--memory: 2TiB is more than the most, 1TiB": {Memory: new(2 * tib)},
		"--timeout: 0 is not a limit":                {Wall: new(time.Duration(0))},
		"--pids: -1 is negative":                     {Processes: new(int64(-1))},
		"--cpus: 0.001 is less than the least, 0.01": {MilliCPUs: new(int64(1))},
		"--waive[0]: \"network\" can't be waived":    {Waive: []tranca.Item{tranca.ItemNetwork}},
		"--mount[0].target: a mount can't replace":   {Mounts: []tranca.Mount{{Source: "/a", Target: "/"}}},
		"--env: \"A-B\" is no name of a variable":    {Env: map[string]string{"A-B": ""}},
		"--env.A: the value holds a NUL":             {Env: map[string]string{"A": "\x00"}},
		"--workdir: path \"x\" is not absolute":      {Workdir: new("x")},
		"--backend: \"X\" is no name of a backend":   {Backend: new("X")},
		"--isolation: \"level(7)\": want":            {Floor: new(tranca.Level(7))},
		"--backend: subprocess is below the floor":   {Backend: new("subprocess"), Floor: new(tranca.LevelProcess)},
	} {
		_, err := Apply(Default(), o)
		var all Errors
		if !errors.As(err, &all) || !errors.Is(err, tranca.ErrInvalid) || !strings.HasPrefix(err.Error(), want) {
			t.Errorf("got %v, want %q", err, want)
		}
	}
}

// TestApplyIsValid shows of any flags that they give a valid policy or an
// error, and leave the base alone.
func TestApplyIsValid(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		base, n := validPolicy(t), anyNarrowing(t)
		before := Digest(base)
		o := Overrides{Env: n.Env, Waive: base.Waive}
		for _, set := range []struct {
			to *(*int64)
			n  int64
		}{{&o.Memory, n.Memory}, {&o.DiskSize, n.DiskSize}, {&o.Processes, n.Processes}, {&o.Output, n.Output}} {
			if set.n != 0 {
				*set.to = &set.n
			}
		}
		if n.Backend != "" {
			o.Backend = &n.Backend
		}
		got, err := Apply(base, o)
		if err == nil && len(Validate(got)) > 0 {
			t.Fatalf("accepted, but not valid: %v", Validate(got))
		}
		if Digest(base) != before {
			t.Fatal("the base was changed")
		}
	})
}

// TestNarrowing shows that flags beside a policy file ask for the same as they
// set without one.
func TestNarrowing(t *testing.T) {
	o := Overrides{
		Floor: new(tranca.LevelGVisor), Backend: new("other"),
		Wall: new(time.Second), CPUTime: new(2 * time.Second), MilliCPUs: new(int64(500)), Memory: new(128 * mib),
		Processes: new(int64(9)), OpenFiles: new(int64(99)), FileSize: new(mib), DiskSize: new(2 * mib),
		DiskInodes: new(int64(999)), Output: new(int64(5)), Env: map[string]string{"A": "1"}, Workdir: new("/t"),
	}
	n, err := o.Narrowing()
	if err != nil {
		t.Fatal(err)
	}
	want := tranca.Narrowing{
		Floor: tranca.LevelGVisor, Backend: "other", Wall: time.Second, CPUTime: 2 * time.Second, MilliCPUs: 500,
		Memory: 128 * mib, Processes: 9, OpenFiles: 99, FileSize: mib, DiskSize: 2 * mib, DiskInodes: 999, Output: 5,
		Env: map[string]string{"A": "1"}, Workdir: "/t",
	}
	if diff := cmp.Diff(want, n); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	narrowed, problems := Narrow(Default(), n)
	applied, err := Apply(Default(), o)
	if len(problems) > 0 || err != nil || Digest(narrowed) != Digest(applied) {
		t.Errorf("narrowing and flags differ: %v, %v\n%s", problems, err, cmp.Diff(narrowed, applied))
	}
}

func TestNarrowingErrors(t *testing.T) {
	for want, o := range map[string]Overrides{
		"refused: --mount does not narrow":   {Mounts: []tranca.Mount{{Source: "/a", Target: "/b"}}},
		"refused: --image does not narrow":   {Image: new("host")},
		"refused: --runtime does not narrow": {Runtime: new("runc")},
		"refused: --waive does not narrow":   {Waive: []tranca.Item{tranca.ItemUser}},
		"--memory: 0 is not a limit":         {Memory: new(int64(0))},
		"--timeout: -1s is negative":         {Wall: new(-time.Second)},
	} {
		n, err := o.Narrowing()
		if err == nil || !strings.HasPrefix(err.Error(), want) {
			t.Errorf("got %v, want %q", err, want)
		}
		if diff := cmp.Diff(tranca.Narrowing{}, n); diff != "" {
			t.Errorf("%q: not empty: %s", want, diff)
		}
	}
}

func TestEmpty(t *testing.T) {
	if o := (Overrides{}); !o.Empty() {
		t.Error("nothing is empty")
	}
	for name, o := range map[string]Overrides{
		"floor": {Floor: new(tranca.LevelProcess)}, "backend": {Backend: new("")}, "wall": {Wall: new(time.Duration(0))},
		"image": {Image: new("host")}, "runtime": {Runtime: new("runc")},
		"output": {Output: new(int64(0))}, "mounts": {Mounts: make([]tranca.Mount, 1)}, "env": {Env: map[string]string{"A": ""}},
		"workdir": {Workdir: new("")}, "waive": {Waive: make([]tranca.Item, 1)},
	} {
		if o.Empty() {
			t.Errorf("%s is something", name)
		}
	}
}
