package archtest

import (
	"fmt"
	"slices"
	"strings"
)

// Rule forbids imports. It looks at what the package itself imports, not at
// its tests, which may stand where they like.
type Rule struct {
	// From is the package, or with "/..." also all below it.
	From string
	// Deny lists import paths; each counts for all below it too.
	Deny []string
	// Only, where set, lists the only paths of this module and of others that
	// may be imported; the standard library always may.
	Only []string
	// Except takes packages out of Deny again.
	Except []string
	Why    string
}

const (
	internal = Module + "/internal/"
	backends = internal + "backend"
	linux    = internal + "linux"
)

var surfaces = []string{
	internal + "cli", internal + "mcp", internal + "server", internal + "e2b",
}

// guestDeny is what the guest agent links neither directly nor below: each of
// them costs every start of a sandbox. Of protobuf it has the wire format
// alone; of the vocabulary the linker drops what it doesn't call.
var guestDeny = []string{
	"net", "crypto/tls", "html/template", "text/template",
	"google.golang.org/protobuf/proto", "google.golang.org/protobuf/reflect",
	"google.golang.org/protobuf/runtime", "connectrpc.com", "gvisor.dev",
}

// probeDeny is what the program that runs hostile programs links neither
// directly nor below: it is sent into a sandbox for every cell of the suite, and
// its sockets are made by hand.
var probeDeny = append([]string{"os/exec"}, guestDeny...)

// Rules are the import rules of docs/ARCHITECTURE.md.
func Rules() []Rule {
	rules := []Rule{
		{
			From: Module, Only: []string{},
			Why: "the vocabulary imports nobody",
		},
		{
			From: internal + "policy/...",
			Only: []string{Module, internal + "policy", internal + "spelling", "github.com/goccy/go-yaml"},
			Why:  "policy is pure functions over the vocabulary",
		},
		{
			From: internal + "machine", Only: []string{Module},
			Why: "the contract between backend and guest knows neither",
		},
		{
			From: Module + "/hostile/report/...",
			Only: []string{Module, Module + "/hostile/report", internal + "spelling", internal + "terminal"},
			Why:  "what a run found is data, whoever ran it and whoever shows it",
		},
		{
			From: internal + "image/...",
			Deny: append([]string{
				internal + "engine", internal + "policy", internal + "app", internal + "guest",
				backends, Module + "/local",
			}, surfaces...),
			Why: "a store of trees knows nobody who uses them",
		},
		{
			From: internal + "changeset/...",
			Only: []string{Module, internal + "changeset", "github.com/rogpeppe/go-internal/diff", "golang.org/x/sys/unix"},
			Why:  "what was written by code is read, kept and applied by descriptor, whoever mounted it",
		},
		{
			From: internal + "listfile", Only: []string{Module},
			Why: "a list is text that comes from anywhere",
		},
		{
			From: internal + "spelling", Only: []string{},
			Why: "it looks at words alone, so that whoever reads text may ask it",
		},
		{
			From: internal + "ownfile", Only: []string{Module, "golang.org/x/sys/unix"},
			Why: "what decides whom to trust stands on little",
		},
		{
			From: internal + "advisory", Only: []string{Module, internal + "listfile"},
			Why: "what is known of versions knows nobody who asks",
		},
		{
			From: internal + "hostcheck/...",
			Only: []string{Module, internal + "advisory", internal + "listfile", linux, "golang.org/x/sys/unix"},
			Why:  "a look at the host decides nothing, and runs nothing",
		},
		{
			From: internal + "advise/...",
			Only: []string{Module, internal + "policy", internal + "hostcheck", internal + "listfile"},
			Why:  "an advice is made from what the caller found, and finds nothing itself",
		},
		{
			From: internal + "archive/...", Only: []string{Module, internal + "archive"},
			Why: "archives go over the vocabulary, whatever is behind it",
		},
		{
			From: internal + "guest/...",
			Deny: append([]string{
				internal + "engine", internal + "policy", internal + "store",
				internal + "audit", internal + "app", backends,
			}, surfaces...),
			Why: "the guest decides nothing",
		},
		{
			From: internal + "guest/agent/...",
			Deny: append([]string{"encoding/json", "fmt", "reflect"}, guestDeny...),
			Why:  "each of them costs every start of a sandbox",
		},
		{
			From: Module + "/hostile/attempt", Only: []string{"golang.org/x/sys/unix"}, Deny: probeDeny,
			Except: []string{"net/netip"},
			Why:    "the language and its interpreter are small, and know nobody who uses them",
		},
		{
			From: backends + "/...",
			Deny: append([]string{
				internal + "engine", internal + "policy", internal + "app", Module + "/local",
			}, surfaces...),
			Why: "a backend knows only the vocabulary and its mechanisms",
		},
		{
			From: internal + "engine/...",
			Deny: append([]string{backends, "net/http", internal + "app"}, surfaces...),
			Why:  "the engine decides over interfaces",
		},
		{
			From: internal + "bench/...",
			Deny: append([]string{internal + "engine", internal + "app", internal + "guest", backends, linux}, surfaces...),
			Why:  "it measures what it is given from outside, by the same ways as everybody",
		},
		{
			From: internal + "bench", Only: []string{Module},
			Why: "a result is data: who reads one links nothing of how it was measured",
		},
		{
			From: linux + "/...",
			Deny: append([]string{
				backends, internal + "engine", internal + "policy", internal + "guest",
				internal + "app",
			}, surfaces...),
			Why: "mechanisms decide nothing",
		},
	}
	for _, s := range surfaces {
		rules = append(rules, Rule{
			From: s + "/...", Deny: append([]string{backends, linux}, surfaces...),
			Except: []string{s}, Why: "surfaces are thin and apart from each other",
		})
	}
	return rules
}

// CheckImports returns a line for each import that a rule forbids.
func CheckImports(rules []Rule, all []Package) []string {
	var bad []string
	for _, r := range rules {
		for _, p := range all {
			if !r.matches(p.ImportPath) {
				continue
			}
			for _, imp := range p.Imports {
				if r.forbids(imp) {
					bad = append(bad, fmt.Sprintf("%s imports %s: %s", p.ImportPath, imp, r.Why))
				}
			}
		}
	}
	return bad
}

func (r Rule) matches(path string) bool {
	if root, ok := strings.CutSuffix(r.From, "/..."); ok {
		return within(path, root)
	}
	return path == r.From
}

func (r Rule) forbids(imp string) bool {
	if r.Only != nil && !standard(imp) && !anyWithin(imp, r.Only) {
		return true
	}
	return anyWithin(imp, r.Deny) && !anyWithin(imp, r.Except)
}

// CheckBackends returns a line for each backend that imports another one, and
// for each package that imports a backend and does not wire. A backend is a
// folder below internal/backend; the folder itself is the registry.
func CheckBackends(all []Package) []string {
	wires := []string{
		internal + "app", Module + "/cmd/tranca-guest", Module + "/bench", Module + "/scripts", backends,
	}
	var bad []string
	for _, p := range all {
		for _, imp := range p.Imports {
			target := backendOf(imp)
			if target == "" || target == backendOf(p.ImportPath) {
				continue
			}
			if own := backendOf(p.ImportPath); own != "" {
				bad = append(bad, fmt.Sprintf("%s imports %s: backends stand apart", p.ImportPath, imp))
			} else if !anyWithin(p.ImportPath, wires) {
				bad = append(bad, fmt.Sprintf("%s imports %s: only internal/app wires backends", p.ImportPath, imp))
			}
		}
	}
	return bad
}

// CheckWeaken returns a line for each package that imports what takes guarantees
// away and makes none.
func CheckWeaken(all []Package) []string {
	makes := []string{internal + "confine", linux, backends, internal + "engine", internal + "app"}
	var bad []string
	for _, p := range all {
		if slices.Contains(p.Imports, internal+"weaken") && !anyWithin(p.ImportPath, makes) {
			bad = append(bad, fmt.Sprintf("%s imports %sweaken: only what makes a guarantee can take it away", p.ImportPath, internal))
		}
	}
	return bad
}

func backendOf(path string) string {
	rest, ok := strings.CutPrefix(path, backends+"/")
	if !ok {
		return ""
	}
	name, _, _ := strings.Cut(rest, "/")
	return name
}

// Heavy are modules that may appear in one package each, so that what they
// cost and what they can do stays in one place.
func Heavy() []string {
	return []string{
		"github.com/goccy/go-yaml", "github.com/godbus/dbus",
		"github.com/modelcontextprotocol/go-sdk", "github.com/moby/moby/client",
		"github.com/docker/docker", "k8s.io/client-go", "gvisor.dev/gvisor",
		"modernc.org/sqlite",
		"github.com/google/go-containerregistry", "github.com/klauspost/compress",
	}
}

// CheckHeavy returns a line for each heavy module that more than one package
// of this module imports.
func CheckHeavy(heavy []string, all []Package) []string {
	var bad []string
	for _, module := range heavy {
		var users []string
		for _, p := range all {
			if p.Ours() && slices.ContainsFunc(p.Imports, func(i string) bool { return within(i, module) }) {
				users = append(users, p.ImportPath)
			}
		}
		if len(users) > 1 {
			bad = append(bad, fmt.Sprintf("%s is imported by %s: one package each",
				module, strings.Join(users, ", ")))
		}
	}
	return bad
}

// CheckLinked returns a line for each package that a binary links and must
// not. deps is the binary with everything below it.
func CheckLinked(binary string, deny []string, deps []Package) []string {
	var bad []string
	for _, p := range deps {
		if anyWithin(p.ImportPath, deny) {
			bad = append(bad, fmt.Sprintf("%s links %s", binary, p.ImportPath))
		}
	}
	return bad
}

// CheckNames returns a line for each package whose name says nothing.
func CheckNames(all []Package) []string {
	empty := []string{
		"util", "utils", "common", "helper", "helpers", "types", "misc", "shared", "base",
	}
	var bad []string
	for _, p := range all {
		last := p.ImportPath[strings.LastIndex(p.ImportPath, "/")+1:]
		if slices.Contains(empty, p.Name) || slices.Contains(empty, last) {
			bad = append(bad, fmt.Sprintf("package %s (%s): name it after what it does", p.Name, p.ImportPath))
		}
	}
	return bad
}

func anyWithin(path string, roots []string) bool {
	return slices.ContainsFunc(roots, func(r string) bool {
		if r == Module { // the root package alone, not the whole module
			return path == r
		}
		return within(path, r)
	})
}

// standard reports whether the path is one of the standard library: its first
// element has no dot, and it isn't ours.
func standard(path string) bool {
	first, _, _ := strings.Cut(path, "/")
	return !strings.Contains(first, ".") && first != Module
}
