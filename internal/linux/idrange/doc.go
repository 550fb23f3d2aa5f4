// Package idrange gives each sandbox a block of user and group ids of its own
// on the host, so that no two sandboxes, of this tranca or another one, share
// a user: they can't signal, see or starve each other by it.
//
// # Where the ids come from
//
// Root takes them from a range that is set aside: 2,100,000,000 up to
// 2,100,524,287. It is below 2^31, above what useradd, container engines,
// systemd (524,288 to 1,879,048,191 and from 2,147,352,576) and SSSD (up to
// 2,000,200,000) hand out. Ids that /etc/passwd, /etc/group, /etc/subuid or
// /etc/subgid mention are left out nevertheless. Another user takes them from
// his own lines in /etc/subuid and /etc/subgid, by newuidmap and newgidmap.
//
// # How they are kept apart
//
// A block is eight ids from a multiple of eight. Whoever holds the flock on
// the file "ids-N" in the runtime folder has the block number N, as user ids
// and as group ids alike. The kernel lets the lock go when its holders are
// dead, so a kill -9 needs no cleaning. The search starts at a random block,
// so that it mostly ends with the first try.
//
// The file is removed with the block. As in package supervisor, a lock counts
// only if the file still has its name afterwards.
package idrange
