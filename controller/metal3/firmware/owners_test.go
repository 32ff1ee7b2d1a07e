package firmware

import (
	"fmt"
	"testing"

	metal3 "github.com/metal3-io/baremetal-operator/apis/metal3.io/v1alpha1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Owners that arrive while a schema waits to be written are part of that write, if
// the schema still applies to them (B-202).
func TestOwnersAreWrittenTogether(t *testing.T) {
	s := &metal3.FirmwareSchema{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "schema-1"}}
	objects := []client.Object{s}
	var owners []metav1.OwnerReference
	for i := range 5 {
		hfs := &metal3.HostFirmwareSettings{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: fmt.Sprint("other-", i), UID: types.UID(fmt.Sprint("uid-", i))}}
		if i == 3 { // it has another schema by now
			hfs.Status.FirmwareSchema = &metal3.SchemaReference{Namespace: namespace, Name: "schema-2"}
		}
		owners = append(owners, metav1.OwnerReference{APIVersion: "metal3.io/v1alpha1", Kind: "HostFirmwareSettings", Name: hfs.Name, UID: hfs.UID})
		if i != 4 { // it was deleted
			objects = append(objects, hfs)
		}
	}
	b := newBench(t, nil, objects...)
	for range 2 { // an owner that is added twice is written once
		for _, owner := range owners {
			if err := b.r.queueOwner(b.ctx, s, owner); err != nil {
				t.Fatal(err)
			}
		}
	}
	if n := len(b.r.joiners.wake); n != 1 {
		t.Fatalf("%d writes are asked for, want one", n)
	}
	if err := b.r.addOwners(b.ctx, client.ObjectKeyFromObject(s)); err != nil {
		t.Fatal(err)
	}
	var got metal3.FirmwareSchema
	if err := b.kube.Get(b.ctx, client.ObjectKeyFromObject(s), &got); err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, o := range got.OwnerReferences {
		names = append(names, o.Name)
	}
	if fmt.Sprint(names) != "[other-0 other-1 other-2]" {
		t.Errorf("owners %v, want other-0 to other-2", names)
	}
	if left := b.r.joiners.take(client.ObjectKeyFromObject(s)); len(left) != 0 {
		t.Errorf("%d still wait", len(left))
	}
}
