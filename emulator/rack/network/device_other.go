//go:build !linux

package network

import (
	"errors"
	"net/netip"
)

// bindToDevice works on Linux only, as do loopback addresses that nobody has
// configured.
func bindToDevice(int, string) error { return errors.ErrUnsupported }

const controlSize = 1

func reportDestination(int) error { return errors.ErrUnsupported }

func parseDestination([]byte) (netip.Addr, bool) { return netip.Addr{}, false }

func encodeSource([]byte, netip.Addr) []byte { return nil }
