package tranca

// Item names one thing that a policy asks for and a backend enforces. The
// same names are used in waivers, refusals, guarantees and enforcement
// statements.
type Item string

// The items, in the order in which enforcement statements list them.
const (
	ItemIsolation   Item = "isolation"          // the boundary's own kind and level
	ItemFiles       Item = "files"              // host files hidden or read-only
	ItemMounts      Item = "mounts"             // mounts as declared, no other
	ItemMountDisk   Item = "mounts.disk"        // space that writable mounts may use
	ItemProtect     Item = "mounts.protect"     // host-executable files in writable mounts
	ItemProcesses   Item = "processes"          // host processes hidden, no signals
	ItemIPC         Item = "ipc"                // no shared memory, queues, sockets of others
	ItemNetwork     Item = "network"            // reach of the network
	ItemUser        Item = "user"               // a user of its own on the host
	ItemPrivileges  Item = "privileges"         // no capability, no new privileges
	ItemSyscalls    Item = "syscalls"           // kernel surface
	ItemLandlock    Item = "landlock"           // second layer over files and scopes
	ItemDevices     Item = "devices"            // device nodes
	ItemEnvironment Item = "environment"        // only declared variables
	ItemHostname    Item = "hostname"           // own host name
	ItemLifetime    Item = "lifetime"           // dies with its supervisor
	ItemWall        Item = "limits.wall"        // wall-clock time
	ItemCPUTime     Item = "limits.cpu_time"    // CPU time of the tree
	ItemCPUs        Item = "limits.cpus"        // share of CPUs
	ItemMemory      Item = "limits.memory"      // memory of the tree
	ItemPIDs        Item = "limits.processes"   // processes and threads of the tree
	ItemOpenFiles   Item = "limits.open_files"  // descriptors of each process
	ItemFileSize    Item = "limits.file_size"   // size of one file
	ItemDisk        Item = "limits.disk"        // bytes of tranca's own space
	ItemInodes      Item = "limits.disk.inodes" // inodes of tranca's own space
	ItemOutput      Item = "limits.output"      // bytes of each output stream
)

// Items returns all items in their order.
func Items() []Item {
	return []Item{
		ItemIsolation, ItemFiles, ItemMounts, ItemMountDisk, ItemProtect,
		ItemProcesses, ItemIPC, ItemNetwork, ItemUser, ItemPrivileges,
		ItemSyscalls, ItemLandlock, ItemDevices, ItemEnvironment, ItemHostname,
		ItemLifetime, ItemWall, ItemCPUTime, ItemCPUs, ItemMemory, ItemPIDs,
		ItemOpenFiles, ItemFileSize, ItemDisk, ItemInodes, ItemOutput,
	}
}

// Waivable returns the items that an operator may waive by name, because the
// boundary still stands without them. All others are enforced or refused.
func Waivable() []Item {
	return []Item{
		ItemUser, ItemLandlock, ItemCPUTime, ItemCPUs, ItemMemory, ItemPIDs,
		ItemDisk, ItemInodes,
	}
}

// Status says how an item of the policy stands.
type Status string

// The statuses of an [Enforcement].
const (
	// StatusEnforced: the mechanism was put in place and read back or tried.
	StatusEnforced Status = "enforced"
	// StatusWaived: the operator waived the item by name; Mechanism says what
	// weaker thing still stands, if any.
	StatusWaived Status = "waived"
	// StatusDeclared: somebody else's word, such as a hosted provider's.
	StatusDeclared Status = "declared"
)

// Enforcement says by which mechanism one item was enforced.
type Enforcement struct {
	Item      Item   `json:"item"`
	Mechanism string `json:"mechanism"`
	Status    Status `json:"status"`
}

// Guarantee is one thing that a backend enforces on this host, or not. It was
// found by trying the mechanism, not by reading a version.
type Guarantee struct {
	Item Item `json:"item"`
	// Held says that the mechanism works here.
	Held bool `json:"held"`
	// Mechanism is what enforces the item: "cgroup v2 memory.max".
	Mechanism string `json:"mechanism,omitempty"`
	// Missing is what the host lacks where Held is false.
	Missing string `json:"missing,omitempty"`
	// Mend is one command or change that makes it held; it may be empty.
	Mend string `json:"mend,omitempty"`
}

// Report is what [Backend.Probe] found. The zero value is a backend of which
// nothing is known.
type Report struct {
	Backend string `json:"backend"`
	Level   Level  `json:"level"`
	// Guarantees lists each item that the backend knows of at most once. An
	// item that is not listed is not held.
	Guarantees []Guarantee `json:"guarantees"`
	// Facts are for people: "landlock ABI" → "7". Keys are stable.
	Facts map[string]string `json:"facts,omitempty"`
	// Advisories are the known holes of what the backend is made of here,
	// those that the distribution patched included.
	Advisories []Advisory `json:"advisories,omitempty"`
}

// The facts that policies are checked against. What a report does not say, the
// backend can't do.
const (
	// FactRoots says which root trees the backend can show, parted by a comma
	// and a space: "host" for the host's own, "image" for those of images.
	// Without it there is only the host's.
	FactRoots = "root trees"
	// FactMounts says which modes of a mount the backend makes: "ro", "rw",
	// "cow", parted likewise. Without it they are ro and rw.
	FactMounts = "mount modes"
	// FactRuntime is the name of the OCI runtime that the report is about.
	FactRuntime = "runtime"
)

// Advisory is a known hole in one version of a runtime, engine or other part
// that a backend is made of.
type Advisory struct {
	// ID is the hole's public name: "CVE-2024-21626".
	ID string `json:"id"`
	// Component is what has it: "runc".
	Component string `json:"component"`
	// Version is the one that is there, as it says itself.
	Version string `json:"version"`
	// FixedIn lists the first versions without it, or says which change mends
	// it.
	FixedIn string `json:"fixed_in"`
	// Needs says what an attacker needs, in words.
	Needs string `json:"needs,omitempty"`
	// Patched says where it was found that this build is mended although its
	// version is not: "changelog of the Debian package runc". Empty: it is
	// open.
	Patched string `json:"patched,omitempty"`
}

// String names the hole, what has it, and what mends it, on one line.
func (a Advisory) String() string {
	s := a.Component + " " + a.Version + " has the known hole " + a.ID + ", mended in " + a.FixedIn
	if a.Needs != "" {
		s += "; using it needs " + a.Needs
	}
	if a.Patched != "" {
		s += "; mended here by the distribution, says the " + a.Patched
	}
	return s
}

// Find returns the guarantee for an item. Without one it returns a guarantee
// that is not held.
func (r *Report) Find(item Item) Guarantee {
	for _, g := range r.Guarantees {
		if g.Item == item {
			return g
		}
	}
	return Guarantee{Item: item, Missing: "backend " + r.Backend + " has no mechanism for it"}
}

// Holds reports whether the item is enforced on this host.
func (r *Report) Holds(item Item) bool { return r.Find(item).Held }
