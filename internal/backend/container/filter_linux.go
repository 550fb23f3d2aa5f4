package container

import "tranca/internal/linux/seccomp"

// codeCalls are the calls that code may make.
func codeCalls() []string { return seccomp.Allowed(seccomp.Profile{UnixSockets: true}) }

// filters are the code's own filter and that of the agent after its boot.
func filters(unixSockets bool) (code, agent []byte, err error) {
	c, err := seccomp.Compile(seccomp.Profile{UnixSockets: unixSockets})
	if err != nil {
		return nil, nil, err
	}
	a, err := seccomp.Compile(seccomp.Profile{Agent: true, Contained: true})
	if err != nil {
		return nil, nil, err
	}
	return c.Bytes(), a.Bytes(), nil
}
