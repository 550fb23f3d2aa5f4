package seccomp

import "golang.org/x/sys/unix"

// agentRefused are the groups of calls that the agent has no use for after its
// boot. Under cgroup v2 it keeps CAP_SYS_ADMIN in its own user namespace; these
// are what that would be worth to somebody who took it over.
var agentRefused = map[string]bool{
	"mounts": true, "handles": true, "otherProcesses": true, "keys": true, "engines": true,
	"administration": true, "clocks": true, "hardware": true, "absent": true,
}

// agentRule is the rule of a call for the agent; nil is by arguments. It allows
// what the agent's children do before they run code: to change user, give up
// capabilities, install a filter.
func agentRule(p Profile, g group, c call) rule {
	switch {
	case c.name == "setns" && p.Contained:
		return allowIf(1, only(unix.CLONE_NEWUSER), notPermitted)
	case agentRefused[g.name]:
		return g.rule
	case c.name == "setns":
		return notPermitted
	case c.name == "unshare":
		// Each program leaves the agent's cgroup namespace at its birth. The
		// thread that adds watches to folders has a working directory of its
		// own; that makes no namespace and takes no right.
		return allowIf(0, only(unix.CLONE_NEWCGROUP, unix.CLONE_FS), notPermitted)
	case c.name == "clone", c.name == "socket", c.name == "socketpair":
		return nil // as for code, or its children would have less
	}
	return allow
}
