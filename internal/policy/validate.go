package policy

import (
	"maps"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"tranca"
)

const (
	maxEnv      = 256
	maxEnvValue = 32 << 10
	maxEnvTotal = 128 << 10 // the kernel bounds what a program is started with
	maxHostname = 63
)

// Validate checks a policy that was built in Go as [Parse] checks one from a
// file. Each error is an [*Error] without a place; none means that the policy
// is whole.
func Validate(p tranca.Policy) []error {
	var all []error
	for _, e := range append(checkFields(&p), checkTogether(&p)...) {
		all = append(all, e)
	}
	return all
}

// checkFields checks each field by itself.
func checkFields(p *tranca.Policy) []*Error {
	var found []*Error
	for _, f := range table() {
		if f.ref == nil {
			continue
		}
		switch {
		case f.numeric():
			found = appendError(found, f.checkBounds(f.path, number(f.ref(p))))
		case f.kind == kindWord:
			found = appendError(found, f.checkWord(f.path, word(f.ref(p))))
		}
	}
	if p.Backend != "" && !isBackendName(p.Backend) {
		found = append(found, errorf("backend", "%s is no name of a backend: want lower case letters, digits and hyphens", quote(p.Backend)))
	}
	found = appendError(found, checkImage(p.Image))
	if p.Runtime != "" && !isRuntimeName(p.Runtime) {
		found = append(found, errorf("runtime", "%s is no name of a runtime: want lower case letters, digits, dots, underscores and hyphens", quote(p.Runtime)))
	}
	found = appendError(found, checkHostname(p.Hostname))
	found = appendError(found, checkAbsolute("workdir", p.Workdir))
	if p.Chroot != "" {
		found = appendError(found, checkAbsolute("chroot", p.Chroot))
	}
	found = append(found, checkEnv("environment", p.Env)...)
	found = appendError(found, checkUser(p.User))
	found = append(found, checkWaive(p.Waive)...)
	return append(found, checkMounts(p.Mounts)...)
}

// checkTogether checks what concerns more than one field.
func checkTogether(p *tranca.Policy) []*Error {
	var found []*Error
	if below(p.Backend, p.Floor) {
		e := errorf("backend", "%s is below the floor %q: it %s, so it is used only where the floor names it too",
			p.Backend, p.Floor.String(), lacks[levels[p.Backend]])
		e.Suggestion = "floor: " + levels[p.Backend].String()
		found = append(found, e)
	}
	if p.Chroot != "" && p.Backend != subprocess {
		found = append(found, errorf("chroot", "it is for the backend subprocess alone, and this policy names %s", quote(p.Backend)))
	}
	d := p.Limits.Disk
	if d.Backing == tranca.BackingMemory && d.Size > p.Limits.Memory/2 {
		found = append(found, errorf("limits.disk.size",
			"%s is more than half of limits.memory, %s: files in memory count as memory, so filling this space would end the run; raise limits.memory to %s, lower this to %s, or write backing: file",
			FormatSize(d.Size), FormatSize(p.Limits.Memory), FormatSize(twice(d.Size)), FormatSize(p.Limits.Memory/2)))
	}
	return append(found, checkOverlap(p.Mounts)...)
}

// subprocess is the name of the weaker rung, which is used only by name.
const subprocess = "subprocess"

// levels are those of the backends that have one and the same on every host. A
// container has that of its runtime.
var levels = map[string]tranca.Level{
	subprocess: tranca.LevelSubprocess, "process": tranca.LevelProcess, "gvisor": tranca.LevelGVisor,
}

// lacks says what a level lacks that those above it have.
var lacks = map[tranca.Level]string{
	tranca.LevelSubprocess: "hides no files",
	tranca.LevelProcess:    "has no kernel of its own",
	tranca.LevelGVisor:     "has no hardware between the code and the host",
}

// below reports whether a backend of that name is never at the floor.
func below(backend string, floor tranca.Level) bool {
	level, known := levels[backend]
	return known && level < floor
}

func twice(n int64) int64 { return min(n, 1<<61) * 2 }

func appendError(all []*Error, e *Error) []*Error {
	if e == nil {
		return all
	}
	return append(all, e)
}

func (f *field) checkBounds(at string, n int64) *Error {
	switch {
	case n < 0:
		return errorf(at, "%s is negative", f.format(n))
	case n == 0 && f.min > 0:
		return errorf(at, "0 is not a limit: there is no \"unlimited\"; want %s to %s", f.format(f.min), f.format(f.max))
	case n < f.min:
		return errorf(at, "%s is less than the least, %s", f.format(n), f.format(f.min))
	case n > f.max:
		return errorf(at, "%s is more than the most, %s", f.format(n), f.format(f.max))
	}
	return nil
}

func (f *field) checkWord(at, s string) *Error {
	if slices.Contains(f.words, s) {
		return nil
	}
	e := errorf(at, "%s: want %s", quote(s), either(f.words))
	e.Suggestion = nearest(s, f.words)
	return e
}

// either lists words: "a, b or c".
func either(words []string) string {
	if len(words) == 1 {
		return words[0]
	}
	last := len(words) - 1
	return strings.Join(words[:last], ", ") + " or " + words[last]
}

func checkImage(name string) *Error {
	if isImage(name) {
		return nil
	}
	e := errorf("image", "%s is no name of an image: want host, NAME:TAG as registries have it, or sha256: and 64 hexadecimal digits", quote(name))
	if small := strings.ToLower(name); isImage(small) {
		e.Suggestion = small
	}
	return e
}

func checkHostname(h string) *Error {
	const at = "hostname"
	if h == "" || len(h) > maxHostname {
		return errorf(at, "%s: want 1 to %d characters", quote(h), maxHostname)
	}
	for label := range strings.SplitSeq(h, ".") {
		if !isHostLabel(label) {
			return errorf(at, "%s: want letters, digits and hyphens, parted by dots, with no hyphen at either end of a part", quote(h))
		}
	}
	return nil
}

func checkEnv(at string, env map[string]string) []*Error {
	if len(env) > maxEnv {
		return []*Error{errorf(at, "%d variables: at most %d", len(env), maxEnv)}
	}
	var found []*Error
	total := 0
	for _, name := range slices.Sorted(maps.Keys(env)) {
		value := env[name]
		total += len(name) + len(value) + 2
		switch {
		case !isEnvName(name):
			found = append(found, badName(at, name))
		case strings.IndexByte(value, 0) >= 0:
			found = append(found, errorf(at+"."+name, "the value holds a NUL"))
		case !utf8.ValidString(value):
			found = append(found, errorf(at+"."+name, "the value is not valid UTF-8"))
		case len(value) > maxEnvValue:
			found = append(found, errorf(at+"."+name, "the value has %d bytes: at most %d", len(value), maxEnvValue))
		}
	}
	if total > maxEnvTotal {
		found = append(found, errorf(at, "all variables together have %d bytes: at most %d", total, maxEnvTotal))
	}
	return found
}

func badName(at, name string) *Error {
	return errorf(at, "%s is no name of a variable: want letters, digits and underscores, and no digit first", quote(name))
}

func checkUser(u tranca.User) *Error {
	const at = "user"
	if u.UID == 0 || u.GID == 0 {
		return errorf(at, "uid %d, gid %d: 0 belongs to the guest agent; want user, nobody, UID or UID:GID", u.UID, u.GID)
	}
	if u.UID > maxID || u.GID > maxID {
		return errorf(at, "uid %d, gid %d: at most %d", u.UID, u.GID, maxID)
	}
	if !isEnvName(u.Name) || len(u.Name) > 32 {
		return errorf(at, "%s is no name of a user", quote(u.Name))
	}
	return nil
}

func checkWaive(items []tranca.Item) []*Error {
	if most := len(tranca.Waivable()); len(items) > 2*most {
		return []*Error{errorf("waive", "%d items: there are only %d", len(items), most)}
	}
	var found []*Error
	for i, item := range items {
		at := index("waive", i)
		if slices.Contains(items[:i], item) {
			found = append(found, errorf(at, "%s is there twice", quote(string(item))))
		}
		found = appendError(found, checkWaivable(at, item))
	}
	return found
}

func checkWaivable(at string, item tranca.Item) *Error {
	switch {
	case slices.Contains(tranca.Waivable(), item):
		return nil
	case slices.Contains(tranca.Items(), item):
		return errorf(at, "%s can't be waived: the boundary does not stand without it; want %s", quote(string(item)), either(itemWords(tranca.Waivable())))
	}
	e := errorf(at, "%s is no item: want %s", quote(string(item)), either(itemWords(tranca.Waivable())))
	e.Suggestion = nearestItem(string(item))
	return e
}

// nearestItem also knows the last part of an item's name: "memory".
func nearestItem(s string) string {
	words := itemWords(tranca.Waivable())
	for _, w := range words {
		if w[strings.LastIndexByte(w, '.')+1:] == strings.ToLower(s) {
			return w
		}
	}
	return nearest(s, words)
}

func checkMounts(mounts []tranca.Mount) []*Error {
	if len(mounts) > maxMounts {
		return []*Error{errorf("mounts", "%d mounts: at most %d", len(mounts), maxMounts)}
	}
	var found []*Error
	for i := range mounts {
		found = append(found, checkMount(index("mounts", i), &mounts[i])...)
	}
	return found
}

func index(list string, i int) string { return list + "[" + strconv.Itoa(i) + "]" }
