package policy

import (
	"fmt"
	"slices"
	"strings"

	"pgregory.net/rapid"

	"tranca"
)

// bounded draws a number of a field, often one of its bounds.
func bounded(t *rapid.T, f *field, most int64) int64 {
	return rapid.OneOf(
		rapid.Just(f.min), rapid.Just(min(f.def, most)), rapid.Just(most), rapid.Int64Range(f.min, most),
	).Draw(t, f.path)
}

// validPolicy draws a policy that Validate accepts.
func validPolicy(t *rapid.T) tranca.Policy {
	p := Default()
	for _, f := range table() {
		switch {
		case f.numeric():
			setNumber(f.ref(&p), bounded(t, &f, f.max))
		case f.kind == kindWord:
			setWord(f.ref(&p), rapid.SampledFrom(f.words).Draw(t, f.path))
		}
	}
	fitDisk(&p)
	p.Backend = rapid.SampledFrom([]string{"", "process", "gvisor", "container", "other-1"}).Draw(t, "backend")
	if below(p.Backend, p.Floor) {
		p.Floor = levels[p.Backend]
	}
	if p.Floor == tranca.LevelSubprocess && rapid.Bool().Draw(t, "subprocess") {
		p.Backend = "subprocess"
	}
	p.Image = rapid.SampledFrom([]string{"host", "code:1", "sha256:" + strings.Repeat("0a", 32)}).Draw(t, "image")
	p.Runtime = rapid.SampledFrom([]string{"", "runsc", "crun-1.8"}).Draw(t, "runtime")
	p.KeepFiles = rapid.Bool().Draw(t, "keep")
	p.User = rapid.SampledFrom([]tranca.User{defaultUser, nobody, {Name: "user", UID: 7, GID: 8}}).Draw(t, "user")
	p.Workdir = rapid.SampledFrom([]string{"/work", "/", "/project/x"}).Draw(t, "workdir")
	p.Hostname = rapid.SampledFrom([]string{"sandbox", "a.b-c.d9", "X"}).Draw(t, "hostname")
	p.Env = rapid.MapOfN(envNames(), rapid.SampledFrom([]string{"", "x", "a b\n", "1", "é: {"}), 0, 4).Draw(t, "env")
	p.Mounts = validMounts(t)
	p.Waive = slices.Compact(slices.Sorted(slices.Values(
		rapid.SliceOfN(rapid.SampledFrom(tranca.Waivable()), 0, 4).Draw(t, "waive"))))
	return p
}

func envNames() *rapid.Generator[string] {
	return rapid.SampledFrom([]string{"A", "B", "_c9", "LANG", "PATH"})
}

func validMounts(t *rapid.T) []tranca.Mount {
	var mounts []tranca.Mount
	for i := range rapid.IntRange(0, 4).Draw(t, "mounts") {
		m := tranca.Mount{
			Source: fmt.Sprintf("/host/%d", i), Target: fmt.Sprintf("/inside/m %d", i),
			Writable: rapid.Bool().Draw(t, "writable"),
			Deny:     rapid.SampledFrom([][]string{nil, {"secrets"}, {"a/b", ".env"}}).Draw(t, "deny"),
		}
		if m.Writable && rapid.Bool().Draw(t, "cow") {
			m.Writable, m.Cow = false, true
		}
		if m.Writable {
			m.DiskUnbounded = rapid.Bool().Draw(t, "unbounded")
		}
		if m.Writable || m.Cow {
			m.Protect = rapid.SampledFrom([][]string{{}, {".git/hooks"}, DefaultProtect()}).Draw(t, "protect")
		}
		mounts = append(mounts, m)
	}
	return mounts
}

// anyNarrowing draws what a request may ask, sensible or not.
func anyNarrowing(t *rapid.T) tranca.Narrowing {
	n := tranca.Narrowing{
		Floor:    rapid.SampledFrom([]tranca.Level{0, 0, 1, 2, 3, 5, -1, 77}).Draw(t, "floor"),
		Backend:  rapid.SampledFrom([]string{"", "", "process", "subprocess", "other-1", "No Name"}).Draw(t, "backend"),
		Env:      rapid.MapOfN(rapid.OneOf(envNames(), rapid.Just("not a name")), rapid.SampledFrom([]string{"x", "y", "\x00"}), 0, 3).Draw(t, "env"),
		Workdir:  rapid.SampledFrom([]string{"", "/work/a", "/", "rel", "/a/../b"}).Draw(t, "workdir"),
		ReadOnly: rapid.SliceOfN(targets(), 0, 3).Draw(t, "readOnly"),
	}
	n.DropMounts = rapid.SliceOfN(targets(), 0, 3).Draw(t, "drop")
	for _, f := range table() {
		if f.ask != nil {
			setNumber(f.ask(&n), rapid.OneOf(
				rapid.Just(int64(0)), rapid.Just(int64(0)), rapid.Int64(), rapid.Int64Range(f.min, f.max),
				rapid.Just(f.min), rapid.Just(f.max), rapid.Just(f.min-1), rapid.Just(f.max+1),
			).Draw(t, f.path))
		}
	}
	return n
}

func targets() *rapid.Generator[string] {
	return rapid.SampledFrom([]string{"/inside/m 0", "/inside/m 1", "/inside/m 2", "/nowhere"})
}
