package landlock

import (
	"errors"
	"fmt"
	"os"

	"golang.org/x/sys/unix"
)

// Access is what a rule allows beneath its path. Values can be joined with |.
type Access uint

// The kinds of access. None of them allows to make device nodes.
const (
	// Read: read files and list folders.
	Read Access = 1 << iota
	// Execute: run files. A program also has to be readable for its loader.
	Execute
	// Write: write and truncate files; make, move and remove files, folders,
	// links, FIFOs and socket files. Moving to another folder needs Write on
	// both. It does not allow to read.
	Write
	// Device: read and write one device node, without ioctl.
	Device
	// Ioctl: ioctl on device nodes, which a terminal needs.
	Ioctl
	// Connect: connect to socket files of servers outside of the domain.
	Connect
	// List: list folders, without reading files.
	List

	allAccess = List<<1 - 1
)

// Joined kinds that most rules want.
const (
	ReadExec  = Read | Execute
	ReadWrite = Read | Execute | Write
	Terminal  = Device | Ioctl
)

// Rule allows access to one file, or to a folder and all beneath it.
type Rule struct {
	// Path is absolute and leads to the object without any symbolic link.
	Path string
	// File is used instead of Path where it is not nil; O_PATH is enough. It
	// stays the caller's.
	File *os.File
	// Access is what is allowed. On a file, the parts that only a folder can
	// have are left out.
	Access Access
}

// Config says what a ruleset allows.
type Config struct {
	// MinABI is the least ABI that the caller accepts; 0 stands for 1.
	MinABI int
	// HandleNetwork denies all TCP, and all UDP from ABI 10 on. Without it the
	// network is left alone: a sandbox has a network namespace of its own.
	HandleNetwork bool
	// Rules is all that is allowed.
	Rules []Rule
}

// NewRuleset makes a ruleset that handles every right of the running ABI and
// allows only what cfg names. The file is closed on exec; closing it does not
// lift restrictions that were made with it. Errors wrap [ErrUnavailable]
// where the kernel lacks something, with the ABI needed, [ErrUnsupported]
// for a MinABI above [Newest], [ErrNotFound] for a missing path, and [ErrInvalid] for a rule that can't be.
func NewRuleset(cfg Config) (*os.File, error) {
	abi, err := ABI()
	if err != nil {
		return nil, err
	}
	handled, err := cfg.rights(abi)
	if err != nil {
		return nil, err
	}
	fd, err := create(handled)
	if err != nil {
		return nil, fmt.Errorf("%w: make Landlock ruleset of ABI %d: %w", ErrUnavailable, abi, err)
	}
	ruleset := os.NewFile(uintptr(fd), "landlock-ruleset")
	for _, r := range cfg.Rules {
		if err := r.add(fd, handled.Files); err != nil {
			return nil, errors.Join(err, ruleset.Close())
		}
	}
	return ruleset, nil
}

// rights returns what a ruleset of cfg handles under an ABI.
func (cfg Config) rights(abi int) (Rights, error) {
	if cfg.MinABI > Newest {
		return Rights{}, fmt.Errorf("%w: Landlock ABI %d is asked for, tranca knows up to %d",
			ErrUnsupported, cfg.MinABI, Newest)
	}
	if need := max(cfg.MinABI, 1); abi < need {
		return Rights{}, fmt.Errorf("%w: needs Landlock ABI %d, this kernel has %d",
			ErrUnavailable, need, abi)
	}
	r := RightsOf(abi)
	if !cfg.HandleNetwork {
		r.Network = 0
		return r, nil
	}
	if r.Network == 0 {
		return Rights{}, fmt.Errorf("%w: handling the network needs Landlock ABI 4, this kernel has %d",
			ErrUnavailable, abi)
	}
	return r, nil
}

// ABI returns the kernel's Landlock ABI, 1 or more, as the kernel itself tells
// it. The error wraps [ErrUnavailable] and says why there is none.
func ABI() (int, error) {
	abi, err := version()
	switch {
	case err == nil:
		return abi, nil
	case errors.Is(err, unix.ENOSYS):
		return 0, fmt.Errorf("%w: this kernel has no Landlock: it needs Linux 5.13 with CONFIG_SECURITY_LANDLOCK, and a container must let its system calls pass: %w",
			ErrUnavailable, err)
	case errors.Is(err, unix.EOPNOTSUPP):
		return 0, fmt.Errorf("%w: Landlock is switched off at boot: add landlock to the kernel's lsm= parameter: %w",
			ErrUnavailable, err)
	}
	return 0, fmt.Errorf("%w: ask for the Landlock ABI: %w", ErrUnavailable, err)
}
