package fake

import (
	"errors"
	"fmt"
	"io"
	"maps"
	"path"
	"slices"
	"strconv"
	"strings"
	"time"

	"tranca"
)

// programs are what can be run: the test programs of package backendtest, by
// the same names, and a few that only this backend can play.
var programs = map[string]func(p *proc, args []string) int{
	"exit":  func(_ *proc, a []string) int { return number(a, 0) },
	"print": print2,
	"args":  func(p *proc, a []string) int { return say(p, strings.Join(a, "\x00")) },
	"env":   environment,
	"pwd":   func(p *proc, _ []string) int { return say(p, p.dir) },
	"cat":   cat,
	"sleep": func(p *proc, a []string) int { p.sleep(seconds(a, 0)); return 0 },
	"raise": func(p *proc, a []string) int { panic(killed{tranca.Signal(number(a, 0))}) },
	"segv":  func(*proc, []string) int { panic(killed{11}) },
	"spin":  spin,
	"alloc": alloc,
	"spinchild": func(p *proc, _ []string) int {
		p.fork(func(c *proc) int { return spin(c, nil) })
		p.sleep(time.Hour)
		return 0
	},
	"allocs": allocs,
	"forks":  forks,
	"bomb":   bomb,
	"hold":   hold,
	"flood":  flood,
	"fill":   fill,
	"inodes": inodes,
	"names":  inodes,
	"opens":  opens,
	"fifo":   special(tranca.FileOther),
	"link":   special(tranca.FileSymlink),
	"read":   read,
	"write":  write,
	"deaf":   deaf,
	"beat":   beat,
	"leave":  leave,
	"echo":   echo,
	"size":   size,
	// die plays a guest agent that the code has killed.
	"die": func(p *proc, _ []string) int { p.s.fail(); p.sleep(time.Hour); return 0 },
}

// interpreters read code; the function finds it in arguments and input.
var interpreters = map[string]func(p *proc) (string, error){
	"python3": func(p *proc) (string, error) {
		if len(p.args) < 6 {
			return "", errors.New("python3 is started in another way than package interpreter's")
		}
		size, err := strconv.Atoi(p.args[4])
		if err != nil {
			return "", err
		}
		var b []byte
		for len(b) < size {
			more, err := p.read(size - len(b))
			if b = append(b, more...); err != nil && len(b) < size {
				return "", err
			}
		}
		return string(b), nil
	},
	"sh": func(p *proc) (string, error) { return p.args[3], nil },
}

// program finds what a command runs.
func program(args []string) (func(*proc) int, error) {
	name := path.Base(args[0])
	if run, ok := programs[name]; ok {
		return func(p *proc) int { return run(p, args[1:]) }, nil
	}
	if code, ok := interpreters[name]; ok {
		return func(p *proc) int { return script(p, code) }, nil
	}
	return nil, fmt.Errorf("%w: program %q", tranca.ErrNotFound, args[0])
}

// script runs code line by line.
func script(p *proc, find func(*proc) (string, error)) int {
	code, err := find(p)
	if err != nil {
		p.write(p.err, err.Error()+"\n")
		return 2
	}
	for line := range strings.Lines(code) {
		words := strings.Fields(line)
		if len(words) == 0 || strings.HasPrefix(words[0], "#") {
			continue
		}
		run, ok := programs[words[0]]
		if !ok {
			p.write(p.err, words[0]+": not found\n")
			return 127
		}
		if status := run(p, words[1:]); status != 0 {
			return status
		}
	}
	return 0
}

func arg(a []string, i int) string {
	if i < len(a) {
		return a[i]
	}
	return ""
}

func number(a []string, i int) int { n, _ := strconv.Atoi(arg(a, i)); return n }

func seconds(a []string, i int) time.Duration {
	f, _ := strconv.ParseFloat(arg(a, i), 64)
	return time.Duration(f * float64(time.Second))
}

func say(p *proc, text string) int { p.write(p.out, text); return 0 }

func print2(p *proc, a []string) int {
	p.write(p.out, arg(a, 0))
	p.write(p.err, arg(a, 1))
	return 0
}

func environment(p *proc, _ []string) int {
	for _, name := range slices.Sorted(maps.Keys(p.env)) {
		p.write(p.out, name+"="+p.env[name]+"\x00")
	}
	return 0
}

func cat(p *proc, _ []string) int {
	for {
		b, err := p.read(64 << 10)
		p.write(p.out, string(b))
		if err == io.EOF {
			return 0
		}
		if err != nil {
			return 1
		}
	}
}

func spin(p *proc, _ []string) int {
	for {
		p.sleep(time.Millisecond)
		p.s.charge(time.Millisecond, 0)
	}
}

// alloc takes memory, gives it back when it ends, and says "ok".
func alloc(p *proc, a []string) int {
	n := int64(number(a, 0))
	p.s.charge(0, n)
	p.sleep(10 * time.Millisecond)
	p.s.charge(0, -n)
	return say(p, "ok")
}

// allocs lets several children take memory at the same time.
func allocs(p *proc, a []string) int {
	for range number(a, 0) {
		p.fork(func(c *proc) int { p.s.charge(0, int64(number(a, 1))); c.sleep(time.Hour); return 0 })
	}
	p.sleep(time.Hour)
	return 0
}

// forks starts sleeping children and says how many there are.
func forks(p *proc, a []string) int {
	n := 0
	for range number(a, 0) {
		if p.fork(func(c *proc) int { c.sleep(time.Hour); return 0 }) {
			n++
		}
	}
	return say(p, strconv.Itoa(n))
}

// bomb forks without end.
func bomb(p *proc, _ []string) int {
	for {
		p.fork(func(c *proc) int { return bomb(c, nil) })
		p.sleep(time.Millisecond)
	}
}

// hold leaves a child behind that holds the output open.
func hold(p *proc, a []string) int {
	p.fork(func(c *proc) int { c.sleep(seconds(a, 0)); return 0 })
	return say(p, "held")
}

func flood(p *proc, a []string) int {
	o := p.out
	if arg(a, 1) == "stderr" {
		o = p.err
	}
	block := strings.Repeat("x", pipeChunk)
	for left := number(a, 0); left > 0; left -= len(block) {
		p.write(o, block[:min(left, len(block))])
	}
	return 0
}

// fill writes so many bytes to a file and says "ok" or what stopped it.
func fill(p *proc, a []string) int {
	d := p.s.disk
	d.mu.Lock()
	n, err := d.open(path.Join(p.dir, arg(a, 0)), true, 0o644)
	d.mu.Unlock()
	if err != nil {
		return say(p, "refused")
	}
	block := make([]byte, 64<<10)
	for left := number(a, 1); left > 0; left -= len(block) {
		p.check()
		_, tooLarge, err := d.grow(n, block[:min(left, len(block))])
		switch {
		case tooLarge:
			panic(killed{tranca.SIGXFSZ})
		case err != nil:
			return say(p, "refused")
		}
	}
	return say(p, "ok")
}

// inodes makes empty files until it is refused, and says how many there are.
func inodes(p *proc, a []string) int {
	made := 0
	for i := range number(a, 0) {
		p.check()
		p.s.disk.mu.Lock()
		_, err := p.s.disk.open(path.Join(p.dir, "inode-"+strconv.Itoa(i)), true, 0o644)
		p.s.disk.mu.Unlock()
		if err != nil {
			break
		}
		made++
	}
	return say(p, strconv.Itoa(made))
}

// opens opens files until it is refused, and says how many there are.
func opens(p *proc, a []string) int {
	most := p.s.spec.Policy.Limits.OpenFiles - 3
	n := int64(number(a, 0))
	if n > most {
		p.s.refused(tranca.HitFiles)
	}
	return say(p, strconv.FormatInt(min(n, most), 10))
}

// special makes what is no regular file: the name comes first, then the
// target of a link.
func special(kind tranca.FileType) func(*proc, []string) int {
	return func(p *proc, a []string) int {
		d := p.s.disk
		d.mu.Lock()
		defer d.mu.Unlock()
		at, err := d.resolve(path.Join(p.dir, arg(a, 0)), false)
		if err == nil {
			err = d.add(at, &node{kind: kind, target: arg(a, 1), mode: 0o644})
		}
		if err != nil {
			return 1
		}
		return 0
	}
}

func read(p *proc, a []string) int {
	d := p.s.disk
	d.mu.Lock()
	name := arg(a, 0)
	if !path.IsAbs(name) {
		name = path.Join(p.dir, name)
	}
	n, err := d.open(name, false, 0)
	text := ""
	if err == nil {
		text = string(n.data)
	}
	d.mu.Unlock()
	if err != nil {
		return 1
	}
	return say(p, text)
}

func write(p *proc, a []string) int {
	d := p.s.disk
	d.mu.Lock()
	n, err := d.open(path.Join(p.dir, arg(a, 0)), true, 0o644)
	d.mu.Unlock()
	if err == nil {
		_, _, err = d.grow(n, []byte(arg(a, 1)))
	}
	if err != nil {
		return 1
	}
	return 0
}

// deaf ignores the signals that can be ignored and lives on.
func deaf(p *proc, _ []string) int {
	for _, sig := range []tranca.Signal{tranca.SIGHUP, tranca.SIGINT, tranca.SIGTERM} {
		p.ignore(sig)
	}
	p.write(p.out, "deaf")
	p.sleep(time.Hour)
	return 0
}

// leave leaves a child behind that goes on writing to a file, and itself goes on
// for some seconds.
func leave(p *proc, a []string) int { return leaveOne(p, a, false) }

// beat leaves one that has left the process group.
func beat(p *proc, a []string) int { return leaveOne(p, a, true) }

func leaveOne(p *proc, a []string, outside bool) int {
	written := make(chan struct{})
	p.fork(func(c *proc) int {
		if outside {
			c.s.mu.Lock()
			c.group = c
			c.s.mu.Unlock()
		}
		for i := 0; ; i++ {
			write(c, []string{arg(a, 0), strconv.Itoa(i)})
			if i == 0 {
				close(written)
			}
			c.sleep(10 * time.Millisecond)
		}
	})
	select {
	case <-written:
	case <-p.dying:
		p.check()
	}
	code := say(p, "beating")
	p.sleep(seconds(a, 1))
	return code
}
