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
		return fmt.Errorf("device %s: sockets are bound to devices on Linux alone", device)
	}
}
