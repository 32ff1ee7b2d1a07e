package netboot

import (
	"fmt"
	"syscall"

	"golang.org/x/sys/unix"
)

// bindTo returns a socket control function that binds the socket to a network device, so
// that it does not receive broadcasts of other networks.
func bindTo(device string) func(network, address string, c syscall.RawConn) error {
	if device == "" {
		return nil
	}
	return func(_, _ string, c syscall.RawConn) error {
		var bound error
		if err := c.Control(func(fd uintptr) { bound = unix.BindToDevice(int(fd), device) }); err != nil {
			return err
		}
		if bound != nil {
			return fmt.Errorf("device %s: %w", device, bound)
		}
		return nil
	}
}
