package container

import (
	"encoding/json"
	"os"
	"slices"
	"strings"

	"tranca"
	"tranca/internal/backend/container/docker"
	"tranca/internal/confine"
	"tranca/internal/guest/bootspec"
	"tranca/internal/weaken"
)

// takeAwayFirst takes from a plan, before space and mounts are made for it, what
// this process was told to; see package weaken. What is stated of the plan was
// stated before.
func (b *Backend) takeAwayFirst(e *engine, pl *plan) { weaken.Apply(Name, firstSwitches(e), pl) }

// takeAway takes the rest, and with it each look that would refuse what is left:
// that of the guest agent, and that at what the engine has made.
func (b *Backend) takeAway(e *engine, pl *plan) {
	weaken.Apply(Name, switches(e), pl)
	if weaken.Any(Name) {
		pl.boot.Audit, pl.boot.Filtered, pl.unread = false, false, true
	}
}

// firstSwitches take one guarantee each from what space and mounts are made
// from.
func firstSwitches(e *engine) map[tranca.Item]func(*plan) {
	all := map[tranca.Item]func(*plan){}
	for item, weaker := range confine.WeakenPolicy() {
		all[item] = func(pl *plan) { pl.policy = weaker(pl.policy) }
	}
	// More than there is: the engine's own tmpfs has to have some size.
	weaken.Also(all, tranca.ItemDisk, func(pl *plan) { pl.policy.Limits.Disk.Size = 1 << 40 })
	weaken.Also(all, tranca.ItemInodes, func(pl *plan) { pl.policy.Limits.Disk.Inodes = 1 << 30 })
	all[tranca.ItemUser] = func(pl *plan) {
		pl.user.uid, pl.user.gid = uint32(os.Geteuid()), uint32(os.Getegid())
		if e.mapsUsers() {
			pl.user.uid, pl.user.gid = 0, 0 // who is the engine's own user outside
		}
		pl.boot.CodeUID, pl.boot.CodeGID = pl.user.uid, pl.user.gid
		pl.boot.Omit |= bootspec.Users
	}
	all[tranca.ItemPrivileges] = func(pl *plan) { pl.boot.Omit |= bootspec.Privileges }
	all[tranca.ItemDevices] = func(pl *plan) { pl.boot.Omit |= bootspec.Devices }
	all[tranca.ItemIsolation] = func(pl *plan) {
		all[tranca.ItemPrivileges](pl)
		all[tranca.ItemDevices](pl)
	}
	return all
}

// queues is where a host shows its message queues.
const queues = "/dev/mqueue"

// switches take one guarantee each from what is asked of engine and agent.
func switches(e *engine) map[tranca.Item]func(*plan) {
	all := map[tranca.Item]func(*plan){
		tranca.ItemFiles: func(pl *plan) { pl.showHost(e.info.DockerRootDir) },
		tranca.ItemProcesses: func(pl *plan) {
			pl.config.HostConfig.PidMode = "host"
			pl.boot.Omit |= bootspec.Processes
			pl.boot.Landlock = -1 // which keeps signals from others
		},
		tranca.ItemIPC: func(pl *plan) {
			h := pl.config.HostConfig
			h.IpcMode = "host"
			if _, err := os.Stat(queues); err != nil {
				// Podman shows the host's without root, also where there is none.
				h.Tmpfs[queues] = "ro,nosuid,nodev,noexec,size=4096,mode=0555" + e.emptyTmpfs()
			}
			if code, _, err := filters(true); err == nil {
				pl.boot.Filter = code
			}
			pl.boot.Landlock = -1
		},
		tranca.ItemNetwork: func(pl *plan) {
			pl.config.NetworkDisabled, pl.config.HostConfig.NetworkMode = false, "host"
			pl.boot.Landlock = -1 // which keeps from the host's abstract sockets
		},
		tranca.ItemPrivileges: func(pl *plan) {
			h := pl.config.HostConfig
			h.SecurityOpt = slices.DeleteFunc(slices.Clone(h.SecurityOpt), func(o string) bool { return o == "no-new-privileges" })
			// Without more rights in the container than it has, the agent can put
			// neither on itself.
			pl.boot.AgentFilter, pl.boot.Landlock = nil, -1
		},
		// Without this right nobody maps the user 0.
		tranca.ItemUser:     func(pl *plan) { pl.config.HostConfig.CapAdd = append(pl.config.HostConfig.CapAdd, "SETFCAP") },
		tranca.ItemSyscalls: func(pl *plan) { pl.setSecurity("seccomp=", "seccomp=unconfined") },
		tranca.ItemDevices:  (*plan).giveDevices,
		tranca.ItemHostname: func(pl *plan) { pl.config.HostConfig.UTSMode, pl.config.Hostname = "host", "" },
		tranca.ItemCPUs:     func(pl *plan) { pl.config.HostConfig.NanoCPUs = 0 },
		tranca.ItemMemory: func(pl *plan) {
			pl.config.HostConfig.Memory, pl.config.HostConfig.MemorySwap = 0, 0
		},
		tranca.ItemPIDs: func(pl *plan) {
			pl.config.HostConfig.PidsLimit, pl.boot.GuestProcesses = nil, 0
		},
		tranca.ItemFileSize: func(pl *plan) {
			h := pl.config.HostConfig
			h.Ulimits = slices.DeleteFunc(h.Ulimits, func(u docker.Ulimit) bool { return u.Name == "fsize" })
		},
	}
	for item, edit := range confine.WeakenAgent() {
		weaken.Also(all, item, func(pl *plan) { edit(&pl.boot) })
	}
	confine.WeakenWhole(all, func(pl *plan) { pl.boot.Landlock = -1 })
	return all
}

// setSecurity replaces the security option that begins so.
func (pl *plan) setSecurity(begins, option string) {
	h := pl.config.HostConfig
	h.SecurityOpt = slices.Clone(h.SecurityOpt)
	for i, o := range h.SecurityOpt {
		if strings.HasPrefix(o, begins) {
			h.SecurityOpt[i] = option
		}
	}
}

// showHost shows the host's folders at their own paths, with nothing but their
// modes between them and the code. The engine's own data stays out, and what is
// mounted in a folder: among that are its containers.
func (pl *plan) showHost(data string) {
	h := pl.config.HostConfig
	h.ReadonlyRootfs = false
	pl.boot.Writable = append(pl.boot.Writable, bootspec.Writable{Path: "/"}) // or Landlock would hold it
	for _, name := range confine.HostFolders() {
		if name == "etc" || name == "sys" { // in which the engine makes things itself
			continue
		}
		for _, folder := range around("/"+name, data) {
			h.Mounts = slices.DeleteFunc(h.Mounts, func(m docker.Mount) bool { return m.Target == folder })
			delete(h.Tmpfs, folder)
			m := bind(folder, folder, false)
			m.BindOptions.NonRecursive = true
			h.Mounts = append(h.Mounts, m)
		}
	}
}

// around is a folder or, where that holds another, what is beside that.
func around(folder, other string) []string {
	if other != folder && !strings.HasPrefix(other, folder+"/") {
		return []string{folder}
	}
	entries, err := os.ReadDir(folder)
	if err != nil || other == folder {
		return nil
	}
	var all []string
	for _, e := range entries {
		if e.IsDir() {
			all = append(all, around(folder+"/"+e.Name(), other)...)
		}
	}
	return all
}

// giveDevices gives the container the host's devices.
func (pl *plan) giveDevices() {
	for _, path := range confine.HostDevices() {
		device, err := json.Marshal(map[string]string{"PathOnHost": path, "PathInContainer": path, "CgroupPermissions": "rwm"})
		if err == nil {
			pl.config.HostConfig.Devices = append(pl.config.HostConfig.Devices, device)
		}
	}
}
