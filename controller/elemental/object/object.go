// Package object writes the changes of Kubernetes objects that have a status: metadata and spec,
// and then the status, each only where it differs, and each only if nobody else has changed the
// object since it was read. The conditions of a status are a list that a write replaces as a
// whole: without that check, a write would drop what others have added meanwhile.
package object

import (
	"context"
	"encoding/json"
	"fmt"
	"reflect"

	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Patch writes what differs between an object as it was read and as it is to be, the status last,
// and sets after to the object as the API then has it. For an object that somebody else has
// changed it returns an error for which apierrors.IsConflict holds.
func Patch(ctx context.Context, c client.Client, before, after client.Object) error {
	return patch(ctx, c, before, after, false)
}

// PatchStatusFirst does the same with the status first: for a change of metadata by which others
// may remove the object.
func PatchStatusFirst(ctx context.Context, c client.Client, before, after client.Object) error {
	return patch(ctx, c, before, after, true)
}

func patch(ctx context.Context, c client.Client, before, after client.Object, statusFirst bool) error {
	change, status, err := difference(before, after)
	if err != nil {
		return fmt.Errorf("object: %w", err)
	}
	version := before.GetResourceVersion()
	writeStatus := func() error {
		if status == nil {
			return nil
		}
		out := emptyLike(after)
		if err := c.Status().Patch(ctx, out, locked(map[string]any{"status": status}, version)); err != nil {
			return err
		}
		set(after, out)
		version = after.GetResourceVersion()
		return nil
	}
	if statusFirst {
		if err := writeStatus(); err != nil {
			return err
		}
		status = nil
	}
	if len(change) > 0 {
		out := emptyLike(after)
		if err := c.Patch(ctx, out, locked(change, version)); err != nil {
			return err
		}
		set(after, out)
		version = after.GetResourceVersion()
		if !after.GetDeletionTimestamp().IsZero() && len(after.GetFinalizers()) == 0 {
			return nil // the API has removed it with its last finalizer
		}
	}
	return writeStatus()
}

// difference returns the JSON merge patches of an object without its status, and of its status;
// nil where nothing differs.
func difference(before, after client.Object) (change map[string]any, status any, err error) {
	b, err := client.MergeFrom(before).Data(after)
	if err != nil {
		return nil, nil, err
	}
	if err := json.Unmarshal(b, &change); err != nil {
		return nil, nil, err
	}
	status = change["status"]
	delete(change, "status")
	return change, status, nil
}

// locked returns a merge patch for an object of this resource version alone.
func locked(change map[string]any, version string) client.Patch {
	meta, ok := change["metadata"].(map[string]any)
	if !ok {
		meta = map[string]any{}
		change["metadata"] = meta
	}
	meta["resourceVersion"] = version
	b, err := json.Marshal(change)
	if err != nil {
		panic(err) // it was parsed from JSON
	}
	return client.RawPatch(types.MergePatchType, b)
}

// emptyLike returns an object of the same type and name: decoding an answer into the object
// itself would leave the entries of maps that the answer does not have.
func emptyLike(o client.Object) client.Object {
	out := reflect.New(reflect.TypeOf(o).Elem()).Interface().(client.Object)
	out.SetNamespace(o.GetNamespace())
	out.SetName(o.GetName())
	return out
}

// set sets an object to the value of another of its type.
func set(to, from client.Object) { reflect.ValueOf(to).Elem().Set(reflect.ValueOf(from).Elem()) }
