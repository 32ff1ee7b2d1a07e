// Package machines is the part of the bare metal provider that turns Machines into
// provisioned servers. A Machine claims one BareMetalHost that its selector selects, writes
// the release's image and user data to its spec, and shows in its status how far host and
// LCMMachine are. A deleted Machine exists until its host is deprovisioned and free.
//
// It acts on Machines with the label kaas.mirantis.com/provider=baremetal alone.
//
// A claim has two writes. The Machine's annotation names the host first, then the host's
// consumerRef names the Machine, both with the resourceVersion that was read: of two
// Machines that name one host only one gets it, and a Machine never gets a second host,
// because it claims only the host that its annotation names.
//
// The disks of the host are compared with the BareMetalHostProfile that the Machine names.
// A host that does not match gets no image, and one that does gets the first device of the
// profile as its root device. User data apply what a profile has for a system that runs.
//
// Decide chooses the next step from what was observed, and is pure. Each pass does one
// step, so that a process that ends between two of them leaves nothing half done.
//
// The LCMMachine is created without a spec. Its labels name cluster and role once the
// machine may be deployed to: controller/mosk/lcm fills in the rest. The package computes no
// state items, and knows no BMC.
package machines
