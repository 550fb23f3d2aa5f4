// Package hostsetup plans the changes to a host that need root once, so that
// tranca can then run without it: an AppArmor profile where the host restricts
// user namespaces, subordinate ids, and control groups that a user may use.
//
// A plan is shell text. What `tranca setup` prints is what it runs, so the
// person who reads it sees all that is done, and how to undo it.
package hostsetup
