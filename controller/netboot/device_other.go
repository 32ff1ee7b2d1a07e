//go:build !linux

package netboot

import (
	"fmt"
	"syscall"
)

func bindTo(device string) func(network, address string, c syscall.RawConn) error {
	if device == "" {
		return nil
	}
	return func(string, string, syscall.RawConn) error {
		return fmt.Errorf("device %s: binding a socket to a device is supported on Linux only", device)
	}
}
