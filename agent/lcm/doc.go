// Package lcm is the LCM agent of a server: it reads the server's LCMMachine, executes its
// state items by phase and order, and writes addresses, host info and the results to the
// object's status. It reboots the server and replaces itself when the object demands it.
//
// It knows the Kubernetes API as a REST client of its own, with the rights of one service
// account, and the operating system through System alone: so the same agent works on a
// Debian host, below a scratch root, and in a server of the lab.
package lcm
