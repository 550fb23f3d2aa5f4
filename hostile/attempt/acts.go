package attempt

import "sync"

// Act is what docs/PROBES.md says of one act: the fields that it needs and
// those that it may have, by their names in JSON.
type Act struct {
	Do       string
	Needs    []string
	May      []string
	Or       []string // at least one of these
	Networks []string // the values of network
	Flags    []string // the values of flags
}

// Acts lists every act, in the order of docs/PROBES.md.
func Acts() []Act {
	return []Act{
		{Do: "read", Needs: f("path"), May: f("size")},
		{Do: "list", Needs: f("path")},
		{Do: "find", Needs: f("path"), May: f("size")},
		{Do: "write", Needs: f("path"), May: f("data", "append")},
		{Do: "open", Needs: f("path"), May: f("flags"), Flags: f("r", "w", "rw", "path", "create")},
		{Do: "stat", Needs: f("path")},
		{Do: "readlink", Needs: f("path")},
		{Do: "remove", Needs: f("path")},
		{Do: "mkdir", Needs: f("path")},
		{Do: "mkfifo", Needs: f("path")},
		{Do: "rename", Needs: f("path", "to")},
		{Do: "link", Needs: f("path", "to")},
		{Do: "symlink", Needs: f("path", "to")},
		{Do: "truncate", Needs: f("path"), May: f("size")},
		{Do: "chmod", Needs: f("path", "mode")},
		{Do: "chown", Needs: f("path"), May: f("uid", "gid")},
		{Do: "mknod", Needs: f("path", "mode")},
		{Do: "fill", Needs: f("path", "size")},
		{Do: "files", Needs: f("path", "count")},
		{Do: "copyself", Needs: f("path"), May: f("mode")},
		{Do: "swap", Needs: f("path", "to", "for")},
		{Do: "run", Needs: f("args")},
		{Do: "spawn", Needs: f("steps"), May: f("count", "no_wait", "session", "close", "new")},
		{Do: "repeat", Needs: f("steps"), May: f("every"), Or: f("for", "count")},
		{Do: "forks", Needs: f("count"), May: f("for")},
		{Do: "threads", Needs: f("count"), May: f("for")},
		{Do: "zombies", Needs: f("count"), May: f("for")},
		{Do: "fds", Needs: f("count")},
		{Do: "pipes", Needs: f("size")},
		{Do: "alloc", Needs: f("size"), May: f("count", "no_touch")},
		{Do: "spin", Needs: f("for"), May: f("threads")},
		{Do: "hash", Needs: f("for"), May: f("threads")},
		{Do: "sleep", Needs: f("for")},
		{Do: "ignore"},
		{Do: "kill", Needs: f("pid"), May: f("signal")},
		{Do: "exit", May: f("code")},
		{Do: "raise", Needs: f("signal")},
		{Do: "print", Needs: f("data"), May: f("size", "stream")},
		{Do: "env"},
		{Do: "check", Needs: f("path"), May: f("field"), Or: f("equals", "differs", "contains")},
		{Do: "connect", Needs: f("network", "address"), May: f("data"),
			Networks: f("tcp", "udp", "unix", "icmp", "vsock")},
		{Do: "resolve", Needs: f("name"), May: f("address")},
		{Do: "echo", Needs: f("network"), May: f("path"), Networks: f("tcp", "udp", "unix")},
		{Do: "listen", Needs: f("network", "address", "for"), May: f("data"), Networks: f("tcp", "udp", "unix")},
		{Do: "mmap", Or: f("path", "size"), May: f("data", "flags"), Flags: f("hugetlb", "locked")},
		{Do: "socket", Needs: f("family", "type"), May: f("protocol")},
		{Do: "addaddr", Needs: f("address")},
		{Do: "syscall", Needs: f("call"), May: f("args")},
		{Do: "ia32", Needs: f("number"), May: f("args")},
		{Do: "shm", Needs: f("key"), May: f("data")},
	}
}

func f(names ...string) []string { return names }

// actsByName are those of [Acts]. A suite checks some hundreds of lists of steps.
var actsByName = sync.OnceValue(func() map[string]Act {
	all := map[string]Act{}
	for _, a := range Acts() {
		all[a.Do] = a
	}
	return all
})

// fields returns the fields of the step that are set and belong to an act, by
// their names in JSON. A field that is zero counts as not set.
func (s *Step) fields() map[string]bool {
	set := map[string]bool{}
	for _, f := range []struct {
		name string
		is   bool
	}{
		{"path", s.Path != ""}, {"to", s.To != ""}, {"data", s.Data != ""},
		{"append", s.Append}, {"flags", s.Flags != ""}, {"mode", s.Mode != ""},
		{"size", s.Size != 0}, {"count", s.Count != 0}, {"for", s.For != 0},
		{"every", s.Every != 0}, {"threads", s.Threads != 0}, {"uid", s.UID != 0},
		{"gid", s.GID != 0}, {"args", s.Args != nil}, {"steps", s.Steps != nil},
		{"no_wait", s.NoWait}, {"session", s.Session}, {"close", s.Close},
		{"no_touch", s.NoTouch}, {"new", s.New != ""}, {"pid", s.PID != ""}, {"signal", s.Signal != 0},
		{"code", s.Code != 0}, {"stream", s.Stream != ""}, {"field", s.Field != ""},
		{"equals", s.Equals != nil}, {"differs", s.Differs != nil},
		{"contains", s.Contains != nil}, {"network", s.Network != ""},
		{"address", s.Address != ""}, {"name", s.Name != ""}, {"family", s.Family != 0},
		{"type", s.Type != 0}, {"protocol", s.Protocol != 0}, {"call", s.Call != ""},
		{"number", s.Number != 0}, {"key", s.Key != ""},
	} {
		if f.is {
			set[f.name] = true
		}
	}
	return set
}
