//go:build !linux

package lab

import (
	"errors"
	"net/netip"
)

// bindToDevice is Linux's; so are addresses that one need not configure.
func bindToDevice(int, string) error { return errors.ErrUnsupported }

const reachedSize = 1

func tellReached(int) error { return errors.ErrUnsupported }

func reached([]byte) (netip.Addr, bool) { return netip.Addr{}, false }

func answerFrom([]byte, netip.Addr) []byte { return nil }
