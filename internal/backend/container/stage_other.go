//go:build !linux

package container

import (
	"fmt"
	"os"

	"tranca"
)

// hostSide is what this process can do beside the engine: nothing, since the
// engine's containers live in a virtual machine.
type hostSide struct{}

func openHost(string) (*hostSide, error) { return &hostSide{}, nil }

func (*hostSide) close() error       { return nil }
func (*hostSide) stages() bool       { return false }
func (*hostSide) sweepStages() error { return nil }

func (*hostSide) newStage(owner, tranca.ID) (*stage, error) {
	return nil, fmt.Errorf("%w: mounts beside the engine", tranca.ErrUnsupported)
}

// stage is made on Linux alone.
type stage struct{}

func (*stage) user() (uid, gid uint32)    { return 0, 0 }
func (*stage) makeSpace(*plan) error      { return tranca.ErrUnsupported }
func (*stage) makeMount(*plan, int) error { return tranca.ErrUnsupported }
func (*stage) settled() error             { return nil }
func (*stage) giveBack() error            { return nil }

func (*stage) openChanges(string) (*os.File, error) { return nil, tranca.ErrUnsupported }

// engineMounts refuses mounts: a path of this host is another one in the
// engine's machine, so that nobody could tell what was mounted.
func (b *Backend) engineMounts(_ *engine, pl *plan) error {
	if len(pl.policy.Mounts) == 0 {
		return nil
	}
	return &tranca.RefusalError{Backend: Name, Problems: []tranca.Problem{{
		Item: tranca.ItemMounts, Asked: "mount " + pl.policy.Mounts[0].Source,
		Missing: "the engine runs in a virtual machine, where this host's folders can't be told apart",
		Mend:    "send files by `tranca cp`, or run tranca on Linux",
	}}}
}
