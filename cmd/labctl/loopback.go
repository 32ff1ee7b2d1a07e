package main

import (
	"errors"
	"net"
)

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
	return errors.New("this computer, or this network namespace, has no loopback interface that is up, where BMCs and the Kubernetes API have their addresses: ip link set lo up")
}
