package policy

import (
	"testing"

	"pgregory.net/rapid"

	"tranca"
)

// rich is a policy in which every item can be made wider and narrower.
func rich() tranca.Policy {
	p := Default()
	p.Floor, p.Backend = tranca.LevelProcess, "process"
	p.Env = map[string]string{"A": "1"}
	p.MinLandlockABI = 3
	p.KnownVulnerabilities = tranca.VulnerabilitiesRefuse
	p.Waive = []tranca.Item{tranca.ItemMemory}
	p.Mounts = []tranca.Mount{
		{Source: "/r", Target: "/r", Deny: []string{"secret"}},
		{Source: "/w", Target: "/w", Writable: true, DiskUnbounded: true, Deny: []string{"d"}, Protect: []string{".git/hooks"}},
	}
	return p
}

// TestWithinSeesEveryItem widens one thing at a time.
func TestWithinSeesEveryItem(t *testing.T) {
	wider := map[string]func(*tranca.Policy){
		"floor":      func(p *tranca.Policy) { p.Floor = tranca.LevelSubprocess },
		"backend":    func(p *tranca.Policy) { p.Backend = "other" },
		"no backend": func(p *tranca.Policy) { p.Backend = "" },
		"image":      func(p *tranca.Policy) { p.Image = "other" },
		"runtime":    func(p *tranca.Policy) { p.Runtime = "runc" },
		"holes":      func(p *tranca.Policy) { p.KnownVulnerabilities = tranca.VulnerabilitiesWarn },
		"a copy":     func(p *tranca.Policy) { p.Mounts[0].Cow = true },
		"a copy, unprotected": func(p *tranca.Policy) {
			p.Mounts[1] = tranca.Mount{Source: "/w", Target: "/w", Cow: true, Deny: []string{"d"}}
		},
		"backing":           func(p *tranca.Policy) { p.Limits.Disk.Backing = tranca.BackingFile },
		"another mount":     func(p *tranca.Policy) { p.Mounts = append(p.Mounts, tranca.Mount{Source: "/n", Target: "/n"}) },
		"another source":    func(p *tranca.Policy) { p.Mounts[0].Source = "/" },
		"another target":    func(p *tranca.Policy) { p.Mounts[0].Target = "/elsewhere" },
		"writable":          func(p *tranca.Policy) { p.Mounts[0].Writable = true },
		"unbounded":         func(p *tranca.Policy) { p.Mounts[0].DiskUnbounded = true },
		"less denied":       func(p *tranca.Policy) { p.Mounts[0].Deny = nil },
		"other denied":      func(p *tranca.Policy) { p.Mounts[1].Deny = []string{"e"} },
		"less protected":    func(p *tranca.Policy) { p.Mounts[1].Protect = nil },
		"variable changed":  func(p *tranca.Policy) { p.Env["A"] = "2" },
		"variable gone":     func(p *tranca.Policy) { delete(p.Env, "A") },
		"user":              func(p *tranca.Policy) { p.User.UID++ },
		"hostname":          func(p *tranca.Policy) { p.Hostname = "x" },
		"chroot":            func(p *tranca.Policy) { p.Chroot = "/x" },
		"network":           func(p *tranca.Policy) { p.Network = "host" },
		"landlock":          func(p *tranca.Policy) { p.MinLandlockABI-- },
		"keep files":        func(p *tranca.Policy) { p.KeepFiles = true },
		"another is waived": func(p *tranca.Policy) { p.Waive = append(p.Waive, tranca.ItemUser) },
	}
	for _, f := range table() {
		if f.numeric() && f.path != "landlock.min_abi" {
			wider[f.path] = func(p *tranca.Policy) { setNumber(f.ref(p), number(f.ref(p))+1) }
		}
	}
	for name, widen := range wider {
		t.Run(name, func(t *testing.T) {
			p := rich()
			q := p.Clone()
			widen(&q)
			if Within(q, p) {
				t.Error("wider, but said to be within")
			}
		})
	}
	p := rich()
	p.Limits.Output.OnExceed = tranca.ExceedKill
	if !Within(p, rich()) || Within(rich(), p) {
		t.Error("kill is narrower than truncate")
	}
}

// TestWithinSeesNarrower takes away one thing at a time.
func TestWithinSeesNarrower(t *testing.T) {
	for name, narrow := range map[string]func(*tranca.Policy){
		"same":       func(*tranca.Policy) {},
		"floor":      func(p *tranca.Policy) { p.Floor = tranca.LevelMicroVM },
		"mount gone": func(p *tranca.Policy) { p.Mounts = p.Mounts[1:] },
		"read-only":  func(p *tranca.Policy) { p.Mounts[1] = tranca.Mount{Source: "/w", Target: "/w", Deny: []string{"d"}} },
		"a copy": func(p *tranca.Policy) {
			p.Mounts[1] = tranca.Mount{Source: "/w", Target: "/w", Cow: true, Deny: []string{"d"}, Protect: []string{".git/hooks"}}
		},
		"more denied":      func(p *tranca.Policy) { p.Mounts[0].Deny = []string{"x", "secret"} },
		"more protected":   func(p *tranca.Policy) { p.Mounts[1].Protect = []string{".git/hooks", "x"} },
		"another variable": func(p *tranca.Policy) { p.Env["B"] = "" },
		"workdir":          func(p *tranca.Policy) { p.Workdir = "/w" },
		"landlock":         func(p *tranca.Policy) { p.MinLandlockABI++ },
		"nothing waived":   func(p *tranca.Policy) { p.Waive = nil },
	} {
		t.Run(name, func(t *testing.T) {
			q := rich()
			narrow(&q)
			if !Within(q, rich()) {
				t.Error("narrower, but said not to be within")
			}
		})
	}
}

// TestWithinIsAnOrder shows what an order needs over generated policies.
func TestWithinIsAnOrder(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		p := validPolicy(t)
		a, _ := Narrow(p, anyNarrowing(t))
		b, _ := Narrow(a, anyNarrowing(t))
		if !Within(p, p) {
			t.Fatal("a policy is not within itself")
		}
		if !Within(b, p) {
			t.Fatal("within twice is not within")
		}
		p.Workdir, a.Workdir = "", ""
		if Within(p, a) && Within(a, p) && len(p.Env) == len(a.Env) && Digest(p) != Digest(a) {
			t.Fatal("two policies are within each other and differ")
		}
	})
}
