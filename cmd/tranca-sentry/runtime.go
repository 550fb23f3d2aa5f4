package main

import (
	"github.com/google/subcommands"
	"gvisor.dev/gvisor/runsc/cli"
	"gvisor.dev/gvisor/runsc/cmd"
	"gvisor.dev/gvisor/runsc/cmd/sentry/sentrycmd"
	"gvisor.dev/gvisor/runsc/cmd/util"
)

// runRuntime is gVisor's runtime for container engines. It ends the process.
func runRuntime() {
	cli.Run(nil, runtimeCommands(), []subcommands.Command{new(cmd.Platforms), new(cmd.Syscalls)})
}

// runtimeCommands are those that an engine and a person at its command line
// need. gVisor's own table has more of them: those would bring a prebuilt
// binary of 47 MB along, and ways to install into an engine's configuration,
// to profile and to trace.
func runtimeCommands() map[util.SubCommand]string {
	const user, internal = "", "internal use only"
	return map[util.SubCommand]string{
		new(cmd.Create):       user,
		new(cmd.Delete):       user,
		new(cmd.Do):           user,
		new(cmd.Events):       user,
		new(cmd.Exec):         user,
		new(cmd.Features):     user,
		new(cmd.Kill):         user,
		new(cmd.List):         user,
		new(cmd.PS):           user,
		new(cmd.Pause):        user,
		new(cmd.Resume):       user,
		new(cmd.Run):          user,
		new(cmd.Spec):         user,
		new(cmd.Start):        user,
		new(cmd.State):        user,
		new(cmd.Update):       user,
		new(cmd.Wait):         user,
		new(sentrycmd.Boot):   internal,
		new(cmd.Gofer):        internal,
		new(sentrycmd.Umount): internal,
	}
}
