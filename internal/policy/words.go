package policy

import (
	"fmt"
	"strings"

	"tranca"
)

// itemText is what people read about an item.
type itemText struct {
	item tranca.Item
	// short completes "the policy asks for ...".
	short string
	// may says that the sentence is about what the code may do; the others
	// say what it can't.
	may bool
	// sentence says what holds for the code, under this policy.
	sentence func(p *tranca.Policy) string
}

func always(s string) func(*tranca.Policy) string {
	return func(*tranca.Policy) string { return s }
}

// itemTexts returns the texts of all items, in their order.
func itemTexts() []itemText {
	return append(boundaryTexts(), limitTexts()...)
}

func boundaryTexts() []itemText {
	return []itemText{
		{item: tranca.ItemIsolation, short: "a boundary of its own", sentence: func(p *tranca.Policy) string {
			return fmt.Sprintf("It never runs behind anything weaker than the isolation level %q.", p.Floor.String())
		}},
		{item: tranca.ItemFiles, short: "host files hidden or read-only", sentence: filesSentence},
		{item: tranca.ItemMounts, short: "mounts as declared", may: true, sentence: mountsSentence},
		{item: tranca.ItemMountDisk, short: "a bound on what writable mounts take", sentence: always(
			"It can't fill the disk behind its writable mounts.")},
		{item: tranca.ItemProtect, short: "files that the host executes protected", sentence: always(
			"In writable mounts it can't change what programs on the host execute by themselves.")},
		{item: tranca.ItemProcesses, short: "host processes hidden", sentence: always(
			"It can't see or signal processes other than its own.")},
		{item: tranca.ItemIPC, short: "no shared memory or sockets of others", sentence: always(
			"It can't reach shared memory, message queues or sockets of other programs.")},
		{item: tranca.ItemNetwork, short: "network none", sentence: always(
			"It can't use any network but its own loopback.")},
		{item: tranca.ItemUser, short: "a user of its own on the host", sentence: func(p *tranca.Policy) string {
			return fmt.Sprintf("It runs as %s (%d:%d) inside, which is a user of its own on the host.", p.User.Name, p.User.UID, p.User.GID)
		}},
		{item: tranca.ItemPrivileges, short: "no capability, no new privileges", sentence: always(
			"It has no capability and can't get new privileges.")},
		{item: tranca.ItemSyscalls, short: "a small kernel surface", sentence: always(
			"It can't call parts of the kernel that programs don't need.")},
		{item: tranca.ItemLandlock, short: "Landlock as a second layer", sentence: always(
			"A second layer of the kernel guards files and signals, should the first fail.")},
		{item: tranca.ItemDevices, short: "no device of the host but a harmless few", sentence: always(
			"It can't open devices but null, zero, full, random, urandom and its own terminals.")},
		{item: tranca.ItemEnvironment, short: "only declared variables", may: true, sentence: envSentence},
		{item: tranca.ItemHostname, short: "a host name of its own", sentence: func(p *tranca.Policy) string {
			return fmt.Sprintf("It sees the host name %q, not the host's.", p.Hostname)
		}},
		{item: tranca.ItemLifetime, short: "that nothing of it outlives tranca", sentence: always(
			"Nothing of it lives on when tranca ends, however it ends.")},
	}
}

func limitTexts() []itemText {
	return []itemText{
		{item: tranca.ItemWall, short: "wall-clock time", may: true, sentence: func(p *tranca.Policy) string {
			return "It may run for " + FormatDuration(p.Limits.Wall) + ", then it is ended."
		}},
		{item: tranca.ItemCPUTime, short: "CPU time", may: true, sentence: func(p *tranca.Policy) string {
			return "It may use " + FormatDuration(p.Limits.CPUTime) + " of CPU time, then it is ended."
		}},
		{item: tranca.ItemCPUs, short: "share of CPUs", may: true, sentence: func(p *tranca.Policy) string {
			return "It may use " + FormatCPUs(p.Limits.MilliCPUs) + " of a CPU's time at most; more is throttled."
		}},
		{item: tranca.ItemMemory, short: "memory", may: true, sentence: func(p *tranca.Policy) string {
			return "It may use " + FormatSize(p.Limits.Memory) + " of memory, then it is ended."
		}},
		{item: tranca.ItemPIDs, short: "processes", may: true, sentence: func(p *tranca.Policy) string {
			return fmt.Sprintf("It may have %d processes and threads at one moment; more are refused.", p.Limits.Processes)
		}},
		{item: tranca.ItemOpenFiles, short: "open files", may: true, sentence: func(p *tranca.Policy) string {
			return fmt.Sprintf("Each process may have %d open files; more are refused.", p.Limits.OpenFiles)
		}},
		{item: tranca.ItemFileSize, short: "file size", may: true, sentence: func(p *tranca.Policy) string {
			return "It may write files of up to " + FormatSize(p.Limits.FileSize) + " each; more is refused."
		}},
		{item: tranca.ItemDisk, short: "writable space", may: true, sentence: diskSentence},
		{item: tranca.ItemInodes, short: "files in the writable space", may: true, sentence: func(p *tranca.Policy) string {
			return fmt.Sprintf("It may make %d files, folders and links there; more are refused.", p.Limits.Disk.Inodes)
		}},
		{item: tranca.ItemOutput, short: "output", may: true, sentence: outputSentence},
	}
}

func filesSentence(p *tranca.Policy) string {
	if p.Image == tranca.ImageHost {
		return "It can't read the host's files, but for a minimal read-only system tree and the mounts."
	}
	return "It can't read the host's files, but for the mounts; its system is the read-only tree of the image " + p.Image + "."
}

func mountsSentence(p *tranca.Policy) string {
	if len(p.Mounts) == 0 {
		return "It sees no mount of the host."
	}
	parts := make([]string, len(p.Mounts))
	for i, m := range p.Mounts {
		verb := "read"
		if m.Writable {
			verb = "read and write"
			if m.DiskUnbounded {
				verb += ", without a bound on the bytes,"
			}
		}
		if m.Cow {
			verb = "read, and write to a copy of its own,"
		}
		parts[i] = fmt.Sprintf("%s %s as %s", verb, clip(m.Source), clip(m.Target))
		if len(m.Deny) > 0 {
			parts[i] += " but for " + clipped(m.Deny)
		}
	}
	return "It may " + strings.Join(parts, "; ") + "; no other mount."
}

func envSentence(p *tranca.Policy) string {
	if len(p.Env) == 0 {
		return "It sees no variable but HOME, PATH, USER, LOGNAME, LANG, TMPDIR and PWD, which tranca sets."
	}
	return "It sees the variables " + clipped(sortedKeys(p.Env)) + " and those that tranca sets; nothing is inherited."
}

func diskSentence(p *tranca.Policy) string {
	d := p.Limits.Disk
	where := "in memory, which counts as memory too"
	if d.Backing == tranca.BackingFile {
		where = "in a file on the host's disk"
	}
	return fmt.Sprintf("It may write %s to /work, /tmp and /dev/shm together (%s); more is refused.", FormatSize(d.Size), where)
}

func outputSentence(p *tranca.Policy) string {
	o := p.Limits.Output
	s := "It may print " + FormatSize(o.Size) + " to each of standard output and standard error; "
	if o.OnExceed == tranca.ExceedKill {
		return s + "more ends it."
	}
	return s + "more is dropped and it goes on."
}

// Asked says in a few words what a policy asks for an item: "limits.memory
// 256MiB".
func Asked(p tranca.Policy, item tranca.Item) string {
	for _, f := range table() {
		if f.item == item && f.numeric() && item != tranca.ItemLandlock {
			return f.path + " " + f.format(number(f.ref(&p)))
		}
	}
	if item == tranca.ItemIsolation {
		return "isolation " + p.Floor.String() + " or stronger"
	}
	for _, t := range itemTexts() {
		if t.item == item {
			return t.short
		}
	}
	return string(item)
}

func clipped(list []string) string {
	const most = 8
	out := make([]string, 0, most)
	for i, s := range list {
		if i == most {
			out = append(out, fmt.Sprintf("and %d more", len(list)-most))
			break
		}
		out = append(out, clip(s))
	}
	return strings.Join(out, ", ")
}
