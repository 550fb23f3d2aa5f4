// Package supervisor gives a running tranca process an identity that others
// can check, even after a kill -9: a lock file in a runtime folder, held as
// long as the process lives. Whoever finds such a file without a holder knows
// that its supervisor is dead, and may remove what it left behind. A process
// id would not do: it is used again.
//
// # Protocol
//
// A supervisor makes "s-ID" with O_EXCL and takes an exclusive flock on it. A
// sweeper opens the file and tries the same lock without waiting; when it gets
// it, the supervisor is dead, and no second sweeper can come in between. Both
// check after locking that the file still has its name: if not, a sweeper was
// faster, and a supervisor that has just started takes another ID.
//
// The lock belongs to the open file, so it would outlive its process in a
// child that inherited the descriptor. It is close-on-exec, hence no program
// keeps it.
package supervisor
