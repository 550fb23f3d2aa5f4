// Package sentryspec is the one message with which the gVisor backend tells a
// Sentry what to boot, and the counters by which the Sentry answers it. It goes
// from the trusted side to the other; every byte that comes back is hostile
// from the moment at which code runs.
package sentryspec

import (
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"

	"tranca/internal/guest/bootspec"
)

// Process is what the processes of a sandbox are called on the host: the zeroth
// argument of both.
const Process = "tranca-sentry"

// The first arguments by which the second binary is told what to be.
const (
	FilesCommand  = "tranca-files"
	KernelCommand = "tranca-kernel"
)

// The descriptors that a file server finds at its start: the boot message, and
// one connection for each of Mounts.
const (
	FilesBootFD       = 3
	FilesConnectionFD = 4
)

// The descriptors that a Sentry finds at its start.
const (
	KernelBootFD  = 3 // the boot message, and later the counters
	KernelAgentFD = 4 // the guest agent's binary
	// KernelStreamFD is the agent's stream.
	KernelStreamFD = 5
	// KernelDeviceFD is what the platform needs, or an empty device.
	KernelDeviceFD = 6
	// KernelConnectionFD is the first connection to the file server.
	KernelConnectionFD = 7
)

// Mounts are the parts of the tree that have a connection of their own: the
// root, and what the Sentry would else cover with something unbounded, or, where
// it is told to leave that out, with something of its own.
func Mounts(omit bootspec.Omission) []string {
	all := []string{"/", "/tmp"}
	if omit.Has(bootspec.Processes) {
		all = append(all, "/proc")
	}
	return append(all, "/dev/shm")
}

// MaxSize bounds an encoded Spec.
const MaxSize = 1 << 16

// Spec is what a Sentry boots.
type Spec struct {
	// UID and GID are the Sentry's own, inside its user namespace.
	UID, GID int
	Hostname string
	// Platform is "systrap" or "kvm".
	Platform string
	// CPUs is how many the programs see.
	CPUs int
	// Memory is how much the programs see, in bytes.
	Memory uint64
	// PendingSignals and QueueMemory bound what a user may have queued.
	PendingSignals, QueueMemory uint64
	// Shared says that others may change files while the sandbox runs, so that
	// nothing that was read of them may be believed for long.
	Shared bool
	// AgentEnv is the guest agent's environment.
	AgentEnv []string
	// Omit is what the Sentry leaves out; see [bootspec.Omission].
	Omit bootspec.Omission
	// Debug has the Sentry write a log to its standard error.
	Debug bool
}

// Write sends it with its length before it.
func (s *Spec) Write(w io.Writer) error {
	body, err := json.Marshal(s)
	if err != nil {
		return err
	}
	if len(body) > MaxSize {
		return errors.New("boot message is too long")
	}
	_, err = w.Write(append(binary.BigEndian.AppendUint32(nil, uint32(len(body))), body...))
	return err
}

// Read takes what Write has sent.
func Read(r io.Reader) (*Spec, error) {
	var head [4]byte
	if _, err := io.ReadFull(r, head[:]); err != nil {
		return nil, err
	}
	n := binary.BigEndian.Uint32(head[:])
	if n > MaxSize {
		return nil, errors.New("boot message is too long")
	}
	body := make([]byte, n)
	if _, err := io.ReadFull(r, body); err != nil {
		return nil, err
	}
	s := &Spec{}
	if err := json.Unmarshal(body, s); err != nil {
		return nil, fmt.Errorf("boot message: %w", err)
	}
	return s, nil
}

// Counters is what a Sentry has counted of its programs since it booted.
type Counters struct {
	Refused   uint64 // forks that the bound on processes refused
	Processes uint64 // now
	Peak      uint64 // at most
}

// CountersSize is the length of encoded Counters.
const CountersSize = 24

// Ask is the byte that asks for them.
const Ask = 'c'

// Booted is the byte by which a Sentry says that its programs run.
const Booted = 'b'

// Marshal encodes them.
func (c Counters) Marshal() []byte {
	b := binary.BigEndian.AppendUint64(make([]byte, 0, CountersSize), c.Refused)
	b = binary.BigEndian.AppendUint64(b, c.Processes)
	return binary.BigEndian.AppendUint64(b, c.Peak)
}

// ParseCounters decodes what Marshal has encoded. The length is the caller's to
// see to; every content is right.
func ParseCounters(b *[CountersSize]byte) Counters {
	return Counters{
		Refused:   binary.BigEndian.Uint64(b[0:8]),
		Processes: binary.BigEndian.Uint64(b[8:16]),
		Peak:      binary.BigEndian.Uint64(b[16:24]),
	}
}
