package gvisor

import (
	"os"
	"runtime"

	"golang.org/x/sys/unix"

	"tranca"
	"tranca/internal/confine"
	"tranca/internal/guest/bootspec"
	"tranca/internal/weaken"
)

// takeAway takes from a plan what this process was told to; see package weaken.
// What is stated of the plan was stated before.
func (b *Backend) takeAway(pl *plan) { weaken.Apply(Name, b.switches(), pl) }

// switches take one guarantee each from a plan: from its file server, its Sentry
// and its agent, as far as each has a part in it.
func (b *Backend) switches() map[tranca.Item]func(*plan) {
	all := map[tranca.Item]func(*plan){
		tranca.ItemProcesses: func(pl *plan) { pl.omit(bootspec.Processes) },
		tranca.ItemIPC:       func(pl *plan) { pl.omit(bootspec.Sockets) },
		tranca.ItemNetwork: func(pl *plan) {
			pl.omit(bootspec.Network)
			pl.spaces &^= unix.CLONE_NEWNET
		},
		tranca.ItemPrivileges: func(pl *plan) { pl.omit(bootspec.Privileges) },
		tranca.ItemSyscalls:   func(pl *plan) { pl.omit(bootspec.Filter) },
		tranca.ItemDevices:    func(pl *plan) { pl.omit(bootspec.Devices) },
		tranca.ItemLifetime:   func(pl *plan) { pl.omit(bootspec.End) },
		tranca.ItemHostname:   func(pl *plan) { pl.kernel.Hostname, _ = os.Hostname() },
		tranca.ItemCPUs:       func(pl *plan) { pl.kernel.CPUs = runtime.NumCPU() },
		tranca.ItemPIDs:       func(pl *plan) { pl.agent.GuestProcesses = 0 },
	}
	for item, edit := range confine.Switches() {
		weaken.Also(all, item, func(pl *plan) { edit(&pl.Plan) })
	}
	for item, edit := range confine.WeakenAgent() {
		weaken.Also(all, item, func(pl *plan) { edit(&pl.agent) })
	}
	// What others change, the host's folders above all, is not to be believed
	// for long.
	for _, item := range []tranca.Item{tranca.ItemFiles, tranca.ItemProcesses} {
		weaken.Also(all, item, func(pl *plan) { pl.kernel.Shared = true })
	}
	return all
}

// omit has Sentry and file server leave something out.
func (pl *plan) omit(what bootspec.Omission) {
	pl.Boot.Omit |= what
	pl.kernel.Omit |= what
}
