// Package hostcheck looks at a host for what makes a boundary on it weaker: its
// kernel's settings, what its kernel gives a program without rights, what
// stands beside the sandboxes.
//
// What is looked at, how it is judged, which hostile probes it decides, the risk
// and the mend are data (checks.json), and an operator may put a newer copy at
// [SystemFile]. The code has a small fixed set of kinds of looking ([Kinds]), and
// for one of them a fixed set of trials. Nothing that a list says is executed or
// written; looking changes nothing on the host.
//
// docs/DOCTOR.md has the list and the fields of a row.
package hostcheck
