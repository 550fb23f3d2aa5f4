package policy

import (
	"slices"
	"sync"
	"time"

	"tranca"
)

const (
	version = 1

	kib = int64(1) << 10
	mib = int64(1) << 20
	gib = int64(1) << 30
	tib = int64(1) << 40
)

// defaultFloor is the floor of a policy that names none. docs/POLICY.md says why.
const defaultFloor = "gvisor"

// table returns every field of a policy file, in the order of documents. The
// fields of one mount are in mountTable. It is made once, and nobody changes
// it.
var table = sync.OnceValue(func() []field {
	return slices.Concat(headFields(), limitFields(), tailFields())
})

func headFields() []field {
	return []field{
		{
			path: "version", kind: kindVersion,
			doc: "The version of this form. Required.",
		},
		{
			path: "floor", kind: kindWord, item: tranca.ItemIsolation, flag: "--isolation",
			text: defaultFloor, words: levelWords(),
			doc: "The lowest isolation level that is accepted. Nothing runs below it.",
			ref: func(p *tranca.Policy) any { return &p.Floor },
		},
		{
			path: "backend", kind: kindName, item: tranca.ItemIsolation, flag: "--backend",
			doc: "The backend to use; left out, the cheapest usable one at or above the floor.",
			ref: func(p *tranca.Policy) any { return &p.Backend },
		},
		{
			path: "image", kind: kindName, item: tranca.ItemFiles, flag: "--image", text: tranca.ImageHost,
			pattern: `^[a-z0-9][A-Za-z0-9._:/@-]*$`,
			doc:     "The root tree, read-only: \"host\" is a minimal tree of this host, anything else the name or digest of an image in tranca's store.",
			ref:     func(p *tranca.Policy) any { return &p.Image },
		},
		{
			path: "runtime", kind: kindName, item: tranca.ItemIsolation, flag: "--runtime",
			pattern: `^[a-z0-9][a-z0-9._-]*$`,
			doc:     "The OCI runtime that containers are run by, such as runc, crun, runsc or kata; left out, the engine's own choice. It decides their isolation level.",
			ref:     func(p *tranca.Policy) any { return &p.Runtime },
		},
		{
			path: "known_vulnerabilities", kind: kindWord, item: tranca.ItemIsolation, text: string(tranca.VulnerabilitiesWarn),
			words: []string{string(tranca.VulnerabilitiesWarn), string(tranca.VulnerabilitiesRefuse)},
			doc:   "What happens where a runtime or engine has a version with a known hole that the distribution has not mended: \"warn\" names it in the result, \"refuse\" runs nothing.",
			ref:   func(p *tranca.Policy) any { return &p.KnownVulnerabilities },
		},
	}
}

func limitFields() []field {
	return append([]field{
		{
			path: "limits.wall", kind: kindDuration, item: tranca.ItemWall, flag: "--timeout",
			def: int64(30 * time.Second), min: int64(10 * time.Millisecond), max: int64(24 * time.Hour),
			doc:  "Wall-clock time of one run. It ends the run.",
			ref:  func(p *tranca.Policy) any { return &p.Limits.Wall },
			ask:  func(n *tranca.Narrowing) any { return &n.Wall },
			over: func(o *Overrides) any { return o.Wall },
		},
		{
			path: "limits.cpu_time", kind: kindDuration, item: tranca.ItemCPUTime, flag: "--cpu-time",
			def: int64(30 * time.Second), min: int64(10 * time.Millisecond), max: int64(24 * time.Hour),
			doc:  "CPU time, user and system, of all processes together. It ends the run.",
			ref:  func(p *tranca.Policy) any { return &p.Limits.CPUTime },
			ask:  func(n *tranca.Narrowing) any { return &n.CPUTime },
			over: func(o *Overrides) any { return o.CPUTime },
		},
		{
			path: "limits.cpus", kind: kindCPUs, item: tranca.ItemCPUs, flag: "--cpus",
			def: 1000, min: 10, max: 256_000,
			doc:  "Share of CPUs. It slows the code down.",
			ref:  func(p *tranca.Policy) any { return &p.Limits.MilliCPUs },
			ask:  func(n *tranca.Narrowing) any { return &n.MilliCPUs },
			over: func(o *Overrides) any { return o.MilliCPUs },
		},
		{
			path: "limits.memory", kind: kindSize, item: tranca.ItemMemory, flag: "--memory",
			def: 256 * mib, min: 8 * mib, max: tib,
			doc:  "Memory of all processes together, files in memory included. It ends the run.",
			ref:  func(p *tranca.Policy) any { return &p.Limits.Memory },
			ask:  func(n *tranca.Narrowing) any { return &n.Memory },
			over: func(o *Overrides) any { return o.Memory },
		},
		{
			path: "limits.processes", kind: kindCount, item: tranca.ItemPIDs, flag: "--pids",
			def: 64, min: 1, max: 32768,
			doc:  "Processes and threads at one moment. More are refused.",
			ref:  func(p *tranca.Policy) any { return &p.Limits.Processes },
			ask:  func(n *tranca.Narrowing) any { return &n.Processes },
			over: func(o *Overrides) any { return o.Processes },
		},
		{
			path: "limits.open_files", kind: kindCount, item: tranca.ItemOpenFiles, flag: "--open-files",
			def: 256, min: 16, max: 65536,
			doc:  "Open descriptors of each process. More are refused.",
			ref:  func(p *tranca.Policy) any { return &p.Limits.OpenFiles },
			ask:  func(n *tranca.Narrowing) any { return &n.OpenFiles },
			over: func(o *Overrides) any { return o.OpenFiles },
		},
		{
			path: "limits.file_size", kind: kindSize, item: tranca.ItemFileSize, flag: "--file-size",
			def: 64 * mib, min: kib, max: tib,
			doc:  "Size of any one file that the code writes. More is refused.",
			ref:  func(p *tranca.Policy) any { return &p.Limits.FileSize },
			ask:  func(n *tranca.Narrowing) any { return &n.FileSize },
			over: func(o *Overrides) any { return o.FileSize },
		},
	}, spaceFields()...)
}

func spaceFields() []field {
	return []field{
		{
			path: "limits.disk.size", kind: kindSize, item: tranca.ItemDisk, flag: "--disk",
			def: 64 * mib, min: mib, max: 64 * gib,
			doc:  "Space of /work, /tmp and /dev/shm together. More is refused.",
			ref:  func(p *tranca.Policy) any { return &p.Limits.Disk.Size },
			ask:  func(n *tranca.Narrowing) any { return &n.DiskSize },
			over: func(o *Overrides) any { return o.DiskSize },
		},
		{
			path: "limits.disk.inodes", kind: kindCount, item: tranca.ItemInodes, flag: "--inodes",
			def: 16384, min: 16, max: 4 << 20,
			doc:  "Files, folders and links in that space. More are refused.",
			ref:  func(p *tranca.Policy) any { return &p.Limits.Disk.Inodes },
			ask:  func(n *tranca.Narrowing) any { return &n.DiskInodes },
			over: func(o *Overrides) any { return o.DiskInodes },
		},
		{
			path: "limits.disk.backing", kind: kindWord, item: tranca.ItemDisk, text: "memory",
			words: []string{string(tranca.BackingMemory), string(tranca.BackingFile)},
			doc:   "What that space is made of: \"memory\" is fast and counts as memory too; \"file\" lies on the host's disk, can be larger, and costs the making of a file system at each start.",
			ref:   func(p *tranca.Policy) any { return &p.Limits.Disk.Backing },
		},
		{
			path: "limits.output.size", kind: kindSize, item: tranca.ItemOutput, flag: "--output-limit",
			def: mib, min: 1, max: 64 * mib,
			doc:  "Bytes kept of each of standard output and standard error.",
			ref:  func(p *tranca.Policy) any { return &p.Limits.Output.Size },
			ask:  func(n *tranca.Narrowing) any { return &n.Output },
			over: func(o *Overrides) any { return o.Output },
		},
		{
			path: "limits.output.on_exceed", kind: kindWord, item: tranca.ItemOutput, text: "truncate",
			words: []string{string(tranca.ExceedTruncate), string(tranca.ExceedKill)},
			doc:   "What happens to more: \"truncate\" drops it and the code goes on; \"kill\" ends the run.",
			ref:   func(p *tranca.Policy) any { return &p.Limits.Output.OnExceed },
		},
	}
}

func tailFields() []field {
	return []field{
		{
			path: "mounts", kind: kindMounts, item: tranca.ItemMounts, flag: "--mount",
			doc: "Host files and folders that the code may see, at most 64.",
		},
		{
			path: "environment", kind: kindEnv, item: tranca.ItemEnvironment, flag: "--env",
			doc: "Variables with their values. Nothing is inherited.",
		},
		{
			path: "user", kind: kindUser, item: tranca.ItemUser,
			doc: "The user inside: \"user\" (1000:1000), \"nobody\" (65534:65534), a UID or UID:GID, never 0.",
		},
		{
			path: "workdir", kind: kindName, flag: "--workdir", text: "/work",
			doc: "Where the code starts: an absolute path inside.",
			ref: func(p *tranca.Policy) any { return &p.Workdir },
		},
		{
			path: "hostname", kind: kindName, item: tranca.ItemHostname, text: "sandbox",
			doc: "What the code finds as its host's name.",
			ref: func(p *tranca.Policy) any { return &p.Hostname },
		},
		{
			path: "network", kind: kindWord, item: tranca.ItemNetwork, text: "none",
			words: []string{string(tranca.NetworkNone)},
			doc:   "The reach of the network. \"none\" leaves the code its own loopback.",
			ref:   func(p *tranca.Policy) any { return &p.Network },
		},
		{
			path: "landlock.min_abi", kind: kindCount, item: tranca.ItemLandlock, def: 1, min: 0, max: 64,
			doc: "The lowest Landlock ABI that is accepted, where the backend uses Landlock. 0 accepts any, but not none.",
			ref: func(p *tranca.Policy) any { return &p.MinLandlockABI },
		},
		{
			path: "chroot", kind: kindName, item: tranca.ItemFiles,
			doc: "A host folder that becomes the root of programs under the backend subprocess. It needs root, holds what the programs need, /tmp and /dev/null among it, and makes no stronger boundary of it.",
			ref: func(p *tranca.Policy) any { return &p.Chroot },
		},
		{
			path: "session.keep_files", kind: kindBool,
			doc: "Let the calls of one agent session share a sandbox, and so its files.",
			ref: func(p *tranca.Policy) any { return &p.KeepFiles },
		},
		{
			path: "waive", kind: kindItems, flag: "--waive", words: itemWords(tranca.Waivable()),
			doc: "Items that need not be enforced. The result says \"waived\" for each.",
		},
	}
}

// mountModes are the modes of a mount.
var mountModes = []string{"ro", "rw", "cow"}

// mountTable returns the fields of one mount. Their paths are relative to it.
func mountTable() []field {
	return []field{
		{
			path: "source", kind: kindName,
			doc: "An absolute host path. No part of it may be a symbolic link. Required.",
		},
		{
			path: "target", kind: kindName,
			doc: "An absolute path inside. Required.",
		},
		{
			path: "mode", kind: kindWord, text: "ro", words: mountModes,
			doc: "\"ro\", \"rw\", or \"cow\": the code may write, but to a copy in its own space, and the host's files stay as they are until the operator applies the changes.",
		},
		{
			path: "disk", kind: kindWord, item: tranca.ItemMountDisk, words: []string{"unbounded"},
			doc: "\"unbounded\" accepts that a writable mount has no bound on its bytes. Without it such a mount is refused where the host has no quota for it.",
		},
		{
			path: "deny", kind: kindPaths,
			doc: "Paths below the target that stay hidden.",
		},
		{
			path: "protect", kind: kindPaths, item: tranca.ItemProtect,
			doc: "Names and paths that stay read-only in a mount of mode rw or cow, because the host may execute them. Left out, the default list; [] protects nothing.",
		},
	}
}

func levelWords() []string {
	var words []string
	for _, l := range tranca.Levels() {
		words = append(words, l.String())
	}
	return words
}

func itemWords(items []tranca.Item) []string {
	words := make([]string, len(items))
	for i, item := range items {
		words[i] = string(item)
	}
	return words
}

// Default returns the policy of somebody who asks for nothing.
func Default() tranca.Policy {
	p := tranca.Policy{User: defaultUser, Source: SourceDefault}
	for _, f := range table() {
		switch {
		case f.numeric():
			setNumber(f.ref(&p), f.def)
		case f.text != "":
			setWord(f.ref(&p), f.text)
		}
	}
	return p
}

// What [tranca.Policy] has as Source where the policy is no file.
const (
	SourceDefault = "default"
	SourceFlags   = "flags"
)
