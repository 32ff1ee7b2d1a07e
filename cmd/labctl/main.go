// Command labctl runs a virtual rack of servers: BMCs that answer Redfish and IPMI,
// disks that hold bytes, a Kubernetes API, and the controller and the agents that
// provision those servers. It turns flags into configuration; the packages that it
// calls do the work.
//
// Servers of the family elemental register themselves. A server that boots the medium of a
// registration (labctl elemental seed REGISTRATION --iso FILE --insert HOST, then labctl host
// power HOST On) installs its disk and shows in labctl elemental ls; one whose Machine is deleted
// is reset and boots the medium again. labctl demo elemental shows both.
//
// It exits with 0 on success, 1 when something failed and 2 for a wrong command
// line.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"syscall"

	"github.com/metalab-dev/metalab/cmd/usage"
)

func main() { os.Exit(run()) }

func run() int {
	ends := []os.Signal{os.Interrupt, syscall.SIGTERM}
	if !signal.Ignored(syscall.SIGHUP) { // nohup(1) ignores it
		ends = append(ends, syscall.SIGHUP) // the terminal of a lab in the foreground has closed
	}
	ctx, stop := signal.NotifyContext(context.Background(), ends...)
	defer stop()
	return exitStatus(newRoot().ExecuteContext(ctx), os.Stderr)
}

// exitStatus prints the error of a command, and returns the exit status for it.
func exitStatus(err error, w io.Writer) int {
	if err == nil {
		return 0
	}
	var code exitCode
	if errors.As(err, &code) {
		return int(code)
	}
	fmt.Fprintln(w, "labctl:", err)
	if usage.Is(err) {
		return usage.Status
	}
	return 1
}

// exitCode makes labctl exit with this code and print nothing more.
type exitCode int

func (c exitCode) Error() string { return fmt.Sprintf("exit code %d", int(c)) }
