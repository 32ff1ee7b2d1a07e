// Package watch finds the objects that a change of another object concerns, for the handlers of
// watches. It knows no kind and no controller.
package watch

import (
	"context"
	"fmt"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
)

// Requests lists objects in the cache and returns the requests for those that are concerned, in
// the list's order; with concerned nil, for all. List must be empty, and must not be changed
// afterwards: its objects are those of the cache. A handler cannot return an error: Requests logs
// it and returns what was listed.
func Requests[T client.Object](ctx context.Context, c client.Reader, list client.ObjectList, concerned func(T) bool, opts ...client.ListOption) (out []reconcile.Request) {
	err := c.List(ctx, list, append(opts, client.UnsafeDisableDeepCopy)...)
	if err == nil {
		err = meta.EachListItem(list, func(item runtime.Object) error {
			if o := item.(T); concerned == nil || concerned(o) {
				out = append(out, reconcile.Request{NamespacedName: client.ObjectKeyFromObject(o)})
			}
			return nil
		})
	}
	if err != nil {
		ctrl.LoggerFrom(ctx).Error(err, "objects are not listed", "list", fmt.Sprintf("%T", list)) // a typed list has no kind
	}
	return out
}
