package container

import (
	"time"

	"tranca"
)

// sample is one look at the counters.
type sample struct {
	usage     tranca.Usage
	countsCPU bool
	cpuSpent  time.Duration
	oomKills  int64
	refused   int64
	processes int64 // of the code
}
