// Package rack runs its feature files against racks without Kubernetes. It is the
// protocol suite: scenarios send Redfish requests and run IPMI clients. Each has a
// separate lab, whose clock stands still until a step lets time pass.
// ../COVERAGE.md lists the requirements that they show.
package rack
