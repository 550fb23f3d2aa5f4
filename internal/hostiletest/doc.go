// Package hostiletest says where each row of the catalogue of hostile programs
// is tested, and which are not, with the reason; and it has what the rows of
// every backend are played with and judged by. Its own tests are those rows
// that need the whole of tranca around the process backend: the wall clock,
// output, what is collected from writable mounts, requests.
package hostiletest
