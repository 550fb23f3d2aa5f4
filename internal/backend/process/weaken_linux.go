package process

import (
	"os"

	"golang.org/x/sys/unix"

	"tranca"
	"tranca/internal/confine"
	"tranca/internal/guest/bootspec"
	"tranca/internal/linux/seccomp"
	"tranca/internal/weaken"
)

// takeAway takes from a plan what this process was told to; see package weaken.
// What is stated of the plan was stated before.
func (b *Backend) takeAway(pl *plan) { weaken.Apply(Name, b.switches(), pl) }

// switches take one guarantee each from a plan.
func (b *Backend) switches() map[tranca.Item]func(*plan) {
	all := map[tranca.Item]func(*plan){
		tranca.ItemProcesses: func(pl *plan) {
			pl.Spaces &^= unix.CLONE_NEWPID
			pl.Boot.Omit |= bootspec.Processes
			pl.Boot.Landlock = -1 // which keeps signals from others
			// The agent ends its programs itself, for which it has to live.
			pl.Boot.DeathSignal = int(unix.SIGURG)
		},
		tranca.ItemIPC: func(pl *plan) {
			pl.Spaces &^= unix.CLONE_NEWIPC
			if f, err := b.filter(seccomp.Profile{UnixSockets: true}); err == nil {
				pl.Boot.Filter = f
			}
			pl.Boot.Landlock = -1 // which keeps from sockets of others
		},
		tranca.ItemNetwork: func(pl *plan) {
			pl.Spaces &^= unix.CLONE_NEWNET
			pl.Boot.Landlock = -1 // which keeps from the host's abstract sockets
		},
		tranca.ItemHostname: func(pl *plan) {
			pl.Spaces &^= unix.CLONE_NEWUTS
			pl.Boot.Hostname = ""
		},
		tranca.ItemDevices: func(pl *plan) {
			pl.ShowDevices()
			pl.Boot.Omit |= bootspec.Devices
		},
	}
	for item, edit := range confine.Switches() {
		weaken.Also(all, item, func(pl *plan) { edit(&pl.Plan) })
	}
	for item, edit := range confine.WeakenAgent() {
		weaken.Also(all, item, func(pl *plan) { edit(&pl.Boot) })
	}
	confine.WeakenWhole(all, func(pl *plan) { pl.Boot.Landlock = -1 })
	return all
}

// takeAway is that of the weaker rung.
func (s *Subprocess) takeAway(pl *plainPlan) { weaken.Apply(SubprocessName, s.switches(), pl) }

// switches take one guarantee each from a plan of the weaker rung.
func (s *Subprocess) switches() map[tranca.Item]func(*plainPlan) {
	all := map[tranca.Item]func(*plainPlan){
		tranca.ItemNetwork: func(pl *plainPlan) { pl.spaces &^= unix.CLONE_NEWNET },
		tranca.ItemUser: func(pl *plainPlan) {
			pl.spec.CodeUID, pl.spec.CodeGID = 0, 0
			_ = os.Chown(pl.home.path, 0, 0) // else the code has no folder, and starts nothing
		},
	}
	agent := confine.WeakenAgent()
	for _, item := range []tranca.Item{
		tranca.ItemPrivileges, tranca.ItemEnvironment, tranca.ItemCPUTime, tranca.ItemOpenFiles, tranca.ItemFileSize,
	} {
		all[item] = func(pl *plainPlan) { agent[item](pl.spec) }
	}
	return all
}
