// Package confine is what the backends share that confine with the kernel of
// the host: what was found out about it, user ids and control groups for each
// sandbox, mounts and the host's own tree as a boot message describes them,
// the thread that forks, the first talk with a guest agent, and the box that
// watches limits from outside and takes everything down.
//
// It decides nothing about what runs inside. A backend makes a [Plan], forks
// by scripts of its own, and gives what it has made to a [Box].
package confine
