// Command labctl runs a virtual rack of servers: BMCs that answer Redfish, disks
// that hold bytes, a Kubernetes API, and the controller and the agents that
// provision those servers. It turns flags into configuration; the work is done
// by the packages that it calls.
//
// It exits with 0 when all went well, 1 when something failed and 2 when it was
// called in a way that it does not understand.
package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"syscall"
)

func main() { os.Exit(run()) }

func run() int {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	root := newRoot()
	err := root.ExecuteContext(ctx)
	if err == nil {
		return 0
	}
	var code exitCode
	if errors.As(err, &code) {
		return int(code)
	}
	fmt.Fprintln(os.Stderr, "labctl:", err)
	var usage *usageError
	if errors.As(err, &usage) {
		return 2
	}
	return 1
}

// exitCode ends labctl with this code and no further word.
type exitCode int

func (c exitCode) Error() string { return fmt.Sprintf("exit code %d", int(c)) }

// usageError is a call that labctl does not understand.
type usageError struct{ err error }

func (e *usageError) Error() string { return e.err.Error() + " (see --help)" }
func (e *usageError) Unwrap() error { return e.err }
