package main

import (
	"fmt"
	"os"
	"runtime/debug"

	"golang.org/x/sys/unix"
	"gvisor.dev/gvisor/pkg/cpuid"
	"gvisor.dev/gvisor/pkg/fd"
	"gvisor.dev/gvisor/pkg/metric"
	"gvisor.dev/gvisor/pkg/ring0"
	"gvisor.dev/gvisor/pkg/timing"
	"gvisor.dev/gvisor/pkg/unet"
	"gvisor.dev/gvisor/pkg/urpc"
	"gvisor.dev/gvisor/runsc/boot"
	"gvisor.dev/gvisor/runsc/starttime"

	"tranca/internal/guest/bootspec"
	"tranca/internal/guest/sentryspec"
)

// sandboxID is the sandbox's name inside of its own kernel. It needs no other:
// each Sentry has one sandbox.
const sandboxID = "sandbox"

// runKernel boots a kernel in user space with the guest agent as its first
// process, and returns when that has ended.
//
// It does in one process what runsc's boot command does in several: what it has
// to know of the host it reads first, then it leaves the host's tree and drops
// its rights, and only then is there a kernel. Its filter is gVisor's, installed
// before any code of the sandbox is loaded.
func runKernel() error {
	control := os.NewFile(sentryspec.KernelBootFD, "control")
	spec, err := sentryspec.Read(control)
	if err != nil {
		return err
	}
	quiet(spec.Debug)
	debug.SetTraceback("single")
	starttime.Get()
	cpuid.Initialize()
	ring0.InitDefault()
	if err := leaveHost(spec); err != nil {
		return err
	}
	listener, client, err := ownController()
	if err != nil {
		return fmt.Errorf("control connection: %w", err)
	}
	args, err := loaderArgs(spec, listener)
	if err != nil {
		return err
	}
	l, err := boot.New(*args)
	if err != nil {
		return fmt.Errorf("kernel: %w", err)
	}
	metric.Initialize()
	options, err := kernelOptions(spec)
	if err != nil {
		return err
	}
	l.PreSeccompCallback = func() {
		if spec.Omit.Has(bootspec.Filter) {
			return
		}
		// There is no way to say that it failed.
		if err := confine(kernelProgram(options)); err != nil {
			panic(err)
		}
	}
	if err := start(l, client, spec); err != nil {
		return fmt.Errorf("start: %w", err)
	}
	if _, err := control.Write([]byte{sentryspec.Booted}); err != nil {
		return err
	}
	debug.SetGCPercent(garbage)
	go answer(control, client)
	l.WaitExit()
	// Without taking anything down in order: the process ends.
	return nil
}

// ownController makes the socket by which a loader wants to be told what to do,
// and a connection to it. Nobody else reaches it: its name is in the Sentry's
// own network namespace, in which no other process ever runs but those that
// carry the sandbox's code, whose filter knows no sockets.
func ownController() (listener int, client *urpc.Client, err error) {
	listener, err = unix.Socket(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return -1, nil, os.NewSyscallError("socket", err)
	}
	// Without a path the kernel makes up an abstract name.
	if err := unix.Bind(listener, &unix.SockaddrUnix{}); err != nil {
		return -1, nil, os.NewSyscallError("bind", err)
	}
	// The loader listens once more, for as many as it likes.
	if err := unix.Listen(listener, 1); err != nil {
		return -1, nil, os.NewSyscallError("listen", err)
	}
	name, err := unix.Getsockname(listener)
	if err != nil {
		return -1, nil, os.NewSyscallError("getsockname", err)
	}
	s, err := unix.Socket(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return -1, nil, os.NewSyscallError("socket", err)
	}
	if err := unix.Connect(s, name); err != nil {
		return -1, nil, os.NewSyscallError("connect", err)
	}
	sock, err := unet.NewSocket(s)
	if err != nil {
		return -1, nil, err
	}
	if err := unix.Dup3(listener, controllerFD, unix.O_CLOEXEC); err != nil {
		return -1, nil, os.NewSyscallError("dup", err)
	}
	unix.Close(listener)
	return controllerFD, urpc.NewClient(sock), nil
}

// loaderArgs says what to boot.
func loaderArgs(spec *sentryspec.Spec, controller int) (*boot.Args, error) {
	conf, err := kernelConfig(spec)
	if err != nil {
		return nil, err
	}
	null, err := stdio()
	if err != nil {
		return nil, err
	}
	a := &boot.Args{
		ID: sandboxID, Spec: ociSpec(spec), Conf: conf, ControllerFD: controller,
		Device: fd.New(sentryspec.KernelDeviceFD), PinRingFD: -1, DevGoferFD: -1,
		StdioFDs: null, ExecFD: sentryspec.KernelAgentFD,
		PassFDs: []boot.FDMapping{{Guest: 3, Host: sentryspec.KernelStreamFD}},
		NumCPU:  spec.CPUs, CPUQuota: -1, TotalMem: spec.Memory,
		PodInitConfigFD: -1, RootfsUpperTarFD: -1,
		StartupTimer: timing.New("kernel", starttime.Get()),
	}
	for i := range sentryspec.Mounts(spec.Omit) {
		a.GoferFDs = append(a.GoferFDs, sentryspec.KernelConnectionFD+i)
		a.GoferMountConfs = append(a.GoferMountConfs, lisafsMount)
	}
	return a, nil
}

// stdio is what the guest agent has as its first three descriptors: the
// Sentry's own standard input and output, which are empty, and its standard
// error, where an agent that dies says why.
func stdio() ([]int, error) {
	var fds []int
	for i := range 3 {
		dup, err := unix.FcntlInt(uintptr(i), unix.F_DUPFD_CLOEXEC, 64)
		if err != nil {
			return nil, os.NewSyscallError("dup", err)
		}
		fds = append(fds, dup)
	}
	return fds, nil
}

// start gives the kernel a loopback interface and nothing else, and starts its
// first process.
func start(l *boot.Loader, client *urpc.Client, spec *sentryspec.Spec) error {
	if !spec.Omit.Has(bootspec.Network) {
		if err := client.Call(boot.ContMgrSetNetworkArgs, &boot.CreateLinksAndRoutesArgs{
			LoopbackLinks: []boot.LoopbackLink{boot.DefaultLoopbackLink},
		}, nil); err != nil {
			return err
		}
	}
	// The loader wants to be asked, and answers when it has started.
	answered := make(chan error, 1)
	id := sandboxID
	go func() { answered <- client.Call(boot.ContMgrRootContainerStart, &id, nil) }()
	l.WaitForStartSignal()
	if err := l.Run(); err != nil {
		return err
	}
	return <-answered
}
