// Package landlock makes Landlock rulesets: the second layer over files, and
// scopes for signals and abstract sockets.
//
// A ruleset handles every right that the kernel's ABI has and that this package
// knows, so everything that no rule names is denied. It is never a best effort:
// what a [Config] asks and the kernel lacks is an error that names the ABI
// needed, and what an old ABI leaves open is told by [Lacks]. Later ABIs than
// [Newest] are taken as Newest.
//
// The ruleset is made once, by whoever sees the sandbox's mounts; a child then
// restricts itself by one system call on the descriptor, [Restrict] or its raw
// form. Each such call makes a domain of its own: programs that were started
// apart can't signal or trace each other, and find no abstract socket of each
// other, while their children share the domain.
//
// Two limits of the mechanism. Rules bind to inodes, not to names, so a rule
// must be made from a path without symbolic links. And a descriptor that was
// opened before the restriction keeps what it could do then.
package landlock
