package cgroup

// Feature is one thing that control groups can do for a sandbox.
type Feature struct {
	// Held says that it was tried here and works.
	Held bool
	// Mechanism is what does it: "cgroup v1 pids.max".
	Mechanism string
	// Missing is what this host lacks where Held is false.
	Missing string
	// Mend is one command or change that makes it held; it may be empty.
	Mend string
}

// Support says what [Find] found by trying.
type Support struct {
	Memory  Feature // bytes of the tree
	PIDs    Feature // processes and threads of the tree
	CPU     Feature // share of CPUs
	CPUTime Feature // CPU time of the tree, counted
	Kill    Feature // the whole tree dies at once
	Version string  // "v1", "v2", "hybrid", or "none"
}
