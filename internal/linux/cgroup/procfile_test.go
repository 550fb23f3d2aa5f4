package cgroup

import (
	"path"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestParseMemberships(t *testing.T) {
	for name, c := range map[string]struct {
		text string
		want []membership
	}{
		"v1 by systemd": {
			"12:cpu,cpuacct:/user.slice\n5:memory:/user.slice/user-1000.slice/session-3.scope\n1:name=systemd:/user.slice\n",
			[]membership{
				{[]string{"cpu", "cpuacct"}, "/user.slice"},
				{[]string{"memory"}, "/user.slice/user-1000.slice/session-3.scope"},
				{[]string{"name=systemd"}, "/user.slice"},
			},
		},
		"v2 by systemd": {
			"0::/user.slice/user-1000.slice/user@1000.service/app.slice/run-u1.scope\n",
			[]membership{{nil, "/user.slice/user-1000.slice/user@1000.service/app.slice/run-u1.scope"}},
		},
		"hybrid": {
			"4:memory:/process_api/708856\n1:cpu:/\n0::/\n",
			[]membership{{[]string{"memory"}, "/process_api/708856"}, {[]string{"cpu"}, "/"}, {nil, "/"}},
		},
		"docker without a namespace": {
			"3:pids:/docker/0f3a\n0::/docker/0f3a\n",
			[]membership{{[]string{"pids"}, "/docker/0f3a"}, {nil, "/docker/0f3a"}},
		},
		"outside of the namespace": {"0::/../../init.scope\n", []membership{{nil, "/../../init.scope"}}},
		"colon in the path":        {"0::/a:b/c\n", []membership{{nil, "/a:b/c"}}},
		"WSL1":                     {"", nil},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := parseMemberships(c.text)
			if err != nil {
				t.Fatal(err)
			}
			if d := cmp.Diff(c.want, got, cmp.AllowUnexported(membership{})); d != "" {
				t.Error(d)
			}
		})
	}
	for _, bad := range []string{"x", "0:/", "0::rel\n", "-1::/\n", "a:b:/\n", "\n", "99999999999999:cpu:/\n"} {
		if got, err := parseMemberships(bad); err == nil {
			t.Errorf("%q was taken as %+v", bad, got)
		}
	}
}

const hybridMounts = `23 1 254:0 / / rw,relatime - ext4 /dev/root rw
31 23 0:28 / /sys/fs/cgroup rw,relatime - tmpfs tmpfs rw,mode=755
35 31 0:32 / /sys/fs/cgroup/memory rw,relatime - cgroup cgroup rw,memory
32 31 0:29 / /sys/fs/cgroup/cpu,cpuacct rw,nosuid shared:9 - cgroup cgroup rw,cpu,cpuacct
41 31 0:38 / /sys/fs/cgroup/unified rw,relatime - cgroup2 cgroup2 rw
`

const dockerMounts = `1 2 0:50 / / rw - overlay overlay rw,lowerdir=/a - b
3 1 0:32 /docker/0f3a /sys/fs/cgroup/memory ro,nosuid master:12 - cgroup cgroup rw,memory
4 1 0:33 /docker/a\040b /mnt/with\040blank\134 rw - cgroup2 cgroup2 ro,nsdelegate
`

func TestParseMounts(t *testing.T) {
	for name, c := range map[string]struct {
		text string
		want []mount
	}{
		"hybrid": {hybridMounts, []mount{
			{root: "/", point: "/sys/fs/cgroup/memory", controllers: []string{"rw", "memory"}},
			{root: "/", point: "/sys/fs/cgroup/cpu,cpuacct", controllers: []string{"rw", "cpu", "cpuacct"}},
			{root: "/", point: "/sys/fs/cgroup/unified", v2: true},
		}},
		"docker, read-only and blanks": {dockerMounts, []mount{
			{root: "/docker/0f3a", point: "/sys/fs/cgroup/memory", controllers: []string{"rw", "memory"}, readOnly: true},
			{root: "/docker/a b", point: `/mnt/with blank\`, v2: true, readOnly: true},
		}},
		"v2": {
			"30 24 0:27 / /sys/fs/cgroup rw,nosuid,nodev,noexec,relatime shared:4 - cgroup2 cgroup2 rw,nsdelegate,memory_recursiveprot\n",
			[]mount{{root: "/", point: "/sys/fs/cgroup", v2: true}},
		},
		"WSL1 has none": {"2 2 0:2 / / rw,noatime - lxfs rootfs rw\n", nil},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := parseMounts(c.text)
			if err != nil {
				t.Fatal(err)
			}
			if d := cmp.Diff(c.want, got, cmp.AllowUnexported(mount{})); d != "" {
				t.Error(d)
			}
		})
	}
	for _, bad := range []string{"x\n", "1 2 3 / / rw cgroup2 cgroup2 rw\n", "1 2 3 a /b rw - cgroup2 x rw\n", "1 2 3 / / - cgroup2 a rw\n"} {
		if got, err := parseMounts(bad); err == nil {
			t.Errorf("%q was taken as %+v", bad, got)
		}
	}
}

func TestFolderThroughMount(t *testing.T) {
	for _, c := range []struct{ root, point, path, want string }{
		{"/", "/sys/fs/cgroup", "/", "/sys/fs/cgroup"},
		{"/", "/sys/fs/cgroup", "/a/b", "/sys/fs/cgroup/a/b"},
		{"/docker/x", "/cg", "/docker/x", "/cg"},
		{"/docker/x", "/cg", "/docker/x/y", "/cg/y"},
		{"/docker/x", "/cg", "/docker/xy", ""},
		{"/docker/x", "/cg", "/", ""},
		{"/", "/cg", "/../up", ""},
		{"/..", "/cg", "/", ""},
		{"/", "/cg", "/a/../../etc", ""},
	} {
		got, ok := mount{root: c.root, point: c.point}.folder(c.path)
		if got != c.want || ok != (c.want != "") {
			t.Errorf("%s of root %s at %s: got %q, want %q", c.path, c.root, c.point, got, c.want)
		}
	}
}

func TestKeyed(t *testing.T) {
	const text = "low 0\noom 3\noom_kill 2\noom_group_kill 1\n"
	for key, want := range map[string]int64{"oom": 3, "oom_kill": 2, "low": 0} {
		if got, ok := keyed(text, key); !ok || got != want {
			t.Errorf("%s: got %d %v, want %d", key, got, ok, want)
		}
	}
	for _, key := range []string{"kill", "oom_", ""} {
		if got, ok := keyed(text, key); ok {
			t.Errorf("%q is there: %d", key, got)
		}
	}
}

func TestParsePIDs(t *testing.T) {
	pids, unseen, err := parsePIDs("1\n0\n4194303\n")
	if err != nil || !unseen || !cmp.Equal(pids, []int{1, 4194303}) {
		t.Errorf("got %v %v %v", pids, unseen, err)
	}
	for _, bad := range []string{"-1\n", "x\n", "\n", "1 2\n", "99999999999\n"} {
		if pids, _, err := parsePIDs(bad); err == nil {
			t.Errorf("%q was taken as %v", bad, pids)
		}
	}
}

func FuzzParseMemberships(f *testing.F) {
	f.Add("4:memory:/process_api/708856\n1:cpu,cpuacct:/\n0::/\n")
	f.Fuzz(func(t *testing.T, text string) {
		all, err := parseMemberships(text)
		if err != nil {
			return
		}
		for _, m := range all {
			if !strings.HasPrefix(m.path, "/") || strings.Contains(m.path, "\n") {
				t.Errorf("path %q from %q", m.path, text)
			}
		}
	})
}

func FuzzParseMounts(f *testing.F) {
	f.Add(hybridMounts, "/a/b")
	f.Add(dockerMounts, "/docker/0f3a")
	f.Fuzz(func(t *testing.T, text, where string) {
		all, err := parseMounts(text)
		if err != nil {
			return
		}
		for _, m := range all {
			dir, ok := m.folder(where)
			if ok && !within(dir, path.Clean(m.point)) {
				t.Errorf("%q through %+v leads out to %q", where, m, dir)
			}
		}
	})
}

func FuzzParsePIDs(f *testing.F) {
	f.Add("1\n22\n0\n")
	f.Fuzz(func(t *testing.T, text string) {
		pids, _, err := parsePIDs(text)
		for _, pid := range pids {
			if pid <= 0 {
				t.Errorf("%d from %q would signal more than one process", pid, text)
			}
		}
		if err == nil && strings.Count(text, "\n") < len(pids)-1 {
			t.Errorf("%d ids in %q", len(pids), text)
		}
	})
}
