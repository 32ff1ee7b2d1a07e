// Package hoc is the part of the bare metal provider that applies valid
// HostOSConfigurations: it adds their state items to LCMClusters, without params, and the
// params of each selected machine to the overwrites of its LCMMachine, and it reports in
// machinesStates how far they are. A deleted object exists until its items have left the
// status of every LCMMachine.
//
// Each kind has a reconciler that writes an object at most once for a change: clusters
// LCMClusters, machines LCMMachines, configurations HostOSConfigurations. They share the
// functions of plan.go, which are pure.
//
// The package does not validate: it acts on what controller/mosk/hostos has found valid. It
// does not merge overwrites into items: controller/mosk/lcm does. Nothing is rolled back on a
// server.
package hoc
