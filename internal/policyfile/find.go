package policyfile

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"tranca"
	"tranca/internal/ownfile"
	"tranca/internal/policy"
)

// Name is the name of a policy file in the folders that are searched.
const Name = "policy.yaml"

// misnomers are names that a person would think are found.
var misnomers = []string{"policy.yml", "policy.json"}

// SystemDir is the system's folder.
const SystemDir = "/etc/tranca"

// Options say where to look. The zero value searches the host's folders.
type Options struct {
	// Path is the file that the operator named; then nothing is searched. It
	// may be relative to the working directory.
	Path string
	// SystemDir replaces the system's folder; empty is [SystemDir].
	SystemDir string
	// UserDir replaces the folder in the user's configuration; empty is
	// "tranca" in [os.UserConfigDir].
	UserDir string
}

// Find reads the policy file that is in force: the one named by the path,
// else the one in the system's folder, else the one in the user's. found is
// false, with [policy.Default], where there is none.
//
// A file that is there but can't be read, parsed or trusted is an error, which
// names the command that mends it where there is one. Errors wrap
// [tranca.ErrNotFound] (the named path), [tranca.ErrInvalid] or
// [tranca.ErrRefused]. The policy's Source is the file's absolute path.
func Find(o Options) (p tranca.Policy, found bool, err error) {
	if o.Path != "" {
		path, err := filepath.Abs(o.Path)
		if err != nil {
			return tranca.Policy{}, false, fmt.Errorf("%w: policy %s: %w", tranca.ErrInvalid, o.Path, err)
		}
		p, err := Read(path)
		return p, err == nil, err
	}
	dirs, err := o.folders()
	if err != nil {
		return tranca.Policy{}, false, err
	}
	for _, dir := range dirs {
		p, err := Read(filepath.Join(dir, Name))
		if err == nil {
			return p, true, nil
		}
		if !errors.Is(err, tranca.ErrNotFound) {
			return tranca.Policy{}, false, err
		}
		if err := refuseMisnomer(dir); err != nil {
			return tranca.Policy{}, false, err
		}
	}
	return policy.Default(), false, nil
}

// folders returns the folders to search, in order.
func (o Options) folders() ([]string, error) {
	system, user := o.SystemDir, o.UserDir
	if system == "" {
		system = SystemDir
	}
	if user != "" {
		return []string{system, user}, nil
	}
	config, err := os.UserConfigDir()
	switch {
	case err == nil:
		return []string{system, filepath.Join(config, "tranca")}, nil
	case os.Getenv("XDG_CONFIG_HOME") == "" && os.Getenv("HOME") == "":
		return []string{system}, nil // a service has no home
	}
	return nil, fmt.Errorf("%w: the user's configuration folder is not known: %w", tranca.ErrInvalid, err)
}

// refuseMisnomer refuses a folder that holds a policy under a name that is
// not looked for: its writer believes that it is in force.
func refuseMisnomer(dir string) error {
	for _, name := range misnomers {
		path := filepath.Join(dir, name)
		_, err := os.Lstat(path)
		if err == nil {
			return fmt.Errorf("%w: %s is not read, since a policy is called %s: mv %s %s",
				tranca.ErrRefused, path, Name, ownfile.Quote(path), ownfile.Quote(filepath.Join(dir, Name)))
		}
		if !errors.Is(err, os.ErrNotExist) {
			return fmt.Errorf("%w: policy %s: %w", tranca.ErrRefused, path, err)
		}
	}
	return nil
}
