//go:build !windows

package container

import (
	"os"
	"strconv"
	"syscall"

	"tranca"
)

// trusted refuses a socket that belongs to another user than root or the
// caller: whoever owns it plays the engine, and would be handed code and files.
func trusted(socket string) error {
	info, err := os.Stat(socket)
	if err != nil {
		return explain(socket, err)
	}
	st, ok := info.Sys().(*syscall.Stat_t)
	if info.Mode().Type() != os.ModeSocket || !ok {
		return refusal(tranca.Problem{
			Item: tranca.ItemIsolation, Asked: "the container engine at " + socket, Missing: "that is no socket",
			Mend: "name the engine's socket in TRANCA_CONTAINER_ENGINE",
		})
	}
	if st.Uid == 0 || int(st.Uid) == os.Geteuid() {
		return nil
	}
	return refusal(tranca.Problem{
		Item: tranca.ItemIsolation, Asked: "the container engine at " + socket,
		Missing: "it belongs to user id " + strconv.Itoa(int(st.Uid)) + ", who would get all code and files",
		Mend:    "run tranca as that user, or use an engine of your own",
	})
}
