// Package place makes the disposable place in which hostile programs are run
// without a boundary: mount, pid, network, ipc and host name namespaces of its
// own, and for an ordinary user a user namespace. The host's tree is seen there
// through an overlay whose upper side is a small memory file system, so that
// whatever is written, removed or filled is gone with the place; temporary
// folders are the place's own; loopback is its own, with addresses that stand
// for the host's network and for a cloud's metadata service.
//
// It is no boundary against programs that mean harm: it has no filter, and root
// there is root. It takes programs that are bounded and known, which is what
// probes are, and shows that they get what they are after.
//
// Each place is for one trial, in a process of its own that is the first of its
// pid namespace: when it ends, all in it has ended.
package place
