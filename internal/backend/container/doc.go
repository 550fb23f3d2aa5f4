// Package container makes sandboxes in containers of the engine that the user
// has: Docker or Podman, by its local socket.
//
// The engine makes root, namespaces and control groups; everything that a
// sandbox promises is asked for in the create request, read back from the
// engine, and then looked at once more by effect, from inside by the guest
// agent and from outside by the control group, before any code runs. The guest
// agent comes in as a read-only file from outside of the image and is the
// container's first process; its stream is the container's standard input and
// output.
//
// # What each side does
//
// The engine, for the agent and all below it: no network, a read-only root, a
// bounded writable space, memory, processes and CPUs, no device but the usual
// ones, three capabilities (to be another user, to signal it), no new
// privileges, a system call filter that is stricter than the engine's own. The
// agent, for the code alone: a user of its own outside and, by a user namespace,
// the policy's inside, no capability in any set, tranca's own filter, Landlock,
// resource limits.
//
// # Two ways to the writable space
//
// Where this process is root beside the engine, it makes the space and the
// mounts itself and shows the engine where they are: one file system of bounded
// bytes and inodes behind /work, /tmp and /dev/shm, mounts that nobody can have
// swapped, with owners mapped. Otherwise the engine makes a tmpfs for each of
// the three, whose bounds sum up to the policy's.
package container
