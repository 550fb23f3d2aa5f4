package container

import (
	"sync"

	"tranca/internal/linux/seccomp"
)

// codeCalls are the calls that code may make.
func codeCalls() []string { return seccomp.Allowed(seccomp.Profile{UnixSockets: true}) }

// The filters that sandboxes share.
var (
	codeFilter     = compileOnce(seccomp.Profile{})
	codeUnixFilter = compileOnce(seccomp.Profile{UnixSockets: true})
	agentFilter    = compileOnce(seccomp.Profile{Agent: true, Contained: true})
)

// compileOnce compiles a filter when it is first needed.
func compileOnce(p seccomp.Profile) func() ([]byte, error) {
	return sync.OnceValues(func() ([]byte, error) {
		prog, err := seccomp.Compile(p)
		if err != nil {
			return nil, err
		}
		return prog.Bytes(), nil
	})
}

// filters are the code's own filter and that of the agent after its boot.
func filters(unixSockets bool) (code, agent []byte, err error) {
	compiled := codeFilter
	if unixSockets {
		compiled = codeUnixFilter
	}
	if code, err = compiled(); err != nil {
		return nil, nil, err
	}
	agent, err = agentFilter()
	return code, agent, err
}
