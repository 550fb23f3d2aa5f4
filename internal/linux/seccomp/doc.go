// Package seccomp compiles the system call filter that the code in a sandbox
// runs under, and installs it.
//
// The filter is an allowlist. The host side compiles it to bytes with
// [Compile]; the guest agent takes the bytes with [FromBytes] and installs them
// in a child as the last step before execve. The compiler and its table are
// reached only from Compile, so a program that only installs does not link
// them.
//
// # Verdicts
//
// A known call that is not on the list gets EPERM. A number that the table does
// not know gets ENOSYS, and so do calls that programs know how to do without
// (clone3, seccomp, Landlock's own, legacy AIO): they take their path for an
// older kernel. Where an argument is refused, the errno is the one by which a
// kernel without that feature would refuse it, so that fallbacks work.
//
// A foreign ABI, which is i386 through int 0x80, x32 through the high bit of
// the number, and 32-bit ARM, gets ENOSYS for every call. No such call reaches
// the kernel, which is all that killing would give, and a program that merely
// probes lives to report it.
//
// # What is compared
//
// A filter sees 64-bit arguments, but the kernel takes most of them as int or
// unsigned int and drops the upper half. A filter that compares all 64 bits
// against a denied value is passed by setting an upper bit. So every test here
// is of the lower 32 bits alone, and every argument that is tested is one whose
// upper half the kernel ignores or gives no meaning. What lies in memory behind
// a pointer is never judged, since another thread can change it after the look:
// a call that would need it is refused whole.
//
// # What it does not do
//
// A filter cannot tell one file from another. flock and inotify on a read-only
// file that two sandboxes share stay possible, and are slow channels between
// them; leases and directory delegations are refused. Without unix sockets,
// what is refused is every way to make a socket that can be given an address:
// socket(AF_UNIX), and socketpair for datagrams, since such a socket can be
// connected a second time. A descriptor handed in from outside is outside of
// this: the agent must not give the code a unix socket.
//
// Filters are installed without SECCOMP_FILTER_FLAG_SPEC_ALLOW, so the kernel
// keeps its speculation mitigations for filtered programs as configured.
package seccomp
