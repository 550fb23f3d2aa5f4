//go:build tranca_weaken

package hostiletest

import (
	"reflect"
	"testing"
	"time"

	"tranca"
	"tranca/internal/weaken"
)

// TestWeakenedEngine takes away what the engine keeps itself: the wall clock and
// the bound on output. What is stated stays as it was.
func TestWeakenedEngine(t *testing.T) {
	for _, c := range []struct {
		item  tranca.Item
		limit func(*tranca.Limits)
		code  string
		lost  func(*tranca.Result) bool
	}{
		{
			tranca.ItemWall, func(l *tranca.Limits) { l.Wall = 500 * time.Millisecond },
			"import time\ntime.sleep(1.5)\nprint('done')",
			func(r *tranca.Result) bool { return r.Exit.Success() && string(r.Stdout) == "done\n" },
		},
		{
			tranca.ItemOutput, func(l *tranca.Limits) { l.Output = tranca.Output{Size: 1 << 10, OnExceed: tranca.ExceedKill} },
			"print('x' * 100_000)",
			func(r *tranca.Result) bool { return r.Exit.Success() && len(r.Stdout) == 100_001 && !r.StdoutTruncated },
		},
		{
			tranca.ItemOutput, func(l *tranca.Limits) { l.Output = tranca.Output{Size: 1 << 10, OnExceed: tranca.ExceedTruncate} },
			"print('x' * 100_000)",
			func(r *tranca.Result) bool { return len(r.Stdout) == 100_001 && !r.StdoutTruncated },
		},
	} {
		t.Run(string(c.item), func(t *testing.T) {
			w := newWorld(t, func(_ *world, p *tranca.Policy) { c.limit(&p.Limits) })
			before := w.run(c.code)
			if c.lost(before) {
				t.Errorf("with the guarantee it ended with %s after %d bytes", before.Exit, len(before.Stdout))
			}
			restore, err := weaken.Take("process:" + string(c.item))
			if err != nil {
				t.Fatal(err)
			}
			defer restore()
			after := w.run(c.code)
			if !c.lost(after) {
				t.Errorf("without the guarantee it ended with %s after %d bytes", after.Exit, len(after.Stdout))
			}
			if !reflect.DeepEqual(before.Enforcement, after.Enforcement) {
				t.Errorf("a weakened run states something else:\n%v\n%v", before.Enforcement, after.Enforcement)
			}
		})
	}
}
