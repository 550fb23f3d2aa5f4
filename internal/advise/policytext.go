package advise

import (
	"fmt"
	"strings"

	"tranca"
	"tranca/internal/policy"
)

// policyFor is the policy that the answers need, without a backend.
func policyFor(a Answers, n Need) tranca.Policy {
	p := policy.Default()
	p.Floor, p.Source = n.Floor, "advice"
	if n.RefuseHoles {
		p.KnownVulnerabilities = tranca.VulnerabilitiesRefuse
	}
	if a.Image != "" {
		p.Image = a.Image
	}
	return p
}

// codeMemory is what of the budget is left for the code.
func codeMemory(budget int64, cost Cost) int64 {
	const unit = 1 << 20
	left := budget - int64(cost.IdleMiB*unit)
	return max(left/unit*unit, leastMemory)
}

// boundMemory bounds memory, and the disk so that it fits into it.
func boundMemory(p *tranca.Policy, bytes int64) {
	p.Limits.Memory = bytes
	p.Limits.Disk.Size = min(p.Limits.Disk.Size, bytes/2)
}

// write makes the policy file, and reads it back.
func (a *Advice) write(p tranca.Policy, c *Candidate, e *Evidence) error {
	p.Backend = c.Backend
	var b strings.Builder
	fmt.Fprintf(&b, "# Made by tranca advise for: %s.\n", a.Answers.String())
	fmt.Fprintf(&b, "# docs/POLICY.md has every field; what is left out has its default.\nversion: 1\n")
	fmt.Fprintf(&b, "floor: %s\nbackend: %s\n", p.Floor, p.Backend)
	if p.Image != policy.Default().Image {
		fmt.Fprintf(&b, "image: %q\n", p.Image)
	}
	if p.KnownVulnerabilities == tranca.VulnerabilitiesRefuse {
		fmt.Fprintf(&b, "known_vulnerabilities: %s\n", p.KnownVulnerabilities)
	}
	fmt.Fprintf(&b, "network: %s\n", p.Network)
	if a.Answers.Memory > 0 {
		cost, _ := e.cost(c)
		boundMemory(&p, codeMemory(a.Answers.Memory, cost))
		fmt.Fprintf(&b, "limits:\n  memory: %s\n  disk:\n    size: %s\n", policy.FormatSize(p.Limits.Memory), policy.FormatSize(p.Limits.Disk.Size))
	}
	a.Policy = b.String()
	read, err := policy.Parse(p.Source, []byte(a.Policy))
	if err != nil {
		return fmt.Errorf("the policy of this advice can't be read: %w", err)
	}
	if got, want := policy.Digest(read), policy.Digest(p); got != want {
		return fmt.Errorf("the policy of this advice reads as another one: %s, not %s", got, want)
	}
	return nil
}

// String lists the answers.
func (a Answers) String() string {
	var all []string
	for _, q := range Questions() {
		if text := q.get(&a); text != "" {
			all = append(all, q.Name+" "+text)
		}
	}
	return strings.Join(all, ", ")
}
