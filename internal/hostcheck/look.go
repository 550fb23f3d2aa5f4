package hostcheck

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path"
	"strings"
)

// maxFile is how much of a file is read.
const maxFile = 64 << 10

// read returns the text of a file, without blanks around it.
func (h *Host) read(name string) (string, error) {
	info, err := fs.Stat(h.FS, name)
	if err != nil {
		return "", err
	}
	if !info.Mode().IsRegular() {
		return "", fmt.Errorf("/%s is no file", name) // nor one that blocks
	}
	f, err := h.FS.Open(name)
	if err != nil {
		return "", err
	}
	defer f.Close()
	data, err := io.ReadAll(io.LimitReader(f, maxFile))
	return strings.TrimSpace(string(data)), err
}

func (h *Host) exists(name string) bool {
	_, err := fs.Stat(h.FS, name)
	return err == nil
}

// chosen takes the word out of "always [madvise] never".
func chosen(text string) string {
	if _, rest, ok := strings.Cut(text, "["); ok {
		if word, _, ok := strings.Cut(rest, "]"); ok {
			return word
		}
	}
	return text
}

// file reads the first file that is there.
func (c *Check) file(h *Host) finding {
	for _, name := range c.Paths {
		text, err := h.read(name)
		switch {
		case errors.Is(err, fs.ErrNotExist):
			continue
		case err != nil:
			return finding{unknown: err.Error()}
		}
		return finding{value: chosen(text), seen: path.Base(name) + " is " + quoted(text)}
	}
	return finding{absent: true, seen: "there is no /" + c.Paths[0]}
}

// quoted keeps what is shown short and on one line.
func quoted(text string) string {
	text = strings.Join(strings.Fields(text), " ")
	if len(text) > 120 {
		text = text[:120] + "..."
	}
	if text == "" {
		return "empty"
	}
	return text
}

// each reads all files that match; the worst verdict counts, and those files
// are shown.
func (c *Check) each(h *Host) (Verdict, string) {
	worst, seen, count := OK, "", 0
	for _, pattern := range c.Paths {
		names, err := fs.Glob(h.FS, pattern)
		if err != nil {
			return Unknown, err.Error()
		}
		for _, name := range names {
			text, err := h.read(name)
			f := finding{value: chosen(text), seen: shortName(name) + ": " + quoted(text)}
			if err != nil {
				f = finding{unknown: shortName(name) + ": " + err.Error()}
			}
			v, says := c.judge(f)
			count++
			if v.rank() > worst.rank() {
				worst, seen = v, ""
			}
			if v == worst && v != OK {
				seen = join(seen, "; ", says)
			}
		}
	}
	switch {
	case count == 0:
		return c.Absent, "there is no /" + c.Paths[0]
	case seen == "":
		return worst, fmt.Sprintf("all %d are as they should be", count)
	}
	return worst, seen
}

// shortName is the file's name, or that of its folder too where many files have
// one name.
func shortName(name string) string {
	base := path.Base(name)
	if strings.Contains(name, "/conf/") {
		return path.Base(path.Dir(name)) + "/" + base
	}
	return base
}

// mountpoint is one line of mountinfo.
type mountpoint struct {
	at, kind string
	options  []string
}

// mounts are those of this process.
func (h *Host) mounts() ([]mountpoint, error) {
	text, err := h.read("proc/self/mountinfo")
	if err != nil {
		return nil, err
	}
	var all []mountpoint
	for line := range strings.Lines(text) {
		before, after, ok := strings.Cut(line, " - ")
		left, right := strings.Fields(before), strings.Fields(after)
		if !ok || len(left) < 6 || len(right) < 3 {
			continue
		}
		options := append(strings.Split(left[5], ","), strings.Split(right[2], ",")...)
		all = append(all, mountpoint{unescape(left[4]), right[0], options})
	}
	return all, nil
}

// unescape reads a path as the kernel writes it there.
func unescape(s string) string {
	return strings.NewReplacer(`\040`, " ", `\011`, "\t", `\012`, "\n", `\134`, `\`).Replace(s)
}

// mount finds the file system of the first folder that is there.
func (c *Check) mount(h *Host) finding {
	for _, name := range c.Paths {
		if !h.exists(name) {
			continue
		}
		all, err := h.mounts()
		if err != nil {
			return finding{unknown: err.Error()}
		}
		best := mountpoint{}
		for _, m := range all { // of two at one place the later one is on top
			at := strings.TrimSuffix(m.at, "/")
			if ("/"+name == at || strings.HasPrefix("/"+name, at+"/")) && len(m.at) >= len(best.at) {
				best = m
			}
		}
		if best.kind == "" {
			return finding{unknown: "the mount of /" + name + " is not listed"}
		}
		return finding{value: best.kind, options: best.options, seen: "/" + name + " is on " + best.kind}
	}
	return finding{absent: true, seen: "there is no /" + c.Paths[0]}
}

// module says whether a program could come to use a module of the kernel.
func (h *Host) module(name string) finding {
	if h.exists("sys/module/" + name) {
		return finding{value: "loaded", seen: "module " + name + " is in the kernel"}
	}
	release, err := h.read("proc/sys/kernel/osrelease")
	if err != nil {
		return finding{unknown: err.Error()}
	}
	folder := ""
	for _, root := range []string{"lib/modules/", "usr/lib/modules/"} {
		if h.exists(root + release) {
			folder = root + release
			break
		}
	}
	switch {
	case folder == "":
		return finding{value: "absent", seen: "no modules are installed for this kernel, and " + name + " is not in it"}
	case h.lists(folder+"/modules.builtin", name):
		return finding{value: "builtin", seen: "module " + name + " is built into the kernel"}
	case !h.lists(folder+"/modules.dep", name):
		return finding{value: "absent", seen: "there is no module " + name}
	}
	if off, err := h.read("proc/sys/kernel/modules_disabled"); err == nil && off == "1" {
		return finding{value: "blocked", seen: "module " + name + " is not loaded, and none can be any more"}
	}
	if file := h.blocks(name); file != "" {
		return finding{value: "blocked", seen: "/" + file + " keeps module " + name + " from being loaded"}
	}
	return finding{value: "loadable", seen: "module " + name + " is not loaded; a program's call would load it"}
}

// lists reports whether a list of modules has one: "kernel/crypto/af_alg.ko.xz"
// at the beginning of a line.
func (h *Host) lists(file, name string) bool {
	f, err := h.FS.Open(file)
	if err != nil {
		return false
	}
	defer f.Close()
	data, err := io.ReadAll(io.LimitReader(f, 8<<20))
	if err != nil {
		return false
	}
	for line := range strings.Lines(string(data)) {
		first, _, _ := strings.Cut(line, ":")
		base, _, _ := strings.Cut(path.Base(strings.TrimSpace(first)), ".ko")
		if strings.ReplaceAll(base, "-", "_") == name {
			return true
		}
	}
	return false
}

// blocks returns the file of modprobe that has something else done than load a
// module: "install NAME /bin/false". A line "blacklist NAME" is not enough: it
// is about aliases, and most modules are asked for by their own name.
func (h *Host) blocks(name string) string {
	for _, dir := range []string{"etc/modprobe.d", "run/modprobe.d", "usr/lib/modprobe.d", "lib/modprobe.d"} {
		files, err := fs.Glob(h.FS, dir+"/*.conf")
		if err != nil {
			continue
		}
		for _, file := range files {
			text, err := h.read(file)
			if err != nil {
				continue
			}
			for line := range strings.Lines(text) {
				words := strings.Fields(line)
				if len(words) < 2 || strings.ReplaceAll(words[1], "-", "_") != name {
					continue
				}
				if words[0] == "install" && len(words) > 2 && !strings.Contains(line, "modprobe") {
					return file
				}
			}
		}
	}
	return ""
}
