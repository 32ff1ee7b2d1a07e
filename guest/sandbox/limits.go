package sandbox

import (
	"fmt"
	"strings"
)

// A LimitsError is the reason why the kernel does not limit what processes of a system use:
// this process may make no control groups, and is in none with limits itself. What the
// watcher of a system does not end in time then takes the whole machine.
type LimitsError struct{ Err error }

// Error implements error.
func (e *LimitsError) Error() string {
	return fmt.Sprintf("the kernel does not limit the commands of servers (%s): run this as root where control groups can be made, or in one with limits, "+
		"as systemd-run --user --scope -p MemoryMax=4G -p TasksMax=4000 makes it", strings.ReplaceAll(e.Err.Error(), "\n", "; "))
}

// Unwrap returns what the kernel refuses.
func (e *LimitsError) Unwrap() error { return e.Err }
