package main

import (
	"io"
	"strconv"
	"strings"

	"gvisor.dev/gvisor/pkg/sentry/control"
	"gvisor.dev/gvisor/pkg/urpc"

	"tranca/internal/guest/sentryspec"
)

// codeGroup is the control group of the sandbox's own kernel in which the guest
// agent starts programs; see package boot.
const codeGroup = "/" + sandboxID + "/code"

// answer tells the host what this kernel has counted, as often as it asks. The
// host can't see processes from outside: one of the sandbox is no process of
// the host's.
func answer(host io.ReadWriter, client *urpc.Client) {
	ask := make([]byte, 1)
	for {
		if _, err := io.ReadFull(host, ask); err != nil {
			return // it has gone, or never asks again
		}
		if _, err := host.Write(count(client).Marshal()); err != nil {
			return
		}
	}
}

// count reads the group's counters. What can't be read is 0: before the agent
// has made the group nothing has been refused.
func count(client *urpc.Client) sentryspec.Counters {
	files := []string{"pids.events", "pids.current", "pids.peak"}
	var args control.CgroupsReadArgs
	for _, name := range files {
		args.Args = append(args.Args, control.CgroupsReadArg{
			File: control.CgroupControlFile{Controller: "pids", Path: codeGroup, Name: name},
		})
	}
	var out control.CgroupsResults
	if err := client.Call("Cgroups.ReadControlFiles", &args, &out); err != nil || len(out.Results) != len(files) {
		return sentryspec.Counters{}
	}
	number := func(i int) uint64 {
		text, err := out.Results[i].Unpack()
		if err != nil {
			return 0
		}
		n, _ := strconv.ParseUint(strings.TrimPrefix(strings.TrimSpace(text), "max "), 10, 64)
		return n
	}
	return sentryspec.Counters{Refused: number(0), Processes: number(1), Peak: number(2)}
}
