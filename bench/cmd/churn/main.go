// Churn makes sandboxes by the thousand, kills a third of them in mid-run and
// their supervisor with -9 again and again, and the container engine where there
// is one, and then compares the host with what it was before. Nothing may be
// left.
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/signal"
)

func main() {
	var o options
	o.flags()
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	err := o.check()
	if err == nil {
		err = o.run(ctx)
	}
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "churn:", err)
		os.Exit(1)
	}
}
