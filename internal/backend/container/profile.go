package container

import (
	"encoding/json"
	"fmt"
	"runtime"
)

// The kernel's numbers that the filter compares. They are Linux's wherever
// tranca itself runs.
const (
	cloneFS        = 0x200
	cloneNewUser   = 0x10000000
	cloneForbidden = 0x00020000 | 0x02000000 | 0x04000000 | 0x08000000 | 0x20000000 | 0x40000000 | 0x8000
	lowerHalf      = 0xffffffff
	errnoENOSYS    = 38
	errnoEPERM     = 1
)

// agentCalls are what the guest agent does beyond what code may: become the
// code's user, give up rights, restrict itself.
var agentCalls = []string{
	"capset", "landlock_add_rule", "landlock_create_ruleset", "landlock_restrict_self", "openat2",
	"seccomp", "setfsgid", "setfsuid", "setgid", "setgroups", "setregid", "setresgid", "setresuid",
	"setreuid", "setuid",
}

// judged are calls that the filter allows by their arguments alone.
var judged = map[string]bool{"clone": true, "setns": true, "unshare": true, "socket": true, "personality": true}

// seccompProfile is a filter in the form that engines take.
type seccompProfile struct {
	DefaultAction   string        `json:"defaultAction"`
	DefaultErrnoRet uint          `json:"defaultErrnoRet"`
	Architectures   []string      `json:"architectures"`
	Syscalls        []seccompRule `json:"syscalls"`
}

type seccompRule struct {
	Names    []string     `json:"names"`
	Action   string       `json:"action"`
	ErrnoRet *uint        `json:"errnoRet,omitempty"`
	Args     []seccompArg `json:"args,omitempty"`
}

type seccompArg struct {
	Index    uint   `json:"index"`
	Value    uint64 `json:"value"`
	ValueTwo uint64 `json:"valueTwo"`
	Op       string `json:"op"`
}

// profile makes the filter that the engine puts on everything in the container.
// It is the allowlist of the process backend and what the agent needs beside;
// the code has tranca's own filter beneath, which looks at more arguments.
// Every comparison is of the lower half of an argument, since the kernel drops
// the upper one.
func profile() (string, error) {
	arch, ok := map[string]string{"amd64": "SCMP_ARCH_X86_64", "arm64": "SCMP_ARCH_AARCH64"}[runtime.GOARCH]
	if !ok {
		return "", fmt.Errorf("no system call filter for %s", runtime.GOARCH)
	}
	var always []string
	for _, name := range codeCalls() {
		if !judged[name] {
			always = append(always, name)
		}
	}
	enosys := uint(errnoENOSYS)
	p := seccompProfile{
		DefaultAction: "SCMP_ACT_ERRNO", DefaultErrnoRet: errnoEPERM, Architectures: []string{arch},
		Syscalls: []seccompRule{
			{Names: append(always, agentCalls...), Action: "SCMP_ACT_ALLOW"},
			// Programs then take their path for an older kernel.
			{Names: []string{"clone3"}, Action: "SCMP_ACT_ERRNO", ErrnoRet: &enosys},
			allowMasked("clone", 0, cloneForbidden, 0),
			allowMasked("setns", 1, lowerHalf, cloneNewUser),
			allowMasked("unshare", 0, lowerHalf, cloneFS),
			allowMasked("personality", 0, lowerHalf, 0),
			allowMasked("personality", 0, lowerHalf, lowerHalf),
		},
	}
	for _, family := range []uint64{1, 2, 10} { // unix, IPv4, IPv6
		p.Syscalls = append(p.Syscalls, allowMasked("socket", 0, lowerHalf, family))
	}
	text, err := json.Marshal(p)
	return string(text), err
}

// allowMasked allows a call where an argument, with the mask put on it, has the
// value.
func allowMasked(name string, arg uint, mask, value uint64) seccompRule {
	return seccompRule{Names: []string{name}, Action: "SCMP_ACT_ALLOW", Args: []seccompArg{
		{Index: arg, Value: mask, ValueTwo: value, Op: "SCMP_CMP_MASKED_EQ"},
	}}
}
