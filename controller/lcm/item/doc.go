// Package item has the rules on state items that the bare metal provider, the LCM
// controller and the agents share: the hash by which an execution is recognized, the merge
// of a machine's overwrites into its items, and the state of a machine that follows from
// the results; and which node a machine is, and when its turn comes. It is pure: it reads no
// API and no clock.
package item
