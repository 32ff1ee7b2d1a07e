// Package item has the rules on state items that the bare metal provider, the LCM controller
// and the agents share: the hash by which an agent recognizes an execution, the merge of a
// machine's overwrites into its items, the state of a machine that follows from the results,
// the name of a machine's node, and the order of updates. It is pure: it reads no API and no
// clock.
package item
