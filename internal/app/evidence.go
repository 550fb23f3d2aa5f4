//go:build linux

package app

import (
	"os"
	"time"

	"tranca/internal/advise"
	"tranca/internal/app/evidence"
	"tranca/internal/cli"
	"tranca/internal/confine"
	"tranca/internal/ownfile"
)

// maxResult bounds a kept result; the readers have bounds of their own.
const maxResult = 64 << 20

// gatherEvidence reads what bench and hostile have kept for this user.
func gatherEvidence() advise.Evidence {
	return evidence.Host{
		Getenv: os.Getenv,
		Read: func(what, path string) ([]byte, error) {
			file, err := ownfile.Read(what, path, maxResult)
			if err != nil {
				return nil, err
			}
			return file.Data, nil
		},
		Kernel: confine.KernelRelease(), Version: cli.Version, Now: time.Now(),
	}.Gather()
}
