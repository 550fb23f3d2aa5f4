// Command tranca-guest is the guest agent: the first process in every local
// sandbox. It is not meant to be run by hand; it expects its host at the other
// end of descriptor 3.
package main

import (
	"os"

	"tranca/internal/backend/process/boot"
	"tranca/internal/backend/process/bootspec"
)

func main() {
	// Without arguments of any kind: nothing about the host shows in
	// /proc/PID/cmdline.
	if boot.Run(bootspec.StreamFD) != nil {
		os.Exit(1)
	}
}
