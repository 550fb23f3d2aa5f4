package bootspec

// Omission is a set of things that an agent, a Sentry or its file server does for
// the boundary and can be told to leave out, so that the hostile suite is seen to
// notice. Only a supervisor of a build that can be weakened tells it so (package
// weaken); the message comes from the trusted side, and from nowhere else.
type Omission uint64

// The omissions.
const (
	// Privileges has programs keep the agent's capabilities, and neither mounts
	// nor programs refuse new ones.
	Privileges Omission = 1 << iota
	// Processes has the code in the agent's own pid namespace and shows the
	// /proc that the agent, or the file server, found.
	Processes
	// Users lets the code have the agent's own user.
	Users
	// Devices has device nodes work on every mount.
	Devices
	// End has the agent, and with it the code, live on for a while after its
	// stream has ended.
	End
	// Filter has a Sentry and its file server go without their own filter.
	Filter
	// Network has a Sentry hand sockets on to the kernel of the host.
	Network
	// Sockets has a file server connect to unix sockets.
	Sockets
)

// Has reports whether one of the given is in the set.
func (o Omission) Has(what Omission) bool { return o&what != 0 }
