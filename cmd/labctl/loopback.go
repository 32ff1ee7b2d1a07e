package main

import (
	"errors"
	"net"
)

// needLoopback returns an error when this computer has no open loopback interface. Commands call
// it before they write a file: addresses that nobody can reach are no reason to leave one behind.
func needLoopback() error { return checkLoopback(net.Interfaces()) }

// checkLoopback returns an error when no network interface of this computer is an open loopback:
// BMCs and the Kubernetes API would wait minutes for their addresses. An error of the list itself
// is none: the lab finds out.
func checkLoopback(all []net.Interface, err error) error {
	if err != nil {
		return nil
	}
	for _, i := range all {
		if i.Flags&net.FlagLoopback != 0 && i.Flags&net.FlagUp != 0 {
			return nil
		}
	}
	return errors.New("this computer, or this network namespace, has no loopback interface that is up, where BMCs, the Kubernetes API and pages have their addresses: ip link set lo up")
}
