// Package archtest holds the rules that keep the tree readable and the
// boundary in one place: who may import whom, where unsafe stands, how long a
// file may be, what the binaries link. docs/ARCHITECTURE.md says why.
//
// Each rule is a function from data to a list of violations, so that its test
// first shows it a violation and then the tree.
package archtest
