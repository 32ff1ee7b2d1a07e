// Package lcm has the tests in which the LCM agent meets a Kubernetes API: on this machine,
// below a scratch root, with the rights of its service account alone.
package lcm
