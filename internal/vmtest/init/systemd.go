package main

import (
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"
)

// unit runs the command when the system is up, and ends the VM. The line to
// the host is a serial one, as where this program itself runs the command.
const unit = `[Unit]
Description=the command of the test VM
After=multi-user.target dbus.service systemd-logind.service
[Service]
Type=oneshot
Environment=PATH=/usr/local/bin:/usr/bin:/bin:/usr/sbin:/sbin HOME=/root LANG=C.UTF-8
ExecStart=/bin/sh -c 'stty -F /dev/ttyS1 raw -echo; /bin/sh /vmtest/command >/dev/ttyS1 2>&1; \
  printf "\\nvmtest: exit %%d\\n" $? >/dev/ttyS1; sync; systemctl poweroff --force --force'
TimeoutStartSec=infinity
`

// becomeSystemd leaves the VM to the root's own init, with the command as a
// service that it starts at last. It returns only an error.
func becomeSystemd(command string) error {
	const folder = "/etc/systemd/system"
	for _, dir := range []string{"/vmtest", folder + "/multi-user.target.wants"} {
		if err := os.MkdirAll(dir, 0o755); err != nil {
			return err
		}
	}
	if err := os.WriteFile("/vmtest/command", []byte(command), 0o755); err != nil {
		return err
	}
	if err := os.WriteFile(filepath.Join(folder, "vmtest.service"), []byte(unit), 0o644); err != nil {
		return err
	}
	wants := filepath.Join(folder, "multi-user.target.wants/vmtest.service")
	if err := os.Symlink("../vmtest.service", wants); err != nil {
		return err
	}
	return unix.Exec("/sbin/init", []string{"/sbin/init"}, []string{"PATH=/usr/bin:/bin:/usr/sbin:/sbin", "container="})
}
