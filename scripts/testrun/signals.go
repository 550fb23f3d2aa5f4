package main

import (
	"os"
	"os/signal"
	"syscall"
)

// heed undoes what a shell does to its background jobs: they ignore these
// signals, and so would all that is run from here. What is caught here is as it
// should be there.
func heed() {
	caught := make(chan os.Signal, 1)
	signal.Notify(caught, syscall.SIGINT, syscall.SIGHUP)
	go func() {
		<-caught
		os.Exit(130)
	}()
}
