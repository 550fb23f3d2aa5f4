// Vmrun runs compiled tests in a VM that has nothing but cgroup v2 and
// Landlock. See internal/vmtest and vm.sh, which calls it.
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"time"
)

func main() {
	var o options
	flag.StringVar(&o.kernel, "kernel", ".cache/vm/kernel", "unpacked kernel package")
	flag.StringVar(&o.init, "init", ".cache/bin/vminit", "the VM's process 1, static")
	flag.StringVar(&o.testrun, "testrun", ".cache/bin/testrun", "the test runner, static")
	flag.StringVar(&o.bin, "bin", ".cache/testbin", "compiled tests")
	flag.StringVar(&o.log, "log", ".cache/testlog", "where the logs go")
	flag.StringVar(&o.dir, "dir", ".cache/vm", "folder to work in")
	flag.StringVar(&o.command, "command", "", "a shell command to run instead of the tests")
	flag.StringVar(&o.base, "base", "", "archive of a root with systemd, to boot instead of a tree made here")
	flag.StringVar(&o.only, "only", ".", "only packages that match")
	flag.StringVar(&o.run, "run", "", "only tests that match")
	flag.StringVar(&o.runs, "runs", "root sub plain", "which of the three runs, without systemd")
	timeout := flag.Duration("timeout", 25*time.Minute, "for all")
	flag.Parse()
	ctx, cancel := context.WithTimeout(context.Background(), *timeout)
	status, err := o.boot(ctx)
	cancel()
	if err != nil {
		fmt.Fprintln(os.Stderr, "vmrun:", err)
		status = 1
	}
	os.Exit(status)
}
