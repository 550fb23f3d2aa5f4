// Package suite tries hostile programs: each probe behind each boundary, bare
// as its control, and its benign twin, and decides by what the host saw. See
// docs/PROBES.md for how.
package suite
