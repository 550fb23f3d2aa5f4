package policy

import (
	"strings"
	"testing"

	"tranca"
)

// TestValidate breaks one thing at a time, as a Go program could.
func TestValidate(t *testing.T) {
	many := func(n int) map[string]string {
		env := map[string]string{}
		for i := range n {
			env["A"+FormatCPUs(int64(i*1000))] = strings.Repeat("x", 1000)
		}
		return env
	}
	for name, c := range map[string]struct {
		spoil func(*tranca.Policy)
		want  string
	}{
		"zero value": {func(p *tranca.Policy) { *p = tranca.Policy{} }, "limits.wall: 0 is not a limit"},
		"floor":      {func(p *tranca.Policy) { p.Floor = 9 }, `floor: "level(9)": want`},
		"no limit":   {func(p *tranca.Policy) { p.Limits.Memory = 0 }, "limits.memory: 0 is not a limit"},
		"negative":   {func(p *tranca.Policy) { p.Limits.CPUTime = -1 }, "limits.cpu_time: -1ns is negative"},
		"landlock":   {func(p *tranca.Policy) { p.MinLandlockABI = -1 }, "landlock.min_abi: -1 is negative"},
		"network":    {func(p *tranca.Policy) { p.Network = "" }, `network: "": want none`},
		"backing":    {func(p *tranca.Policy) { p.Limits.Disk.Backing = "swap" }, `limits.disk.backing: "swap": want memory or file`},
		"user name":  {func(p *tranca.Policy) { p.User.Name = "a:b" }, `user: "a:b" is no name of a user`},
		"gid":        {func(p *tranca.Policy) { p.User.GID = 0 }, "user: uid 1000, gid 0: 0 belongs to the guest agent"},
		"uid":        {func(p *tranca.Policy) { p.User.UID = 1 << 31 }, "at most 65534"},
		"hostname":   {func(p *tranca.Policy) { p.Hostname = strings.Repeat("a", 64) }, "hostname: "},
		"chroot":     {func(p *tranca.Policy) { p.Chroot = "/srv/root" }, "chroot: it is for the backend subprocess alone"},
		"chroot relative": {func(p *tranca.Policy) {
			p.Chroot, p.Backend, p.Floor = "srv", "subprocess", tranca.LevelSubprocess
		}, "chroot: "},
		"hostname dots":   {func(p *tranca.Policy) { p.Hostname = "a..b" }, "hostname: "},
		"workdir":         {func(p *tranca.Policy) { p.Workdir = "" }, "workdir: it is empty"},
		"variable name":   {func(p *tranca.Policy) { p.Env = map[string]string{"A=B": ""} }, `environment: "A=B" is no name`},
		"variable bytes":  {func(p *tranca.Policy) { p.Env = map[string]string{"A": "\xff"} }, "environment.A: the value is not valid UTF-8"},
		"variable size":   {func(p *tranca.Policy) { p.Env = map[string]string{"A": strings.Repeat("x", maxEnvValue+1)} }, "environment.A: the value has 32769 bytes"},
		"many variables":  {func(p *tranca.Policy) { p.Env = many(maxEnv + 1) }, "environment: 257 variables: at most 256"},
		"large variables": {func(p *tranca.Policy) { p.Env = many(200) }, "environment: all variables together"},
		"waiver":          {func(p *tranca.Policy) { p.Waive = []tranca.Item{tranca.ItemNetwork} }, `waive[0]: "network" can't be waived`},
		"waiver twice":    {func(p *tranca.Policy) { p.Waive = []tranca.Item{tranca.ItemUser, tranca.ItemUser} }, `waive[1]: "user" is there twice`},
		"half the memory": {func(p *tranca.Policy) { p.Limits.Disk.Size = 129 * mib }, "raise limits.memory to 258MiB, lower this to 128MiB, or write backing: file"},
		"subprocess":      {func(p *tranca.Policy) { p.Backend = "subprocess" }, "subprocess is below the floor"},
		"many mounts":     {func(p *tranca.Policy) { p.Mounts = make([]tranca.Mount, maxMounts+1) }, "mounts: 65 mounts: at most 64"},
		"many denied": {func(p *tranca.Policy) {
			p.Mounts = []tranca.Mount{{Source: "/a", Target: "/b", Deny: make([]string, maxEntries+1)}}
		}, "mounts[0].deny: 129 entries: at most 128"},
		"empty mount":      {func(p *tranca.Policy) { p.Mounts = make([]tranca.Mount, 1) }, "mounts[0].source: it is empty"},
		"read-only, taken": {func(p *tranca.Policy) { p.Mounts = []tranca.Mount{{Source: "/a", Target: "/b", DiskUnbounded: true}} }, "mounts[0].disk: only a writable mount"},
	} {
		t.Run(name, func(t *testing.T) {
			p := Default()
			c.spoil(&p)
			var all strings.Builder
			for _, err := range Validate(p) {
				all.WriteString(err.Error() + "\n")
			}
			if !strings.Contains(all.String(), c.want) {
				t.Errorf("got %q, want %q", all.String(), c.want)
			}
		})
	}
	p := Default()
	p.Limits.Disk.Size = 129 * mib
	p.Limits.Disk.Backing = tranca.BackingFile
	if bad := Validate(p); len(bad) > 0 {
		t.Errorf("a space on disk does not count as memory: %v", bad)
	}
}
