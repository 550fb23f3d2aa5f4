package advisory

import (
	_ "embed"
	"errors"
	"fmt"
	"slices"
	"strings"

	"tranca"
	"tranca/internal/listfile"
)

// The components of which a backend asks.
const (
	Runc        = "runc"
	Crun        = "crun"
	Containerd  = "containerd"
	Docker      = "docker"
	Podman      = "podman"
	GVisor      = "gvisor"
	Firecracker = "firecracker"
	Bubblewrap  = "bubblewrap"
)

// Schema is what a table's file says it is; docs/DOCTOR.md has its fields.
const Schema = "tranca.advisories/1"

// SystemFile is where an operator puts a newer copy of the table.
const SystemFile = "/etc/tranca/advisories.json"

// Hole is one row of the table. It is about holes of the boundary itself: what
// lets code out of a sandbox or at files of the host. Left out are those of
// parts that a sandbox has no use for (building images, plugins for
// authorization, encrypted networks).
type Hole struct {
	Component string `json:"component"`
	ID        string `json:"id"`
	// From is the first version that has it; empty for all.
	From string `json:"from,omitempty"`
	// Fixed are the first versions without it, one for each line of releases
	// that got the mend, oldest first. Lines in between never got it.
	Fixed []string `json:"fixed"`
	// Needs says what an attacker needs. It completes "using it needs".
	Needs string `json:"needs"`
	// Plain says that only sandboxes that others make with this component have
	// it, such as a plain `docker run`: tranca brings its own part instead.
	Plain bool `json:"plain,omitempty"`
	// Item is what a backend's trial on this host says about it: where the item
	// is held, the behaviour was not what the version lets one fear.
	Item tranca.Item `json:"item,omitempty"`
	// Check is the host check that tries the behaviour.
	Check string `json:"check,omitempty"`
	// Probes are the hostile probes that try it from inside.
	Probes []string `json:"probes,omitempty"`

	from  *version
	fixed []version
}

//go:embed advisories.json
var builtInText []byte

// Table is a list of holes. It does not change.
type Table struct {
	// Source is the file's path, or "built in"; Date is when it was made.
	Source, Date string
	// Note says why an operator's own table is there and not used; else empty.
	Note  string
	holes []Hole
}

var tables = listfile.New(Schema, builtInText, func() func(*Hole) error {
	seen := map[string]bool{}
	return func(h *Hole) error {
		key := h.Component + " " + h.ID
		if seen[key] {
			return fmt.Errorf("%s is listed twice", key)
		}
		seen[key] = true
		return h.read()
	}
})

// Parse reads a table. Errors wrap [tranca.ErrInvalid] and name file, line, and
// what is wrong.
func Parse(name string, data []byte) (*Table, error) {
	l, err := tables.Parse(name, data)
	if err != nil {
		return nil, err
	}
	return tableOf(l), nil
}

func tableOf(l *listfile.List[Hole]) *Table {
	return &Table{Source: l.Source, Date: l.Date, Note: l.Note, holes: l.Rows}
}

// BuiltIn is the table that came with this program.
func BuiltIn() *Table { return tableOf(tables.BuiltIn()) }

// read checks a row and reads its versions.
func (h *Hole) read() error {
	switch {
	case h.Component == "" || len(h.Component) > 40 || strings.ContainsFunc(h.Component, func(r rune) bool { return r < 'a' || r > 'z' }):
		return fmt.Errorf("component %.40q: want lower-case letters", h.Component)
	case !strings.HasPrefix(h.ID, "CVE-") || idAt(h.ID) != h.ID:
		return fmt.Errorf("id %.40q: want CVE-YEAR-NUMBER", h.ID)
	case h.Needs == "" || len(h.Needs) > 300 || strings.HasSuffix(h.Needs, "."):
		return errors.New(`needs: want what completes "using it needs", in at most 300 bytes and without a full stop`)
	case len(h.Fixed) == 0 || len(h.Fixed) > 32:
		return errors.New("fixed: want 1 to 32 versions")
	case h.Item != "" && !slices.Contains(tranca.Items(), h.Item):
		return fmt.Errorf("item %.40q: want one that a policy knows, such as %q", h.Item, tranca.ItemDevices)
	case h.Item != "" && h.Check != "":
		return errors.New("want an item or a check, not both")
	case len(h.Check) > 40 || len(h.Probes) > 32:
		return errors.New("check or probes: too long")
	}
	last := version{}
	for _, text := range h.Fixed {
		v, err := parseVersion(text)
		if err != nil {
			return fmt.Errorf("fixed: version %.40q: want numbers such as 1.2.3", text)
		}
		if v.compare(last) < 0 {
			return fmt.Errorf("fixed: %s comes after a later version; the oldest comes first", text)
		}
		h.fixed, last = append(h.fixed, v), v
	}
	if h.From == "" {
		return nil
	}
	v, err := parseVersion(h.From)
	if err != nil || v.compare(last) >= 0 {
		return fmt.Errorf("from: version %.40q: want numbers such as 1.2.3, before those of fixed", h.From)
	}
	h.from = &v
	return nil
}

// affects reports whether a version has the hole: it is not older than the
// first that has it, and neither as new as the newest mended one nor as the
// mended one of its own line (its first two numbers).
func (h *Hole) affects(v version) bool {
	if h.from != nil && v.compare(*h.from) < 0 {
		return false
	}
	newest := true
	for i := len(h.fixed) - 1; i >= 0; i-- {
		f := h.fixed[i]
		if (newest || f.sameLine(v)) && v.compare(f) >= 0 {
			return false
		}
		newest = false
	}
	return true
}

// packages are the Debian packages that a component may come from, and the file
// in them by which one knows.
var packages = map[string][]string{
	Runc:       {"runc"},
	Crun:       {"crun"},
	Containerd: {"containerd", "containerd.io"},
	Docker:     {"docker.io", "docker-ce"},
	Podman:     {"podman"},
	GVisor:     {"runsc"},
	Bubblewrap: {"bubblewrap"},
}
