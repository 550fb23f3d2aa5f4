// Package process is the backend that runs code as a locked process: in
// namespaces of its own, over a root made of read-only parts of the host, in
// cgroups, as a user that exists nowhere else, under a seccomp allowlist and
// Landlock, with no capability.
//
// It shares the host's kernel. Linux 5.15 and later, as root or as an
// unprivileged user.
//
// # How a sandbox is made
//
// The supervisor takes a block of user ids, makes a cgroup with one leaf for
// the code and one for the guest agent, and forks the agent, from a sealed
// file without a name, straight into new namespaces. It maps the users, and
// sends one boot message. The agent (package boot) builds the root, gives the
// code a pid namespace of its own inside the agent's, locks down the thread
// that starts programs, drops its capabilities and answers. From then on the
// stream carries requests; package guest/host speaks them.
//
// # How it ends
//
// Close kills the code's cgroup, then the agent, whose death takes its pid
// namespace along, waits for both, and removes the cgroup. When the supervisor
// dies instead, the kernel kills the agent by its parent death signal, and the
// agent also ends when its stream does. What a dead supervisor leaves, empty
// cgroup folders, the next one sweeps.
package process
