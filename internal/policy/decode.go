package policy

import (
	"slices"

	"tranca"
)

// value reads one field.
func (d *decoder) value(at string, f *field, n *node) {
	switch f.kind {
	case kindVersion:
		if n.kind != nodeNumber || n.text != "1" {
			d.fail(n, wrongKind(at, "the number 1, the only version that is known", n))
		}
	case kindSize, kindDuration, kindCPUs, kindCount:
		d.number(at, f, n)
	case kindWord:
		if s, ok := d.text(at, n, either(f.words)); ok {
			if e := f.checkWord(at, s); e != nil {
				d.fail(n, e)
				return
			}
			setWord(f.ref(&d.policy), s)
		}
	case kindName:
		if s, ok := d.text(at, n, "text"); ok {
			setWord(f.ref(&d.policy), s)
		}
	case kindBool:
		if n.kind != nodeBool {
			d.fail(n, wrongKind(at, "true or false", n))
			return
		}
		*f.ref(&d.policy).(*bool) = n.isTrue()
	case kindUser:
		d.user(at, n)
	case kindEnv:
		d.environment(at, n)
	case kindItems:
		d.items(at, n)
	case kindMounts:
		d.mounts(at, n)
	}
}

// number reads a number. Counts and CPUs are plain numbers, sizes and
// durations are text because they need a unit.
func (d *decoder) number(at string, f *field, n *node) {
	plain := f.kind == kindCPUs || f.kind == kindCount
	if n.kind != nodeNumber && (plain || n.kind != nodeText) {
		e := wrongKind(at, "a "+unitNames[f.kind], n)
		if v, err := f.parse(n.text); err == nil {
			e.Suggestion = f.format(v) // the number in quotes
		}
		d.fail(n, e)
		return
	}
	v, err := f.parse(n.text)
	if err != nil {
		e := err.(*Error) // all unit parsers return one
		if f.kind == kindCount && n.text == "0" && f.min == 0 {
			e = nil
		}
		if e != nil {
			d.fail(n, e.at(at))
		}
		return
	}
	if e := f.checkBounds(at, v); e != nil {
		d.fail(n, e)
		return
	}
	setNumber(f.ref(&d.policy), v)
}

// text reads a string. A number or a bool that stands for one would be taken
// otherwise than it looks by other readers of YAML, so it must be in quotes.
func (d *decoder) text(at string, n *node, want string) (string, bool) {
	if n.kind == nodeText {
		return n.text, true
	}
	e := wrongKind(at, want, n)
	if n.kind == nodeNumber || n.kind == nodeBool {
		e.Message += ": put it in quotes if it is meant"
	}
	d.fail(n, e)
	return "", false
}

func (d *decoder) user(at string, n *node) {
	if n.kind != nodeText && n.kind != nodeNumber {
		d.fail(n, wrongKind(at, "user, nobody, UID or UID:GID", n))
		return
	}
	u, err := ParseUser(n.text)
	if err != nil {
		d.fail(n, err.(*Error).at(at)) // ParseUser returns no other
		return
	}
	d.policy.User = u
}

func (d *decoder) environment(at string, n *node) {
	if n.kind != nodeMap {
		d.fail(n, wrongKind(at, "a group such as {LANG: C.UTF-8}", n))
		return
	}
	d.policy.Env = map[string]string{}
	for i, key := range n.keys {
		if key.kind != nodeText || !isEnvName(key.text) {
			d.fail(key, badName(at, key.text))
			continue
		}
		name := joinPath(at, key.text)
		if !d.once(name, key, n.values[i]) {
			continue
		}
		if s, ok := d.text(name, n.values[i], "text"); ok {
			d.policy.Env[key.text] = s
		}
	}
}

// list reads a list and calls one for each entry.
func (d *decoder) list(at, want string, n *node, one func(at string, n *node)) {
	if n.kind != nodeList {
		d.fail(n, wrongKind(at, "a list such as "+want, n))
		return
	}
	for i, v := range n.values {
		d.places[index(at, i)] = v
		one(index(at, i), v)
	}
}

func (d *decoder) items(at string, n *node) {
	d.list(at, "[limits.memory]", n, func(at string, n *node) {
		if s, ok := d.text(at, n, "an item"); ok {
			d.policy.Waive = append(d.policy.Waive, tranca.Item(s))
		}
	})
}

func (d *decoder) mounts(at string, n *node) {
	d.list(at, "[{source: /home/me/project, target: /project}]", n, d.mount)
}

// mount reads one mount. Every mount that is writable and says nothing about
// protection gets the default list.
func (d *decoder) mount(at string, n *node) {
	// Also one that can't be read has its place, for the others' numbers.
	d.policy.Mounts = append(d.policy.Mounts, tranca.Mount{})
	m := &d.policy.Mounts[len(d.policy.Mounts)-1]
	if n.kind != nodeMap {
		d.fail(n, wrongKind(at, "a group such as {source: /home/me/project, target: /project}", n))
		return
	}
	fields := mountTable()
	given := map[string]bool{}
	for i, key := range n.keys {
		f := slices.IndexFunc(fields, func(f field) bool { return f.path == key.text && key.kind == nodeText })
		if f < 0 {
			e := unknown("", key.text, fields)
			e.Path = joinPath(at, e.Path)
			d.fail(key, e)
			continue
		}
		if path := joinPath(at, key.text); d.once(path, key, n.values[i]) {
			given[key.text] = true
			d.mountField(path, &fields[f], n.values[i], m)
		}
	}
	for _, name := range []string{"source", "target"} {
		if !given[name] {
			d.fail(n, errorf(joinPath(at, name), "it is missing"))
		}
	}
	if (m.Writable || m.Cow) && !given["protect"] {
		m.Protect = DefaultProtect()
	}
}

func (d *decoder) mountField(at string, f *field, n *node, m *tranca.Mount) {
	if f.kind == kindPaths {
		list := []string{}
		d.list(at, "[secrets]", n, func(at string, n *node) {
			if s, ok := d.text(at, n, "a path"); ok {
				list = append(list, s)
			}
		})
		if f.path == "deny" {
			m.Deny = list
		} else {
			m.Protect = list
		}
		return
	}
	want := "an absolute path"
	if f.kind == kindWord {
		want = either(f.words)
	}
	s, ok := d.text(at, n, want)
	if !ok {
		return
	}
	if f.kind == kindWord {
		if e := f.checkWord(at, s); e != nil {
			d.fail(n, e)
			return
		}
	}
	switch f.path {
	case "source":
		m.Source = s
	case "target":
		m.Target = s
	case "mode":
		m.Writable, m.Cow = s == "rw", s == "cow"
	case "disk":
		m.DiskUnbounded = true
	}
}
