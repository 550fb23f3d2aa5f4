// Package gvisor is the backend that runs code under a kernel in user space:
// gVisor's Sentry answers the code's system calls, and the host's kernel sees
// only what the Sentry asks of it, which its filter bounds.
//
// # What is made
//
//	supervisor
//	   |
//	   +- file server  own namespaces and user; the root that the code sees,
//	   |               built from the same plan as that of a locked process;
//	   |               four capabilities over files of the sandbox's users;
//	   |               gVisor's filter; the sandbox's control group
//	   |
//	   +- Sentry       own namespaces and another user; an empty root; no
//	        |          capability; gVisor's filter; the sandbox's control group
//	        |
//	        +- stubs   processes in which the code's instructions run; every
//	                   system call of theirs is the Sentry's to answer
//
// Inside, the guest agent is the first process. It starts programs as another
// user, in a control group of the Sentry's own kernel that bounds processes,
// and under the same filter as a locked process, which the Sentry then applies:
// a second layer.
//
// Both processes are the second binary (package image), and neither starts
// itself anew, as runsc does: each is told by one message what to be, and gives
// up what it no longer needs before any code runs. So runsc's `--rootless` is
// not needed without root either: the namespaces are made by tranca first, the
// control group is entered at the first instruction, and a sandbox is the same
// for root and for others but for whose ids it has.
//
// # Files
//
// The Sentry opens no file of the host. runsc's directfs, where the Sentry has
// descriptors of folders and opens files by itself, is off: it is some percent
// faster for programs with very many small files, but a Sentry that was taken
// over would then act on all that is mounted, as the user and with the
// capabilities of the file server. As it is, it can ask the file server, by a
// protocol that the file server checks. What is opened is handed over as a
// descriptor, so that reading and writing costs no question.
//
// Nothing is kept in the Sentry but what it caches: /work, /tmp and /dev/shm are
// parts of one bounded file system of the host's, as for a locked process, and
// the supervisor watches how full it is. So there is no overlay.
//
// # Limits
//
// Memory and CPU time of Sentry, stubs, file server and code are one control
// group's, so that nothing can be had of the file server for nothing; see
// limits_linux.go for what is added for the Sentry, and why. Processes are
// bounded by the Sentry, since one of the code's is no process of the host's.
//
// # How it ends
//
// Programs alone can't be told apart from outside, so the agent is asked to
// kill them, and where it does not answer the machine goes. A Sentry that dies
// takes its stubs along, by its pid namespace, and its file server, whose
// connections end. Whether it died of a limit is what the control group's
// counters say; otherwise it is an error, with what the Sentry said last.
package gvisor
