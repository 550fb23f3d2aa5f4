package engine

import (
	"errors"
	"fmt"
	"strings"

	"tranca"
	"tranca/internal/policy"
)

// DefaultProfile is the name of [Config.Policy] among the profiles.
const DefaultProfile = "default"

// maxProfiles bounds how many policies an engine has.
const maxProfiles = 256

// Profile is one of the operator's policies, by its name.
type Profile struct {
	// Name is what a request says: 1 to 64 of a-z, 0-9, '-', '_' and '.'.
	Name   string
	Policy tranca.Policy
}

// isProfileName is no regular expression, because making one costs each start
// of the command.
func isProfileName(s string) bool {
	return s != "" && len(s) <= 64 && strings.Trim(s, "abcdefghijklmnopqrstuvwxyz0123456789_.-") == ""
}

// profile is a policy that was found valid.
type profile struct {
	name   string
	policy tranca.Policy
	digest string
}

// profiles checks the policies of a configuration, the first of which is the
// default.
func profiles(cfg *Config) ([]profile, error) {
	all := cfg.Profiles
	if given := cfg.Policy.Image != "" || cfg.Policy.Limits != (tranca.Limits{}); given || len(all) == 0 {
		all = append([]Profile{{Name: DefaultProfile, Policy: cfg.Policy}}, all...)
	}
	if len(all) > maxProfiles {
		return nil, fmt.Errorf("%w: %d profiles: at most %d can be given", tranca.ErrInvalid, len(all), maxProfiles)
	}
	var out []profile
	seen := map[string]bool{}
	for _, p := range all {
		if !isProfileName(p.Name) {
			return nil, fmt.Errorf("%w: profile %q: a name is 1 to 64 of a-z, 0-9, '-', '_' and '.'", tranca.ErrInvalid, p.Name)
		}
		if seen[p.Name] {
			return nil, fmt.Errorf("%w: two profiles are called %s", tranca.ErrInvalid, p.Name)
		}
		seen[p.Name] = true
		if bad := policy.Validate(p.Policy); len(bad) > 0 {
			return nil, fmt.Errorf("%w: policy: profile %s: %w", tranca.ErrInvalid, p.Name, errors.Join(bad...))
		}
		out = append(out, profile{p.Name, p.Policy.Clone(), policy.Digest(p.Policy)})
	}
	return out, nil
}

// profile returns the profile of that name, or the first. The error wraps
// [tranca.ErrNotFound].
func (e *Engine) profile(name string) (*profile, error) {
	if name == "" {
		return &e.profiles[0], nil
	}
	for i := range e.profiles {
		if e.profiles[i].name == name {
			return &e.profiles[i], nil
		}
	}
	return nil, fmt.Errorf("%w: profile %.64q: there is: %s", tranca.ErrNotFound, name, strings.Join(e.Profiles(), ", "))
}

// Profiles returns the names of the operator's policies. The first is in force
// where a request names none.
func (e *Engine) Profiles() []string {
	names := make([]string, len(e.profiles))
	for i := range e.profiles {
		names[i] = e.profiles[i].name
	}
	return names
}

// PolicyOf returns the policy of a profile, or of the first where the name is
// empty. The error wraps [tranca.ErrNotFound] and names those that there are.
func (e *Engine) PolicyOf(name string) (tranca.Policy, error) {
	p, err := e.profile(name)
	if err != nil {
		return tranca.Policy{}, err
	}
	return p.policy.Clone(), nil
}

// Policy returns the operator's policy that is in force where a request names
// no profile.
func (e *Engine) Policy() tranca.Policy { return e.profiles[0].policy.Clone() }
