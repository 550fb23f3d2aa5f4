package confine

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"tranca"
	"tranca/internal/guest/bootspec"
	"tranca/internal/weaken"
)

// Switches are those of package weaken that every plan has, whatever runs in
// it: what is mounted, who the code is, what bounds it from outside. Each edits
// a plan that is complete but for its mounts.
func Switches() map[tranca.Item]func(*Plan) {
	all := map[tranca.Item]func(*Plan){
		tranca.ItemFiles:    (*Plan).showHost,
		tranca.ItemUser:     func(pl *Plan) { pl.Callers = true },
		tranca.ItemLifetime: func(pl *Plan) { pl.Boot.DeathSignal = int(unix.SIGURG) }, // which nobody heeds
		tranca.ItemCPUs:     func(pl *Plan) { pl.Groups.MilliCPUs = 0 },
		// Without a group of its own the code would be in the agent's.
		tranca.ItemMemory: func(pl *Plan) { pl.Groups.Memory, pl.Groups.AgentMemory = 0, 0 },
		tranca.ItemPIDs:   func(pl *Plan) { pl.Groups.Processes, pl.Groups.AgentProcesses = 0, 0 },
		tranca.ItemDisk:   func(pl *Plan) { pl.Boot.ScratchSize = 0 },
		tranca.ItemInodes: func(pl *Plan) { pl.Boot.ScratchInodes = 0 },
	}
	for item, weaker := range WeakenPolicy() {
		weaken.Also(all, item, func(pl *Plan) { pl.Policy = weaker(pl.Policy) })
	}
	return all
}

// WeakenPolicy are the switches over what a sandbox is made from. Each returns a
// copy, so that what is stated of the policy stays as it was.
func WeakenPolicy() map[tranca.Item]func(*tranca.Policy) *tranca.Policy {
	changed := func(edit func(*tranca.Policy)) func(*tranca.Policy) *tranca.Policy {
		return func(p *tranca.Policy) *tranca.Policy {
			weaker := p.Clone()
			edit(&weaker)
			return &weaker
		}
	}
	eachMount := func(edit func(*tranca.Mount)) func(*tranca.Policy) *tranca.Policy {
		return changed(func(p *tranca.Policy) {
			for i := range p.Mounts {
				edit(&p.Mounts[i])
			}
		})
	}
	// Only a tmpfs can be without bounds.
	inMemory := changed(func(p *tranca.Policy) { p.Limits.Disk.Backing = tranca.BackingMemory })
	return map[tranca.Item]func(*tranca.Policy) *tranca.Policy{
		tranca.ItemMounts:    eachMount(func(m *tranca.Mount) { m.Writable, m.Cow, m.Deny = true, false, nil }),
		tranca.ItemMountDisk: eachMount(func(m *tranca.Mount) { m.Writable, m.Cow = true, false }),
		tranca.ItemProtect:   eachMount(func(m *tranca.Mount) { m.Protect = nil }),
		tranca.ItemCPUTime:   changed(func(p *tranca.Policy) { p.Limits.CPUTime = 1000 * time.Hour }),
		tranca.ItemDisk:      inMemory,
		tranca.ItemInodes:    inMemory,
	}
}

// WeakenWhole adds the switches that take several guarantees, of a backend that
// shares the host's kernel: that of Landlock, behind which its filter stands, and
// that of the isolation, which is all of the others together. unlocked takes the
// Landlock domain alone.
func WeakenWhole[P any](all map[tranca.Item]func(P), unlocked func(P)) {
	all[tranca.ItemLandlock] = func(plan P) {
		unlocked(plan)
		all[tranca.ItemSyscalls](plan)
	}
	all[tranca.ItemIsolation] = func(plan P) {
		for _, item := range []tranca.Item{
			tranca.ItemFiles, tranca.ItemProcesses, tranca.ItemIPC, tranca.ItemNetwork, tranca.ItemHostname,
			tranca.ItemSyscalls, tranca.ItemLandlock, tranca.ItemPrivileges, tranca.ItemDevices,
		} {
			all[item](plan)
		}
	}
}

// madeFolders are those that a sandbox has of its own whatever is mounted.
var madeFolders = []string{"dev", "proc", "work"}

// showHost shows the host's folders at their own paths, over what a sandbox has
// there, with nothing but their modes between them and the code.
func (pl *Plan) showHost() {
	b := &pl.Boot
	// The host's whole /etc comes instead of parts of it.
	b.Binds = slices.DeleteFunc(b.Binds, func(m bootspec.Bind) bool {
		return m.From == bootspec.FromHost && strings.HasPrefix(m.Target, "etc/")
	})
	for i := range b.Binds {
		if m := &b.Binds[i]; m.From == bootspec.FromHost && !m.Device {
			m.Writable = true
		}
	}
	for _, name := range HostFolders() {
		b.Binds = append(b.Binds, bootspec.Bind{Source: "/" + name, Target: name, Writable: true})
	}
}

// HostFolders are those at the top of the host's tree that no sandbox has of its
// own, and that hold other things than the programs that the code runs with.
func HostFolders() []string {
	entries, err := os.ReadDir("/")
	if err != nil {
		return nil // the sandbox is as it should be, and a test of it fails
	}
	var all []string
	for _, e := range entries {
		if name := e.Name(); e.IsDir() && !slices.Contains(madeFolders, name) && !slices.Contains(systemFolders, name) {
			all = append(all, name)
		}
	}
	return all
}

// ShowDevices shows the host's device nodes.
func (pl *Plan) ShowDevices() {
	var have []string
	for i := range pl.Boot.Binds {
		have = append(have, pl.Boot.Binds[i].Target)
	}
	for _, path := range HostDevices() {
		if target := strings.TrimPrefix(path, "/"); !slices.Contains(have, target) {
			pl.Boot.Binds = append(pl.Boot.Binds, bootspec.Bind{Source: path, Target: target, File: true, Device: true})
		}
	}
}

// HostDevices are the paths of the host's device nodes, but for terminals.
func HostDevices() []string {
	nodes, _ := filepath.Glob("/dev/*")
	more, _ := filepath.Glob("/dev/*/*")
	var all []string
	for _, path := range append(nodes, more...) {
		var st unix.Stat_t
		if unix.Lstat(path, &st) != nil || strings.HasPrefix(path, "/dev/pt") || strings.HasPrefix(path, "/dev/tty") {
			continue
		}
		if kind := st.Mode & unix.S_IFMT; kind == unix.S_IFCHR || kind == unix.S_IFBLK {
			all = append(all, path)
		}
	}
	return all
}

// WeakenAgent are the switches over what an agent gives its programs.
func WeakenAgent() map[tranca.Item]func(*bootspec.Spec) {
	without := func(resource int) func(*bootspec.Spec) {
		return func(s *bootspec.Spec) {
			s.Rlimits = slices.DeleteFunc(s.Rlimits, func(r bootspec.Rlimit) bool { return r.Resource == resource })
		}
	}
	return map[tranca.Item]func(*bootspec.Spec){
		tranca.ItemPrivileges: func(s *bootspec.Spec) { s.Omit |= bootspec.Privileges },
		tranca.ItemSyscalls:   unfiltered,
		tranca.ItemEnvironment: func(s *bootspec.Spec) {
			for _, v := range os.Environ() {
				name, _, _ := strings.Cut(v, "=")
				if !slices.ContainsFunc(s.Env, func(e string) bool { return strings.HasPrefix(e, name+"=") }) {
					s.Env = append(s.Env, v)
				}
			}
		},
		tranca.ItemLifetime:  func(s *bootspec.Spec) { s.Omit |= bootspec.End },
		tranca.ItemCPUTime:   without(unix.RLIMIT_CPU),
		tranca.ItemMemory:    without(unix.RLIMIT_AS),
		tranca.ItemPIDs:      without(unix.RLIMIT_NPROC),
		tranca.ItemOpenFiles: without(unix.RLIMIT_NOFILE),
		tranca.ItemFileSize:  without(unix.RLIMIT_FSIZE),
	}
}

// allowAll is a filter of one instruction: return SECCOMP_RET_ALLOW.
var allowAll = []byte{0x06, 0, 0, 0, 0, 0, 0xff, 0x7f}

func unfiltered(s *bootspec.Spec) {
	s.Filter = slices.Clone(allowAll)
	if len(s.AgentFilter) > 0 {
		s.AgentFilter = slices.Clone(allowAll)
	}
}
