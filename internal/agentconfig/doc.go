// Package agentconfig writes tranca into the configuration of the programs that
// agents run in: Claude Code, Cursor, VS Code and Codex.
//
// These files belong to the user, and other programs write them too. So an
// edit changes the few bytes that it is about and leaves every other one as it
// is, comments included; what can't be edited with certainty is refused, and
// the user is shown what to paste. A file is replaced in one step, after a copy
// of it was kept, and only where nobody else could have chosen which file that
// is.
package agentconfig
