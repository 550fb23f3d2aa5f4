// Package backends lists the backends of this build. It is the one place that
// knows them all; programs that embed tranca link it without the surfaces.
package backends

import (
	"os"
	"path/filepath"

	"tranca"
	"tranca/internal/backend"
	"tranca/internal/backend/gvisor"
	"tranca/internal/backend/pool"
	"tranca/internal/backend/process"
)

// All lists every backend of this build, each made when it is first
// needed. One that can't be made stands in the registry all the same and says
// why when it is asked, so that a policy that names it is refused with the
// reason. The process backend keeps up to ready sandboxes booted ahead.
func All(ready int) (*backend.Registry, error) {
	return backend.NewRegistry(
		newLazy(process.SubprocessName, tranca.LevelSubprocess, func() (tranca.Backend, error) {
			return process.NewSubprocess()
		}),
		newLazy(process.Name, tranca.LevelProcess, func() (tranca.Backend, error) {
			b, err := process.New(process.Options{CgroupPaths: filepath.SplitList(os.Getenv(cgroupVariable))})
			if err != nil || ready == 0 {
				return b, err
			}
			return pool.New(b, ready), nil
		}),
		containers(),
		newLazy(gvisor.Name, tranca.LevelGVisor, newGVisor),
	)
}

// cgroupVariable names the variable by which whoever runs tranca names control
// groups that were delegated to them, separated by colons, where no service
// manager does it. It says where limits are made, never how high they are.
const cgroupVariable = "TRANCA_CGROUP"
