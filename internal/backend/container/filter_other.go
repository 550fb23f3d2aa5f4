//go:build !linux

package container

import (
	"embed"
	"encoding/json"
	"fmt"
	"runtime"
)

// compiled are the filters that package seccomp compiles on Linux, kept for
// builds that can't: of code with and without unix sockets, and of the agent.
//
//go:embed filters
var compiled embed.FS

// codeCalls are the calls that code may make.
func codeCalls() []string {
	var names []string
	text, err := compiled.ReadFile("filters/calls.json")
	if err != nil || json.Unmarshal(text, &names) != nil {
		return nil // nothing is allowed then
	}
	return names
}

// filters are the code's own filter and that of the agent after its boot.
func filters(unixSockets bool) (code, agent []byte, err error) {
	kind := "code"
	if unixSockets {
		kind = "code-unix"
	}
	if code, err = compiled.ReadFile(fmt.Sprintf("filters/%s-%s.bpf", kind, runtime.GOARCH)); err != nil {
		return nil, nil, err
	}
	agent, err = compiled.ReadFile(fmt.Sprintf("filters/agent-%s.bpf", runtime.GOARCH))
	return code, agent, err
}
