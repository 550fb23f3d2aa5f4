// Init is process 1 of the test VM: it loads the modules, mounts the root
// image, runs one command, and powers off.
package main

import (
	"fmt"
	"os"

	"golang.org/x/sys/unix"
)

func main() {
	answer := os.Stderr
	status, err := boot(&answer)
	if err != nil {
		fmt.Fprintln(answer, "vmtest: init:", err)
		status = 255
	}
	fmt.Fprintf(answer, "\nvmtest: exit %d\n", status)
	unix.Sync()
	_ = unix.Reboot(unix.LINUX_REBOOT_CMD_POWER_OFF)
}
