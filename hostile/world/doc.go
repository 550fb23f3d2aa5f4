// Package world is what a hostile program is tried against: secrets, files,
// folders, listeners and a process of the host that stand where a program would
// look for real ones, and the look from the host at what became of them.
//
// One world is made for one trial, so that what is seen is this trial's. The
// same world stands on the host, where backends are tried, and in the disposable
// place, where their controls are.
package world
