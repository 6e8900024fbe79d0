// Command dumptriage triages Windows crash and hang dumps on any operating
// system, offline.
//
// One file a verb; the work is done by the packages below. Standard output
// carries results only; progress and warnings go to standard error.
package main

import (
	"os"
	"os/signal"
	"syscall"

	"dumptriage/internal/temporary"
)

func main() {
	interrupt := make(chan os.Signal, 1)
	signal.Notify(interrupt, os.Interrupt, syscall.SIGTERM)
	go func() {
		got := <-interrupt
		temporary.Abandon()
		if got == syscall.SIGTERM {
			os.Exit(exitTerminated)
		}
		os.Exit(exitInterrupted)
	}()
	limitMemory(0)
	os.Exit(run(os.Args[1:], os.Stdout, os.Stderr))
}
