package process

import (
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"tranca"
)

// TestHostileCow tries to get from a copy of a host folder to the folder.
func TestHostileCow(t *testing.T) { runRows(t, []row{cowRow(), cowHooksRow()}) }

// shareCopy is share with a copy of the folder.
func (s *scene) shareCopy(files map[string]string, protect ...string) {
	s.Helper()
	s.share(files, func(m *tranca.Mount) {
		m.Writable, m.DiskUnbounded, m.Cow, m.Protect = false, false, true, protect
	})
}

// writable takes the copy away: the code writes to the folder itself.
var writable = control{what: "the copy", policy: func(p *tranca.Policy) {
	p.Mounts[0].Cow, p.Mounts[0].Writable, p.Mounts[0].DiskUnbounded = false, true, true
}}

// cowRow changes a folder in every way there is. Each works in the copy, and
// none in the folder.
func cowRow() row {
	acts := []string{
		"write", "append", "truncate", "mapping", "unlink", "rename", "over", "chmod", "times", "attribute", "link",
		"folder", "remove folder", "rename folder", "exchange", "by descriptor", "fallocate",
	}
	return row{
		id: "FS-03 FS-23", what: "change a folder through its copy",
		scene: func(s *scene) {
			files := map[string]string{}
			for _, a := range acts {
				files[a+"/f"] = "as it was, and long enough to be mapped"
			}
			s.shareCopy(files)
			for _, a := range acts {
				before := fingerprint(s, filepath.Join(s.dir, a))
				s.effect[a] = func() bool { return fingerprint(s, filepath.Join(s.dir, a)) != before }
			}
		},
		program: `
import mmap
os.chdir('/p')
def opened(name, how, data=b'evil'):
    fd = os.open(name, how)
    os.write(fd, data)
    os.fsync(fd)
def mapped():
    m = mmap.mmap(os.open('mapping/f', os.O_RDWR), 0)
    m[:4] = b'evil'
    m.flush()
def attribute():
    os.setxattr('attribute/f', 'user.tranca', b'evil')
attempt('write', opened, 'write/f', os.O_WRONLY)
attempt('append', opened, 'append/f', os.O_WRONLY | os.O_APPEND)
attempt('truncate', os.truncate, 'truncate/f', 0)
attempt('mapping', mapped)
attempt('unlink', os.unlink, 'unlink/f')
attempt('rename', os.rename, 'rename/f', 'rename/g')
def over():
    write('over/g', b'evil')
    os.rename('over/g', 'over/f')
attempt('over', over)
attempt('chmod', os.chmod, 'chmod/f', 0o600)
attempt('times', os.utime, 'times/f', (1, 1))
attempt('attribute', attribute)
attempt('link', os.link, 'link/f', 'link/g')
attempt('folder', os.mkdir, 'folder/g')
attempt('remove folder', lambda: (os.unlink('remove folder/f'), os.rmdir('remove folder'), os.mkdir('remove folder')))
def moved():
    try: os.rename('rename folder', 'elsewhere')
    except OSError: os.rename('rename folder/f', 'rename folder/g') # an overlay has mv do it
attempt('rename folder', moved)
attempt('exchange', lambda: (write('exchange/g', b'evil'), call('renameat2', -100, b'exchange/f', -100, b'exchange/g', 2)))
attempt('by descriptor', lambda: opened('/proc/self/fd/%d' % os.open('by descriptor/f', os.O_RDONLY), os.O_WRONLY))
attempt('fallocate', lambda: os.posix_fallocate(os.open('fallocate/f', os.O_RDWR), 0, 4096))
twin('read it', lambda: read('write/f'))
twin('its own file', lambda: write('new'))
`,
		controls: []control{writable},
	}
}

// fingerprint is all that a program can change of a file or folder.
func fingerprint(s *scene, dir string) string {
	var b strings.Builder
	paths, err := filepath.Glob(dir + "/*")
	if err != nil {
		s.Fatal(err)
	}
	for _, p := range append([]string{dir}, paths...) {
		var st unix.Stat_t
		if err := unix.Lstat(p, &st); err != nil {
			b.WriteString(err.Error())
			continue
		}
		content, _ := os.ReadFile(p) // a folder has none
		b.WriteString(p + "|" + string(content))
		for _, v := range []int64{int64(st.Mode), int64(st.Ino), int64(st.Nlink), st.Size, st.Mtim.Nano(), st.Ctim.Nano(), int64(st.Uid)} {
			b.WriteString("|" + strconv.FormatInt(v, 10))
		}
	}
	return b.String()
}

// cowHooksRow makes what the host would execute in a fresh place, and goes at
// what is there. The fresh ones are in the copy, and stay there when it is
// applied: package changeset has that.
func cowHooksRow() row {
	names := map[string]string{
		"hook": ".git/hooks/pre-commit", "nested": "sub/.git/hooks/pre-commit", "config": "fresh/.git/config",
		"editor": ".vscode/tasks.json", "envrc": ".envrc", "servers": ".mcp.json", "agents": ".github/hooks/x",
	}
	return row{
		id: "FS-23", what: "leave what the host executes in a folder by its copy",
		scene: func(s *scene) {
			s.shareCopy(map[string]string{"README": "r"})
			s.vars["names"] = names
			for a, name := range names {
				s.effect[a] = func() bool { _, err := os.Lstat(filepath.Join(s.dir, name)); return err == nil }
			}
		},
		program: `
os.chdir('/p')
def leave(name):
    os.makedirs(os.path.dirname(name) or '.', exist_ok=True)
    write(name, b'evil')
for name, path in V['names'].items():
    attempt(name, leave, path)
twin('an ordinary file', lambda: write('ordinary'))
`,
		controls: []control{writable},
	}
}
