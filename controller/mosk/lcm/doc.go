// Package lcm is the LCM controller: it makes the state items of each LCMMachine from the
// items of its type in the LCMCluster and from the machine's overwrites, computes the state of
// the machine from the results that its agent reports, and counts the machines of each
// LCMCluster. The rules are those of controller/mosk/lcm/item.
//
// The package talks to no server: agents execute the items. It does not know where items
// and overwrites come from.
package lcm
