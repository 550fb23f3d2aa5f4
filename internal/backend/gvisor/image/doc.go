// Package image holds the second binary, gVisor's Sentry and file server,
// embedded at build time, and keeps it on disk where the system can start it.
//
// `make build` compiles cmd/tranca-sentry and compresses it into bin/ before it
// compiles what embeds it. A program built without that step has none, and says
// so when it is asked for one; so does one that was built with the tag
// no_gvisor.
package image
