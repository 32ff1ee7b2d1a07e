//go:build !linux

package lab

import "errors"

// bindToDevice is Linux's; so are addresses that one need not configure.
func bindToDevice(int, string) error { return errors.ErrUnsupported }
