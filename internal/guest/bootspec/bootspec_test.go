package bootspec

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

func full() *Spec {
	return &Spec{
		Insulate: true, InsideUID: 12, InsideGID: 13, Audit: true, Tasks: 20, Filtered: true, Hidden: []string{"/m/a", "/m/b"},
		Writable: []Writable{{"/work", 1 << 33, 5}, {Path: "/m"}}, Same: []Same{{"/m", 1 << 63, 9}},
		Plain: true, Chroot: "/srv", Contained: true, CodeUID: 1000, CodeGID: 1001, AgentUID: 7, Hostname: "h",
		ScratchSize: 1 << 40, ScratchInodes: 9, ScratchFD: 5, Image: "/i", Folders: []string{"srv", "mnt"},
		Binds: []Bind{{
			Source: "/a", FD: 3, From: FromImage, Target: "b", File: true, Writable: true, Device: true,
			Deny: []Cover{{"x", true}, {"y", false}}, Protect: []string{"p"}, Pin: []string{"q", "r"},
		}, {Target: "c"}},
		Files:   []File{{"etc/f", []byte{0, 1}, 0o444}},
		Links:   []Link{{"l", "t"}},
		TaskFDs: []int{4, 5}, ReopenTasks: true, CodeCgroupFD: 6, CodeCgroup: "/sys",
		Filter: []byte{1, 2, 3}, AgentFilter: []byte{4}, Landlock: 4,
		Rlimits: []Rlimit{{7, 1, 1<<64 - 1}}, Env: []string{"A=", "B=\xff"}, Path: "/bin", Workdir: "/work",
		Omit: Privileges | End,
	}
}

func TestRoundTrip(t *testing.T) {
	for _, want := range []*Spec{full(), {Landlock: -1, Filter: []byte{}, AgentFilter: []byte{}}, {Landlock: 0, Filter: []byte{}, AgentFilter: []byte{}}} {
		got, err := Unmarshal(want.Marshal())
		if err != nil {
			t.Fatal(err)
		}
		if d := cmp.Diff(want, got); d != "" {
			t.Error(d)
		}
	}
}

func FuzzUnmarshal(f *testing.F) {
	f.Add(full().Marshal())
	f.Fuzz(func(t *testing.T, b []byte) {
		s, err := Unmarshal(b)
		if err != nil {
			return
		}
		if again, err := Unmarshal(s.Marshal()); err != nil {
			t.Fatal(err, again)
		}
	})
}
