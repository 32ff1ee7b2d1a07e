// Package patch makes patches of objects that several controllers write.
package patch

import "sigs.k8s.io/controller-runtime/pkg/client"

// IfUnchanged returns a merge patch of what differs from before. The API refuses it with a Conflict
// when anybody else has changed the object since before was read: the controller then looks
// again, instead of overwriting what it has not seen.
func IfUnchanged(before client.Object) client.Patch {
	return client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{})
}
