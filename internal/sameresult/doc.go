// Package sameresult shows that a policy's backend makes no difference to the
// result: programs that end in every way that is known run through the engine
// on each backend that this host has, and what the agent is told, the end
// reason and the limits that were hit are compared with one golden file. An
// operator who changes the word "backend" in a policy changes the boundary and
// nothing that the agent could notice.
package sameresult
