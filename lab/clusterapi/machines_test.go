package clusterapi

import (
	"errors"
	"slices"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	capi "sigs.k8s.io/cluster-api/api/v1beta1"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"github.com/metalab-dev/metalab/guest/node"
)

// The status of a Machine, which others may write, deletes no Node that another machine has registered.
func TestDeletedMachineRemovesItsOwnNode(t *testing.T) {
	scheme := runtime.NewScheme()
	if err := errors.Join(corev1.AddToScheme(scheme), capi.AddToScheme(scheme)); err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct {
		account, ref string // of the Node n; name and UID that the status refers to
		providerID   string // of the Node
		stays        bool
	}{
		{"system:serviceaccount:lab-machines:default.m", "", "", false},
		{"system:serviceaccount:lab-machines:default.m", "n", "", false},
		{"", "n", "elemental://default/n", false},
		{"", "n", "elemental://other/n", true},
		{"", "n", "", true},
		{"", "", "elemental://default/n", true},
		{"", "other", "elemental://default/n", true},
		{"system:serviceaccount:lab-machines:other.m", "n", "elemental://default/n", true},
		{"system:serviceaccount:default:m-lcm-agent", "n", "elemental://default/n", true},
		{"system:serviceaccount:lab-machines:default.m2", "", "elemental://default/n", true},
	} {
		n := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "n", UID: "n", Annotations: map[string]string{node.AgentAnnotation: tt.account}}}
		n.Spec.ProviderID = tt.providerID
		c := fake.NewClientBuilder().WithScheme(scheme).WithObjects(n).Build()
		m := &capi.Machine{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "m"}}
		if tt.ref != "" {
			m.Status.NodeRef = &corev1.ObjectReference{Name: tt.ref, UID: types.UID(tt.ref)}
		}
		if err := (&Core{live: c}).removeNode(t.Context(), m); err != nil {
			t.Fatal(err)
		}
		var left corev1.NodeList
		if err := c.List(t.Context(), &left); err != nil {
			t.Fatal(err)
		}
		if stays := slices.ContainsFunc(left.Items, func(n corev1.Node) bool { return n.Name == "n" }); stays != tt.stays {
			t.Errorf("Node of %q, reference %q, provider ID %q: it stays: %t, want %t", tt.account, tt.ref, tt.providerID, stays, tt.stays)
		}
	}
}
