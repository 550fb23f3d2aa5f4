// Bench measures what developers promise of speed and size beyond what `tranca
// bench` shows everybody: the server, streams, the guest agent, images. It also
// holds a result of `tranca bench` against the targets. Only ratios within one
// run count. It prints a table and, with -json, all figures with the host's facts.
//
// Every row is measured or ends the program with an error: a row that is
// missing would look like one that is met.
package main

import (
	"context"
	"fmt"
	"os"
	"os/signal"
)

func main() {
	o, plain := flags()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	var err error
	if plain != "" {
		err = plainServer(plain)
	} else {
		err = o.run(ctx)
	}
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "bench:", err)
		os.Exit(1)
	}
}
