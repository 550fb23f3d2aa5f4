// Package badinput holds tests alone: what tranca does with input that is
// wrong, too large or hostile, and with a host that fails under it. Each row
// drives the real thing, through package local or as the command in a process
// of its own, and shows three things: a clear error or a named limit, nothing
// lost, and nothing left behind.
//
// The test binary is the command too: it calls itself with the streams,
// signals and exit status of a real process. TRANCA_BIN names another binary
// to try instead, such as one that is to be shipped.
package badinput
