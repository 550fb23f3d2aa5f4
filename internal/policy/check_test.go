package policy

import (
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"tranca"
)

// holding is a report that holds every item but some.
func holding(backend string, level tranca.Level, but ...tranca.Item) tranca.Report {
	r := tranca.Report{Backend: backend, Level: level, Facts: map[string]string{FactLandlockABI: "5"}}
	for _, item := range tranca.Items() {
		g := tranca.Guarantee{Item: item, Held: true, Mechanism: "mechanism of " + string(item)}
		if slices.Contains(but, item) {
			g = tranca.Guarantee{Item: item, Missing: "no " + string(item), Mend: "mend " + string(item)}
		}
		r.Guarantees = append(r.Guarantees, g)
	}
	return r
}

// atProcess is the default policy with the floor at process.
func atProcess() tranca.Policy {
	p := Default()
	p.Floor = tranca.LevelProcess
	return p
}

func problemItems(problems []tranca.Problem) []tranca.Item {
	items := []tranca.Item{}
	for _, p := range problems {
		items = append(items, p.Item)
	}
	return items
}

// TestCheckEachItem takes away one guarantee at a time.
func TestCheckEachItem(t *testing.T) {
	p := atProcess()
	p.Mounts = []tranca.Mount{{Source: "/s", Target: "/t", Writable: true, Protect: []string{".git/hooks"}}}
	if problems := Check(p, holding("process", tranca.LevelProcess)); len(problems) > 0 {
		t.Fatalf("all is held, but: %v", problems)
	}
	for _, item := range tranca.Items() {
		waivable := slices.Contains(tranca.Waivable(), item)
		want := []tranca.Problem{{
			Item: item, Asked: Asked(p, item), Missing: "no " + string(item), Mend: "mend " + string(item), Waivable: waivable,
		}}
		if diff := cmp.Diff(want, Check(p, holding("process", tranca.LevelProcess, item))); diff != "" {
			t.Errorf("%s (-want +got):\n%s", item, diff)
		}
		if !waivable {
			continue
		}
		waived := p.Clone()
		waived.Waive = []tranca.Item{item}
		if problems := Check(waived, holding("process", tranca.LevelProcess, item)); len(problems) > 0 {
			t.Errorf("%s is waived, but: %v", item, problems)
		}
		if problems := Check(waived, holding("process", tranca.LevelProcess, item, tranca.ItemFiles)); len(problems) != 1 {
			t.Errorf("%s is waived, and files are missing: %v", item, problems)
		}
	}
}

// TestCheckUnknown shows that a report that says nothing holds nothing.
func TestCheckUnknown(t *testing.T) {
	got := Check(Default(), tranca.Report{})
	want := append([]tranca.Item{tranca.ItemIsolation}, Required(0)...)
	if diff := cmp.Diff(want, problemItems(got)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	for _, p := range got {
		if p.Missing == "" || p.Asked == "" {
			t.Errorf("no reason: %+v", p)
		}
	}
}

func TestCheckMounts(t *testing.T) {
	mount := func(m tranca.Mount) tranca.Policy {
		p := atProcess()
		m.Source, m.Target = "/s", "/t"
		p.Mounts = []tranca.Mount{m}
		return p
	}
	r := holding("process", tranca.LevelProcess, tranca.ItemMountDisk, tranca.ItemProtect)
	for name, c := range map[string]struct {
		p    tranca.Policy
		want []tranca.Item
	}{
		"none":                  {atProcess(), []tranca.Item{}},
		"read-only":             {mount(tranca.Mount{}), []tranca.Item{}},
		"writable":              {mount(tranca.Mount{Writable: true}), []tranca.Item{tranca.ItemMountDisk}},
		"unbounded":             {mount(tranca.Mount{Writable: true, DiskUnbounded: true}), []tranca.Item{}},
		"protected":             {mount(tranca.Mount{Writable: true, Protect: []string{"x"}}), []tranca.Item{tranca.ItemMountDisk, tranca.ItemProtect}},
		"protected, unbounded":  {mount(tranca.Mount{Writable: true, DiskUnbounded: true, Protect: []string{"x"}}), []tranca.Item{tranca.ItemProtect}},
		"a copy":                {mount(tranca.Mount{Cow: true}), []tranca.Item{tranca.ItemMounts}},
		"a protected copy":      {mount(tranca.Mount{Cow: true, Protect: []string{"x"}}), []tranca.Item{tranca.ItemMounts, tranca.ItemProtect}},
		"protected for nothing": {mount(tranca.Mount{Protect: []string{"x"}}), []tranca.Item{}},
	} {
		if diff := cmp.Diff(c.want, problemItems(Check(c.p, r))); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
}

// TestCheckSubprocess shows that the weaker rung is used only by name, needs
// only what it promises, and can't take mounts that it can't make.
func TestCheckSubprocess(t *testing.T) {
	weak := tranca.Report{Backend: "subprocess", Level: tranca.LevelSubprocess}
	for _, item := range Required(tranca.LevelSubprocess) {
		weak.Guarantees = append(weak.Guarantees, tranca.Guarantee{Item: item, Held: true, Mechanism: "m"})
	}
	if got := problemItems(Check(Default(), weak)); !slices.Equal(got, []tranca.Item{tranca.ItemIsolation}) {
		t.Errorf("by default: %v", got)
	}
	p, err := Apply(Default(), Overrides{Backend: new("subprocess")})
	if err != nil {
		t.Fatal(err)
	}
	if problems := Check(p, weak); len(problems) > 0 {
		t.Errorf("by name: %v", problems)
	}
	if got := problemItems(Check(p, holding("process", tranca.LevelProcess))); !slices.Equal(got, []tranca.Item{tranca.ItemIsolation}) {
		t.Errorf("another backend than the named: %v", got)
	}
	p.Mounts = []tranca.Mount{{Source: "/s", Target: "/t", Deny: []string{"x"}}}
	if got := problemItems(Check(p, weak)); !slices.Equal(got, []tranca.Item{tranca.ItemMounts}) {
		t.Errorf("with a mount: %v", got)
	}
	weak.Guarantees = weak.Guarantees[:len(weak.Guarantees)-1]
	if got := Check(p, weak); len(got) != 2 {
		t.Errorf("without output: %v", got)
	}
}

func TestCheckLandlockABI(t *testing.T) {
	for _, c := range []struct {
		min  int
		fact string
		want int
	}{
		{0, "", 0}, {1, "", 0}, {2, "", 1}, {5, "5", 0}, {6, "5", 1}, {1, "none", 0}, {2, "none", 1},
	} {
		p := atProcess()
		p.MinLandlockABI = c.min
		r := holding("process", tranca.LevelProcess)
		r.Facts = map[string]string{FactLandlockABI: c.fact}
		if got := Check(p, r); len(got) != c.want {
			t.Errorf("least %d, host %q: got %v", c.min, c.fact, got)
		}
		p.Waive = []tranca.Item{tranca.ItemLandlock}
		if got := Check(p, r); len(got) > 0 {
			t.Errorf("waived: got %v", got)
		}
		if got := Check(p, holding("vm", tranca.LevelMicroVM, tranca.ItemLandlock)); len(got) > 0 {
			t.Errorf("a microVM needs none: got %v", got)
		}
	}
}

// TestCheckForm shows that a backend is used only for the root trees, runtimes
// and modes of mounts that its report names.
func TestCheckForm(t *testing.T) {
	cow := []tranca.Mount{{Source: "/s", Target: "/t", Cow: true}}
	for name, c := range map[string]struct {
		change func(*tranca.Policy)
		facts  map[string]string
		want   []tranca.Item
		says   string
	}{
		"host, unsaid":     {nil, nil, nil, ""},
		"host, said":       {nil, map[string]string{tranca.FactRoots: "host, image"}, nil, ""},
		"no host":          {nil, map[string]string{tranca.FactRoots: "image"}, []tranca.Item{tranca.ItemFiles}, "can't show the host's own tree"},
		"image, unsaid":    {func(p *tranca.Policy) { p.Image = "a:1" }, nil, []tranca.Item{tranca.ItemFiles}, "runs no images"},
		"image":            {func(p *tranca.Policy) { p.Image = "a:1" }, map[string]string{tranca.FactRoots: "image"}, nil, ""},
		"part of a word":   {func(p *tranca.Policy) { p.Image = "a:1" }, map[string]string{tranca.FactRoots: "images"}, []tranca.Item{tranca.ItemFiles}, ""},
		"a copy, unsaid":   {func(p *tranca.Policy) { p.Mounts = cow }, nil, []tranca.Item{tranca.ItemMounts}, "makes no such mounts"},
		"a copy":           {func(p *tranca.Policy) { p.Mounts = cow }, map[string]string{tranca.FactMounts: "ro, rw, cow"}, nil, ""},
		"no runtimes":      {func(p *tranca.Policy) { p.Runtime = "runc" }, nil, []tranca.Item{tranca.ItemIsolation}, "backend process has no runtimes"},
		"the runtime":      {func(p *tranca.Policy) { p.Runtime = "runc" }, map[string]string{tranca.FactRuntime: "runc"}, nil, ""},
		"another runtime":  {func(p *tranca.Policy) { p.Runtime = "runc" }, map[string]string{tranca.FactRuntime: "runsc"}, []tranca.Item{tranca.ItemIsolation}, "was tried with the runtime runsc"},
		"no runtime asked": {nil, map[string]string{tranca.FactRuntime: "runsc"}, nil, ""},
	} {
		p := atProcess()
		if c.change != nil {
			c.change(&p)
		}
		r := holding("process", tranca.LevelProcess)
		r.Facts = c.facts
		got := Check(p, r)
		if !slices.Equal(problemItems(got), append([]tranca.Item{}, c.want...)) || (c.says != "" && !strings.Contains(got[0].Missing, c.says)) {
			t.Errorf("%s: got %+v", name, got)
		}
	}
}

// TestCheckAdvisories shows that a known hole that is open is refused where the
// policy says so, and named with what mends it.
func TestCheckAdvisories(t *testing.T) {
	open := tranca.Advisory{ID: "CVE-2024-21626", Component: "runc", Version: "1.1.5", FixedIn: "1.1.12", Needs: "control of the working directory"}
	mended := open
	mended.Patched = "changelog of the Debian package runc"
	for name, c := range map[string]struct {
		policy tranca.Vulnerabilities
		found  []tranca.Advisory
		want   int
	}{
		"none":    {tranca.VulnerabilitiesRefuse, nil, 0},
		"open":    {tranca.VulnerabilitiesRefuse, []tranca.Advisory{open, mended}, 1},
		"mended":  {tranca.VulnerabilitiesRefuse, []tranca.Advisory{mended}, 0},
		"to warn": {tranca.VulnerabilitiesWarn, []tranca.Advisory{open}, 0},
	} {
		p := atProcess()
		p.KnownVulnerabilities = c.policy
		r := holding("process", tranca.LevelProcess)
		r.Advisories = c.found
		got := Check(p, r)
		if len(got) != c.want {
			t.Errorf("%s: got %v", name, got)
		}
		for _, problem := range got {
			if !strings.Contains(problem.Missing, "runc 1.1.5 has the known hole CVE-2024-21626") || !strings.Contains(problem.Mend, "1.1.12") || problem.Waivable {
				t.Errorf("%s: %+v", name, problem)
			}
		}
	}
}

// TestNarrowerNeedsNoLess shows that a request can't make a refused policy
// pass by asking for less: only mounts that are taken away need less.
func TestNarrowerNeedsNoLess(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		p := validPolicy(t)
		missing := rapid.SampledFrom(tranca.Items()).Draw(t, "missing")
		r := holding("process", tranca.LevelProcess, missing)
		n, _ := Narrow(p, anyNarrowing(t))
		before := problemItems(Check(p, r))
		for _, item := range before {
			switch item {
			case tranca.ItemMounts, tranca.ItemMountDisk, tranca.ItemProtect:
				continue
			}
			if !slices.Contains(problemItems(Check(n, r)), item) {
				t.Fatalf("%s was a problem and is none any more", item)
			}
		}
	})
}

// TestExplain compares whole explanations with what people should read.
func TestExplain(t *testing.T) {
	p := rich()
	p.Source = "/etc/tranca/policy.yaml"
	weak, err := Apply(Default(), Overrides{Backend: new("subprocess")})
	if err != nil {
		t.Fatal(err)
	}
	kept := atProcess()
	kept.KeepFiles, kept.Limits.Output.OnExceed = true, tranca.ExceedKill
	for name, got := range map[string]string{
		"held":       Explain(p, holding("process", tranca.LevelProcess, tranca.ItemMemory)),
		"missing":    Explain(p, holding("process", tranca.LevelProcess, tranca.ItemCPUs, tranca.ItemFiles)),
		"asked":      Explain(kept, tranca.Report{}),
		"subprocess": Explain(weak, holding("subprocess", tranca.LevelSubprocess)),
	} {
		t.Run(name, func(t *testing.T) {
			path := "testdata/explain-" + name + ".txt"
			if *update {
				if err := os.WriteFile(path, []byte(got), 0o644); err != nil {
					t.Fatal(err)
				}
			}
			want, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(string(want), got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

// TestDigest shows that what allows the same has the same digest, and what
// does not has another.
func TestDigest(t *testing.T) {
	const known = "sha256:17ce3d9a2013e8547bd10c803b36a8d9bb1d95187c838840fdca7c0230b80944"
	if got := Digest(atProcess()); got != known {
		t.Errorf("the digest of the default, with the floor at process, was %s, is %s: it is written down in results", known, got)
	}
	p := rich()
	q := p.Clone()
	slices.Reverse(q.Mounts)
	q.Mounts[0].Protect = append(q.Mounts[0].Protect, q.Mounts[0].Protect...)
	q.Mounts[0].Deny = append([]string{}, q.Mounts[0].Deny...)
	q.Source = "elsewhere"
	if Digest(p) != Digest(q) {
		t.Error("the order, doubles or the source count")
	}
	for name, spoil := range map[string]func(*tranca.Policy){
		"floor": func(p *tranca.Policy) { p.Floor++ }, "backend": func(p *tranca.Policy) { p.Backend = "x" },
		"image": func(p *tranca.Policy) { p.Image = "x" }, "runtime": func(p *tranca.Policy) { p.Runtime = "x" },
		"holes": func(p *tranca.Policy) { p.KnownVulnerabilities = tranca.VulnerabilitiesWarn }, "cow": func(p *tranca.Policy) { p.Mounts[0].Cow = true }, "env": func(p *tranca.Policy) { p.Env["A"] = "2" },
		"user name": func(p *tranca.Policy) { p.User.Name = "x" }, "gid": func(p *tranca.Policy) { p.User.GID++ },
		"workdir": func(p *tranca.Policy) { p.Workdir = "/x" }, "hostname": func(p *tranca.Policy) { p.Hostname = "x" },
		"network": func(p *tranca.Policy) { p.Network = "x" }, "landlock": func(p *tranca.Policy) { p.MinLandlockABI++ },
		"keep": func(p *tranca.Policy) { p.KeepFiles = true }, "chroot": func(p *tranca.Policy) { p.Chroot = "/x" }, "waive": func(p *tranca.Policy) { p.Waive = nil },
		"source": func(p *tranca.Policy) { p.Mounts[0].Source = "/x" }, "target": func(p *tranca.Policy) { p.Mounts[0].Target = "/x" },
		"writable": func(p *tranca.Policy) { p.Mounts[1].Writable = false }, "unbounded": func(p *tranca.Policy) { p.Mounts[1].DiskUnbounded = false },
		"deny": func(p *tranca.Policy) { p.Mounts[0].Deny = nil }, "protect": func(p *tranca.Policy) { p.Mounts[1].Protect = nil },
		"backing": func(p *tranca.Policy) { p.Limits.Disk.Backing = tranca.BackingFile },
		"exceed":  func(p *tranca.Policy) { p.Limits.Output.OnExceed = tranca.ExceedKill },
	} {
		q := rich()
		spoil(&q)
		if Digest(q) == Digest(p) {
			t.Errorf("%s does not count", name)
		}
	}
	for _, f := range limitFields() {
		if f.numeric() {
			q := rich()
			setNumber(f.ref(&q), number(f.ref(&q))+1)
			if Digest(q) == Digest(p) {
				t.Errorf("%s does not count", f.path)
			}
		}
	}
}
