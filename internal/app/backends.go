package app

import (
	"context"
	"os"
	"path/filepath"

	"tranca"
	"tranca/internal/backend"
	"tranca/internal/backend/process"
)

// Backends makes every backend of this build. One that can't be made stands in
// the registry all the same and says why when it is asked, so that a policy
// that names it is refused with the reason.
func Backends() (*backend.Registry, error) {
	return backend.NewRegistry(
		made(process.SubprocessName, tranca.LevelSubprocess, func() (tranca.Backend, error) {
			return process.NewSubprocess(process.SubprocessOptions{})
		}),
		made(process.Name, tranca.LevelProcess, func() (tranca.Backend, error) {
			return process.New(process.Options{CgroupPaths: filepath.SplitList(os.Getenv(cgroupVariable))})
		}),
	)
}

// cgroupVariable names the variable by which whoever runs tranca names control
// groups that were delegated to them, separated by colons, where no service
// manager does it. It says where limits are made, never how high they are.
const cgroupVariable = "TRANCA_CGROUP"

// made returns the backend that the function makes, or one that says why there
// is none.
func made(name string, level tranca.Level, make func() (tranca.Backend, error)) tranca.Backend {
	b, err := make()
	if err != nil {
		return &unmade{name: name, level: level, err: err}
	}
	return b
}

// unmade stands for a backend that could not be made.
type unmade struct {
	name  string
	level tranca.Level
	err   error
}

func (u *unmade) Name() string        { return u.name }
func (u *unmade) Level() tranca.Level { return u.level }

func (u *unmade) Probe(context.Context) (tranca.Report, error) {
	return tranca.Report{Backend: u.name, Level: u.level}, u.err
}

func (u *unmade) Create(context.Context, tranca.Spec) (tranca.Sandbox, error) { return nil, u.err }

func (u *unmade) Attach(context.Context, tranca.ID) (tranca.Sandbox, error) { return nil, u.err }

func (u *unmade) Close(context.Context) error { return nil }
