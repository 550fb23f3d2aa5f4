package weaken

import (
	"slices"

	"tranca"
)

// Switches lists each guarantee of each backend, in the order of [tranca.Items],
// with what takes it away or why nothing does.
func Switches() []Switch {
	return slices.Concat(
		of("process", processSwitches()),
		of("subprocess", subprocessSwitches()),
		of("gvisor", gvisorSwitches()),
		of("container", containerSwitches()),
	)
}

// of names the backend of a table.
func of(backend string, all []Switch) []Switch {
	for i := range all {
		all[i].Backend = backend
	}
	return all
}

// What several backends share.
const (
	takesMounts  = "mounts of mode ro and cow are mounted rw, and denied paths are shown"
	takesDisk    = "mounts of mode ro and cow are mounted rw: what is written goes to the host's disk, and is bounded by nothing"
	takesProtect = "what the host may execute in a writable mount is not mounted read-only"
	takesWall    = "the engine keeps no wall clock"
	takesOutput  = "the engine keeps all that a program writes"
	takesEnv     = "programs have the supervisor's environment, too"
	takesFolders = "the host's folders are shown at their own paths, writable to whom they are writable there"
)

func processSwitches() []Switch {
	return []Switch{
		{Item: tranca.ItemIsolation, Takes: "files, processes, ipc, network, hostname, syscalls, landlock, privileges and devices together: what is left is a child in a user namespace"},
		{Item: tranca.ItemFiles, Takes: takesFolders},
		{Item: tranca.ItemMounts, Takes: takesMounts},
		{Item: tranca.ItemMountDisk, Takes: takesDisk},
		{Item: tranca.ItemProtect, Takes: takesProtect},
		{Item: tranca.ItemProcesses, Takes: "agent and code are in the host's pid namespace, with the host's /proc"},
		{Item: tranca.ItemIPC, Takes: "the code is in the host's ipc namespace, and may make unix sockets also where there are mounts"},
		{Item: tranca.ItemNetwork, Takes: "the code is in the host's network namespace"},
		{Item: tranca.ItemUser, Takes: "the code's user on the host is the supervisor's own"},
		{Item: tranca.ItemPrivileges, Takes: "programs keep the agent's capabilities in its user namespace, without no_new_privs, and mounts are not nosuid"},
		{Item: tranca.ItemSyscalls, Takes: "the filters of agent and code allow every call"},
		{
			Item: tranca.ItemLandlock, Takes: "there is no Landlock domain, and the filter beside it allows every call",
			Layer: "mounts and filter: they refuse all that Landlock refuses, so the filter goes with it. Then what only these two refuse is done: a device node is made in an own folder",
		},
		{Item: tranca.ItemDevices, Takes: "the host's device nodes are in /dev, and no mount is nodev"},
		{Item: tranca.ItemEnvironment, Takes: takesEnv},
		{Item: tranca.ItemHostname, Takes: "the code is in the host's uts namespace"},
		{Item: tranca.ItemLifetime, Takes: "neither the death of the supervisor nor the end of the stream ends the agent, for ten minutes"},
		{Item: tranca.ItemWall, Takes: takesWall},
		{Item: tranca.ItemCPUTime, Takes: "nobody watches the CPU time"},
		{Item: tranca.ItemCPUs, Takes: "the control group has no CPU quota"},
		{Item: tranca.ItemMemory, Takes: "the control group has no bound on memory"},
		{Item: tranca.ItemPIDs, Takes: "neither the control group nor RLIMIT_NPROC bounds processes"},
		{Item: tranca.ItemOpenFiles, Takes: "programs have the supervisor's RLIMIT_NOFILE"},
		{Item: tranca.ItemFileSize, Takes: "programs have the supervisor's RLIMIT_FSIZE"},
		{Item: tranca.ItemDisk, Takes: "the writable space is a tmpfs without a size; what bounds memory bounds it still"},
		{Item: tranca.ItemInodes, Takes: "the writable space is a tmpfs without a bound on inodes"},
		{Item: tranca.ItemOutput, Takes: takesOutput},
	}
}

func subprocessSwitches() []Switch {
	return []Switch{
		{Item: tranca.ItemIsolation, None: "it promises a child process and no more: less is no process of its own"},
		{Item: tranca.ItemNetwork, Takes: "the code is in the host's network namespace"},
		{Item: tranca.ItemUser, Takes: "as root, the code's user is root"},
		{Item: tranca.ItemPrivileges, Takes: "programs keep CAP_NET_ADMIN, without no_new_privs"},
		{Item: tranca.ItemEnvironment, Takes: takesEnv},
		{Item: tranca.ItemWall, Takes: takesWall},
		{Item: tranca.ItemCPUTime, Takes: "there is no RLIMIT_CPU"},
		{Item: tranca.ItemOpenFiles, Takes: "programs have the supervisor's RLIMIT_NOFILE"},
		{Item: tranca.ItemFileSize, Takes: "programs have the supervisor's RLIMIT_FSIZE"},
		{Item: tranca.ItemOutput, Takes: takesOutput},
	}
}

func gvisorSwitches() []Switch {
	return []Switch{
		{Item: tranca.ItemIsolation, None: "the kernel in user space is the backend: without it there is nothing that runs the code"},
		{Item: tranca.ItemFiles, Takes: takesFolders + ", by the file server"},
		{Item: tranca.ItemMounts, Takes: takesMounts},
		{Item: tranca.ItemMountDisk, Takes: takesDisk},
		{Item: tranca.ItemProtect, Takes: takesProtect},
		{Item: tranca.ItemProcesses, Takes: "the host's /proc is shown at /proc; a process of the code stays none of the host's, so that it can signal none"},
		{Item: tranca.ItemIPC, Takes: "programs can connect to the host's unix sockets in mounts; gVisor has no way to the host's shared memory and queues"},
		{Item: tranca.ItemNetwork, Takes: "the Sentry is in the host's network namespace and hands sockets on to the host's kernel"},
		{Item: tranca.ItemUser, Takes: "Sentry and code have the supervisor's own user on the host"},
		{Item: tranca.ItemPrivileges, Takes: "programs keep the agent's capabilities, and the Sentry its own; mounts are not nosuid. inside no_new_privs stays, without which gVisor lets them have no filter"},
		{Item: tranca.ItemSyscalls, Takes: "the code's filter allows every call, and Sentry and file server have none"},
		{Item: tranca.ItemLandlock, None: "nothing is claimed but that it isn't needed, and there is no Landlock to take away"},
		{Item: tranca.ItemDevices, Takes: "no mount is nodev, and device nodes in mounts are opened on the host; gVisor lets nothing but its own be in /dev"},
		{Item: tranca.ItemEnvironment, Takes: takesEnv},
		{Item: tranca.ItemHostname, Takes: "gVisor is told the host's name"},
		{Item: tranca.ItemLifetime, Takes: "neither the death of the supervisor nor the end of the stream ends Sentry and agent, for ten minutes"},
		{Item: tranca.ItemWall, Takes: takesWall},
		{Item: tranca.ItemCPUTime, Takes: "nobody watches the CPU time"},
		{Item: tranca.ItemCPUs, Takes: "the control group has no CPU quota, and programs see all CPUs"},
		{Item: tranca.ItemMemory, Takes: "the control group has no bound on memory"},
		{Item: tranca.ItemPIDs, Takes: "neither gVisor nor the host's control group bounds processes"},
		{Item: tranca.ItemOpenFiles, Takes: "programs have gVisor's own RLIMIT_NOFILE"},
		{Item: tranca.ItemFileSize, Takes: "there is no RLIMIT_FSIZE"},
		{Item: tranca.ItemDisk, Takes: "the writable space is a tmpfs without a size; what bounds memory bounds it still"},
		{Item: tranca.ItemInodes, Takes: "the writable space is a tmpfs without a bound on inodes"},
		{Item: tranca.ItemOutput, Takes: takesOutput},
	}
}

// With a runtime that has a kernel of its own what that kernel does itself can't
// be taken away: network, processes, ipc, devices and syscalls stay its own.
func containerSwitches() []Switch {
	return []Switch{
		{Item: tranca.ItemIsolation, Takes: "files, processes, ipc, network, hostname, syscalls, landlock, privileges and devices together: what is left is a child with a root of its own"},
		{Item: tranca.ItemFiles, Takes: "the host's folders but /etc and /sys are shown at their own paths, writable to whom they are writable there, and the root is not read-only"},
		{Item: tranca.ItemMounts, Takes: takesMounts},
		{Item: tranca.ItemMountDisk, Takes: takesDisk},
		{Item: tranca.ItemProtect, Takes: takesProtect},
		{Item: tranca.ItemProcesses, Takes: "the container is in the host's pid namespace, with the host's /proc"},
		{Item: tranca.ItemIPC, Takes: "the container is in the host's ipc namespace, and may make unix sockets also where there are mounts"},
		{Item: tranca.ItemNetwork, Takes: "the container is in the host's network namespace"},
		{Item: tranca.ItemUser, Takes: "the code's user is the supervisor's own, or the engine's where that maps users"},
		{Item: tranca.ItemPrivileges, Takes: "programs keep capabilities in the code's user namespace, without no_new_privs, and mounts are not nosuid; without them the agent has no Landlock and no filter of its own"},
		{Item: tranca.ItemSyscalls, Takes: "the engine has no filter, and those of agent and code allow every call"},
		{
			Item: tranca.ItemLandlock, Takes: "there is no Landlock domain, and the filters beside it allow every call",
			Layer: "mounts and filters: they refuse all that Landlock refuses, so the filters go with it. Then what only these refuse is done: a device node is made in an own folder",
		},
		{Item: tranca.ItemDevices, Takes: "the engine gives the container the host's devices, and no mount is nodev"},
		{Item: tranca.ItemEnvironment, Takes: takesEnv},
		{Item: tranca.ItemHostname, Takes: "the container is in the host's uts namespace"},
		{Item: tranca.ItemLifetime, Takes: "the end of the stream does not end the agent, for ten minutes; the next start removes the container all the same"},
		{Item: tranca.ItemWall, Takes: takesWall},
		{Item: tranca.ItemCPUTime, Takes: "nobody watches the CPU time"},
		{Item: tranca.ItemCPUs, Takes: "the container has no CPU quota"},
		{Item: tranca.ItemMemory, Takes: "the container has no bound on memory"},
		{Item: tranca.ItemPIDs, Takes: "neither the container's group nor RLIMIT_NPROC bounds processes"},
		{Item: tranca.ItemOpenFiles, Takes: "programs have the agent's RLIMIT_NOFILE"},
		{Item: tranca.ItemFileSize, Takes: "there is no RLIMIT_FSIZE"},
		{Item: tranca.ItemDisk, Takes: "the writable space is a tmpfs larger than the host; what bounds memory bounds it still"},
		{Item: tranca.ItemInodes, Takes: "the writable space is a tmpfs with more inodes than anybody makes"},
		{Item: tranca.ItemOutput, Takes: takesOutput},
	}
}
