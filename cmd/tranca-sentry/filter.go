package main

import (
	"errors"
	"fmt"
	"maps"
	"os"

	"gvisor.dev/gvisor/pkg/bpf"
	"gvisor.dev/gvisor/pkg/seccomp"
	"gvisor.dev/gvisor/pkg/seccomp/precompiledseccomp"
	"gvisor.dev/gvisor/pkg/sentry/platform"
	kernelfilter "gvisor.dev/gvisor/runsc/boot/filter/config"
	filesfilter "gvisor.dev/gvisor/runsc/fsgofer/filter/config"

	"tranca/internal/guest/bootspec"
	"tranca/internal/guest/sentryspec"
)

// gVisor's filters are rules that it compiles at each start, which takes the
// Sentry 20 ms and the file server 10. What goes into them is here the same each
// time: the process is the first of its pid namespace, and the socket of the
// loader has a fixed number. So they are compiled once, into
// filter_amd64.go, by TestFilters, which also sees that they still are what
// gVisor's rules say. Where something differs all the same they are compiled as
// gVisor does it.

// controllerFD is the number of the loader's socket.
const controllerFD = 60

// compiled is a filter with the values that went into it.
type compiled struct {
	vars    precompiledseccomp.Values
	program []bpf.Instruction
}

// kernelOptions are those of a Sentry without access to files or network of the
// host.
func kernelOptions(spec *sentryspec.Spec) (kernelfilter.Options, error) {
	p, err := platform.Lookup(spec.Platform)
	if err != nil {
		return kernelfilter.Options{}, err
	}
	infos := p.PrecompiledSeccompInfo()
	if len(infos) != 1 {
		return kernelfilter.Options{}, errors.New("platform " + spec.Platform + " has no one filter")
	}
	return kernelfilter.Options{
		Platform: infos[0], ControllerFD: controllerFD, HostNetwork: spec.Omit.Has(bootspec.Network),
	}, nil
}

// kernelProgram is the filter of a Sentry.
func kernelProgram(o kernelfilter.Options) ([]bpf.Instruction, error) {
	if c := kernelCompiled; o.Platform.ConfigKey() == "systrap" && !o.HostNetwork && c.program != nil &&
		os.Getpid() == 1 && maps.Equal(c.vars, o.Vars()) {
		return c.program, nil
	}
	return buildKernel(o)
}

func buildKernel(o kernelfilter.Options) ([]bpf.Instruction, error) {
	allow, deny := kernelfilter.Rules(o)
	p := seccomp.Program{
		RuleSets: []seccomp.RuleSet{{Rules: deny}, {Rules: allow, Action: seccomp.Allow}},
		Options:  kernelfilter.SeccompOptions(o),
	}
	program, _, err := p.Build()
	return program, err
}

// filesOptions are those of a file server that hands out descriptors of files.
var filesOptions = filesfilter.Options{LisafsNeeded: true}

// filesProgram is the filter of a file server.
func filesProgram(o filesfilter.Options) ([]bpf.Instruction, error) {
	if c := filesCompiled; c.program != nil && !o.UDSOpenEnabled && os.Getpid() == 1 && maps.Equal(c.vars, o.Vars()) {
		return c.program, nil
	}
	return buildFiles(o)
}

func buildFiles(o filesfilter.Options) ([]bpf.Instruction, error) {
	allow, deny := filesfilter.Rules(o)
	p := seccomp.Program{RuleSets: []seccomp.RuleSet{{Rules: deny}, {Rules: allow, Action: seccomp.Allow}}}
	program, _, err := p.Build()
	return program, err
}

// confine installs a filter on all threads.
func confine(program []bpf.Instruction, err error) error {
	if err == nil {
		err = seccomp.SetFilter(program)
	}
	if err != nil {
		return fmt.Errorf("filter: %w", err)
	}
	return nil
}
