// Package backends lists the backends of this build. It is the one place that
// knows them all; programs that embed tranca link it without the surfaces.
package backends

import (
	"os"
	"path/filepath"

	"tranca"
	"tranca/internal/advisory"
	"tranca/internal/backend"
	"tranca/internal/backend/gvisor"
	"tranca/internal/backend/pool"
	"tranca/internal/backend/process"
	"tranca/internal/listfile"
	"tranca/internal/ownfile"
)

// All lists every backend of this build, each made when it is first
// needed. One that can't be made stands in the registry all the same and says
// why when it is asked, so that a policy that names it is refused with the
// reason. The process backend keeps up to ready sandboxes booted ahead.
func All(ready int) (*backend.Registry, error) { return AllKnowing(ready, Advisories()) }

// Advisories is the table of known holes that counts on this host.
func Advisories() *advisory.InForce {
	return advisory.Installed(advisory.SystemFile, ReadList)
}

// ReadList reads a list that an operator keeps, where nobody else can write it.
func ReadList(path string) ([]byte, error) {
	file, err := ownfile.Read("list", path, listfile.MaxBytes)
	if err != nil {
		return nil, err
	}
	return file.Data, nil
}

// AllKnowing is All with a table of known holes of the caller's choice.
func AllKnowing(ready int, known *advisory.InForce) (*backend.Registry, error) {
	return backend.NewRegistry(
		newLazy(process.SubprocessName, tranca.LevelSubprocess, func() (tranca.Backend, error) {
			return process.NewSubprocess()
		}),
		newLazy(process.Name, tranca.LevelProcess, func() (tranca.Backend, error) {
			b, err := process.New(process.Options{CgroupPaths: filepath.SplitList(os.Getenv(CgroupVariable))})
			if err != nil || ready == 0 {
				return b, err
			}
			return pool.New(b, ready), nil
		}),
		containers(known),
		newLazy(gvisor.Name, tranca.LevelGVisor, func() (tranca.Backend, error) { return newGVisor(known) }),
	)
}

// CgroupVariable names the variable by which whoever runs tranca names control
// groups that were delegated to them, separated by colons, where no service
// manager does it. It says where limits are made, never how high they are.
const CgroupVariable = "TRANCA_CGROUP"
