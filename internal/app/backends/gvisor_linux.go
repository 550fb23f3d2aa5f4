package backends

import (
	"os"
	"path/filepath"

	"tranca"
	"tranca/internal/advisory"
	"tranca/internal/backend/gvisor"
	"tranca/internal/confine"
)

// platformVariable names the variable by which whoever runs tranca chooses
// gVisor's platform: "kvm" on a host whose processor virtualizes. It is tried
// before anything runs, and a host on which it does not boot refuses.
const platformVariable = "TRANCA_GVISOR_PLATFORM"

// debugVariable names a file to which gVisor's Sentries append their log.
const debugVariable = "TRANCA_GVISOR_LOG"

func newGVisor(known *advisory.InForce) (tranca.Backend, error) {
	go known.Table() // read meanwhile: close to a millisecond
	return gvisor.New(gvisor.Options{
		Options:  confine.Options{CgroupPaths: filepath.SplitList(os.Getenv(CgroupVariable))},
		Platform: os.Getenv(platformVariable),
		DebugLog: os.Getenv(debugVariable),

		Advisories: known,
	})
}
