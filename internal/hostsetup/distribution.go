package hostsetup

import (
	"os"
	"path/filepath"
	"strings"
)

// Distribution is what /etc/os-release says, as far as it is used here.
type Distribution struct {
	// Name is for people: "Debian GNU/Linux 12 (bookworm)".
	Name string
	// family is the first known word of ID and ID_LIKE, or "".
	family string
}

// family says how programs are installed. Packages are listed only where they
// are not called like the program.
type family struct {
	install  string
	packages map[string]string
}

// families returns what is known of distributions by their ID.
func families() map[string]family {
	return map[string]family{
		"debian":   {"apt-get install -y", map[string]string{"newuidmap": "uidmap", "newgidmap": "uidmap", "usermod": "passwd"}},
		"alpine":   {"apk add", map[string]string{"newuidmap": "shadow-uidmap", "newgidmap": "shadow-uidmap", "usermod": "shadow"}},
		"fedora":   {"dnf install -y", map[string]string{"newuidmap": "shadow-utils", "newgidmap": "shadow-utils", "usermod": "shadow-utils"}},
		"arch":     {"pacman -S --noconfirm", map[string]string{"newuidmap": "shadow", "newgidmap": "shadow", "usermod": "shadow", "python3": "python"}},
		"suse":     {"zypper install -y", map[string]string{"newuidmap": "shadow", "newgidmap": "shadow", "usermod": "shadow"}},
		"opensuse": {"zypper install -y", map[string]string{"newuidmap": "shadow", "newgidmap": "shadow", "usermod": "shadow"}},
	}
}

// ReadDistribution reads the os-release file of the host whose root folder is
// given. A host without one is "Linux" of no known family.
func ReadDistribution(root string) Distribution {
	fields := map[string]string{}
	for _, name := range []string{"etc/os-release", "usr/lib/os-release"} {
		text, err := os.ReadFile(filepath.Join(root, name))
		if err != nil {
			continue
		}
		for line := range strings.Lines(string(text)) {
			if key, value, ok := strings.Cut(strings.TrimSpace(line), "="); ok {
				fields[key] = strings.Trim(value, `"'`)
			}
		}
		break
	}
	d := Distribution{Name: "Linux"}
	if fields["PRETTY_NAME"] != "" {
		d.Name = fields["PRETTY_NAME"]
	}
	all := families()
	for _, word := range strings.Fields(fields["ID"] + " " + fields["ID_LIKE"]) {
		if _, known := all[word]; known {
			d.family = word
			break
		}
	}
	return d
}

// Install returns the command that installs a program here, or words that say
// what to look for where the distribution is not known.
func (d Distribution) Install(program string) string {
	f, known := families()[d.family]
	if !known {
		return "install the package that has " + program
	}
	if p := f.packages[program]; p != "" {
		program = p
	}
	return f.install + " " + program
}

// Mend turns a backend's mend into one for this distribution: "install
// newuidmap" becomes the package manager's command. Anything else stays.
func (d Distribution) Mend(mend string) string {
	program, ok := strings.CutPrefix(mend, "install ")
	if !ok || strings.ContainsAny(program, " \n") {
		return mend
	}
	return d.Install(program)
}
