package lab

import "golang.org/x/sys/unix"

// bindToDevice makes a socket hear of one device alone. Since Linux 5.7 it
// needs no privilege.
func bindToDevice(fd int, device string) error { return unix.BindToDevice(fd, device) }
