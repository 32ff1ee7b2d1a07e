// Package inventory is the part of the bare metal provider that makes BareMetalHosts from the
// servers that users describe. A BareMetalHostCredential's password moves to a Secret. A
// BareMetalHostInventory is written to the BareMetalHost of its name, whose status it shows;
// an edit of the BareMetalHost is overwritten. The fields that controller/mosk/provider/machines
// writes to a claimed host stay.
//
// It acts on objects with the label kaas.mirantis.com/provider=baremetal alone. Objects are
// deleted in order: an inventory when no Machine has its host any more, after its
// BareMetalHost; a credential after the inventories that name it.
//
// The package knows no BMC.
package inventory
