package policy

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"slices"

	"tranca"
)

// Digest returns "sha256:" and 64 hexadecimal digits over a policy in
// canonical form. Two policies have the same digest when they allow the same:
// the order of mounts, lists and waivers does not count, nor does the Source.
func Digest(p tranca.Policy) string {
	text, err := json.Marshal(canonical(p))
	if err != nil {
		// Only strings, numbers and maps of strings are in it.
		panic("policy: canonical form: " + err.Error())
	}
	sum := sha256.Sum256(text)
	return "sha256:" + hex.EncodeToString(sum[:])
}

// canonicalPolicy is the form that is digested. Its field names are part of
// every digest that was ever written down: never change one.
type canonicalPolicy struct {
	Version        int               `json:"version"`
	Floor          string            `json:"floor"`
	Backend        string            `json:"backend"`
	Image          string            `json:"image"`
	Limits         map[string]string `json:"limits"`
	Mounts         []canonicalMount  `json:"mounts"`
	Env            map[string]string `json:"environment"`
	User           string            `json:"user"`
	Workdir        string            `json:"workdir"`
	Hostname       string            `json:"hostname"`
	Network        string            `json:"network"`
	MinLandlockABI int               `json:"landlock_min_abi"`
	Chroot         string            `json:"chroot"`
	KeepFiles      bool              `json:"keep_files"`
	Waive          []string          `json:"waive"`

	// Later fields are left out at their defaults, so that the digests of
	// policies from before them stand.
	Runtime              string `json:"runtime,omitempty"`
	KnownVulnerabilities string `json:"known_vulnerabilities,omitempty"`
}

type canonicalMount struct {
	Source        string   `json:"source"`
	Target        string   `json:"target"`
	Writable      bool     `json:"writable"`
	DiskUnbounded bool     `json:"disk_unbounded"`
	Deny          []string `json:"deny"`
	Protect       []string `json:"protect"`
	Cow           bool     `json:"cow,omitempty"`
}

func canonical(p tranca.Policy) canonicalPolicy {
	c := canonicalPolicy{
		Version: version, Floor: p.Floor.String(), Backend: p.Backend, Image: p.Image,
		Limits: canonicalLimits(&p), Mounts: []canonicalMount{}, Env: map[string]string{},
		User: fmt.Sprintf("%s:%d:%d", p.User.Name, p.User.UID, p.User.GID), Workdir: p.Workdir, Hostname: p.Hostname,
		Network: string(p.Network), MinLandlockABI: p.MinLandlockABI,
		Chroot: p.Chroot, KeepFiles: p.KeepFiles, Waive: sortedSet(itemWords(p.Waive)),
		Runtime: p.Runtime,
	}
	if p.KnownVulnerabilities != tranca.VulnerabilitiesWarn {
		c.KnownVulnerabilities = string(p.KnownVulnerabilities)
	}
	for name, value := range p.Env {
		c.Env[name] = value
	}
	for _, m := range p.Mounts {
		c.Mounts = append(c.Mounts, canonicalMount{
			Source: m.Source, Target: m.Target, Writable: m.Writable, Cow: m.Cow,
			DiskUnbounded: m.DiskUnbounded, Deny: sortedSet(m.Deny), Protect: sortedSet(m.Protect),
		})
	}
	slices.SortFunc(c.Mounts, func(a, b canonicalMount) int { return cmp.Compare(a.Target, b.Target) })
	return c
}

func canonicalLimits(p *tranca.Policy) map[string]string {
	limits := map[string]string{}
	for _, f := range limitFields() {
		if f.numeric() {
			limits[f.path] = f.format(number(f.ref(p)))
		} else {
			limits[f.path] = word(f.ref(p))
		}
	}
	return limits
}

// sortedSet returns a sorted copy without doubles, never nil.
func sortedSet(list []string) []string {
	out := append([]string{}, list...)
	slices.Sort(out)
	return slices.Compact(out)
}
