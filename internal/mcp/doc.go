// Package mcp serves run_python and run_command to an agent by the Model
// Context Protocol.
//
// At the other end is the agent, not the operator. So it is told what the
// policy allows and what came of its code, and never what stands behind: no
// backend, level, mechanism or path of the host is in a description, a result
// or an error. What only the operator may know goes to the log.
package mcp
