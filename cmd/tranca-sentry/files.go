package main

import (
	"fmt"
	"io"
	"os"
	"runtime/debug"

	"golang.org/x/sys/unix"
	"gvisor.dev/gvisor/pkg/lisafs"
	"gvisor.dev/gvisor/pkg/log"
	"gvisor.dev/gvisor/pkg/unet"
	"gvisor.dev/gvisor/runsc/config"
	"gvisor.dev/gvisor/runsc/fsgofer"

	"tranca/internal/guest/boot"
	"tranca/internal/guest/bootspec"
	"tranca/internal/guest/sentryspec"
)

// garbage is how much of it there may be, in parts of a hundred of what is in
// use. Nothing is collected before a process has booted.
const garbage = 100

// serveFiles builds the root that the sandbox sees and serves it to the Sentry,
// under gVisor's filter for file servers, until the Sentry is gone. Whatever the
// Sentry asks is hostile: it reaches what is mounted here, and of that only what
// the code's user may.
func serveFiles() error {
	quiet(false)
	omit, err := boot.EnterFiles(sentryspec.FilesBootFD, fsgofer.OpenProcSelfFD)
	if err != nil {
		return err
	}
	if err := unix.Close(sentryspec.FilesBootFD); err != nil {
		return os.NewSyscallError("close", err)
	}
	server := lisafs.NewServer()
	// Neither sockets nor FIFOs nor devices of the host, and no descriptor of
	// a folder leaves this process: the Sentry gets those of files alone.
	serves := &fsgofer.Config{
		HostUDS: config.HostUDSNone, HostFifo: config.HostFifoNone,
		RUID: unix.Getuid(), EUID: unix.Geteuid(), RGID: unix.Getgid(), EGID: unix.Getegid(),
	}
	options := filesOptions
	if omit.Has(bootspec.Sockets) {
		serves.HostUDS, options.UDSOpenEnabled = config.HostUDSOpen, true
	}
	if omit.Has(bootspec.Devices) {
		serves.CharDevicePolicy = config.CharDevPassthrough
	}
	impl := fsgofer.NewConnectionImpl(serves)
	var connections []*lisafs.Connection
	for i, path := range sentryspec.Mounts(omit) {
		sock, err := unet.NewSocket(sentryspec.FilesConnectionFD + i)
		if err != nil {
			return fmt.Errorf("connection for %s: %w", path, err)
		}
		c, err := server.CreateConnection(sock, path, fsgofer.ConnectionOpts(false), impl)
		if err != nil {
			return fmt.Errorf("connection for %s: %w", path, err)
		}
		connections = append(connections, c)
	}
	if !omit.Has(bootspec.Filter) {
		if err := confine(filesProgram(options)); err != nil {
			return err
		}
	}
	debug.SetGCPercent(garbage)
	for _, c := range connections {
		server.StartConnection(c)
	}
	server.Wait()
	return nil
}

// quiet sends gVisor's own log nowhere, since code can fill it, or, where
// somebody looks for a fault, to standard error.
func quiet(debug bool) {
	if debug {
		log.SetLevel(log.Debug)
		log.SetTarget(log.GoogleEmitter{Writer: &log.Writer{Next: os.Stderr}})
		return
	}
	log.SetLevel(log.Warning)
	log.SetTarget(&log.Writer{Next: io.Discard})
}
