// Command dumptriage triages Windows crash and hang dumps on any operating
// system, offline.
//
// One file a verb; the work is done by the packages below. Standard output
// carries results only; progress and warnings go to standard error.
package main

import (
	"os"
	"os/signal"

	"dumptriage/fleet/store"
	"dumptriage/symbols"
)

func main() {
	interrupt := make(chan os.Signal, 1)
	signal.Notify(interrupt, os.Interrupt)
	go func() {
		<-interrupt
		symbols.Abandon()
		store.Abandon()
		os.Exit(exitInterrupted)
	}()
	limitMemory(0)
	os.Exit(run(os.Args[1:], os.Stdout, os.Stderr))
}
