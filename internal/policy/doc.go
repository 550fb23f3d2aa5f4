// Package policy reads, checks, narrows and explains policies.
//
// All of it is pure: no function touches the file system, the environment or
// the host. Files are found and read by package policyfile; what the host can
// enforce comes in as a [tranca.Report].
//
// One table (table.go) lists every field of a policy with its unit, default
// and bounds. Defaults, parser, validation, narrowing, flags, starter file,
// JSON schema and docs/POLICY.md are all made from it, so that they can't
// disagree.
//
// Every function is safe for concurrent use and leaves its arguments alone.
package policy
