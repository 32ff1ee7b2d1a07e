// Package v1alpha1 holds Cluster and Machine of cluster.k8s.io/v1alpha1, the old Cluster
// API, with the bare metal provider's specs and statuses in them. They have no short names:
// cluster.x-k8s.io has the same kinds.
//
// +kubebuilder:object:generate=true
// +groupName=cluster.k8s.io
package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// GroupVersion is the group and version of the kinds.
var GroupVersion = schema.GroupVersion{Group: "cluster.k8s.io", Version: "v1alpha1"}

// Labels and annotations of Machines.
const (
	ClusterNameLabel = "cluster.sigs.k8s.io/cluster-name"
	// ProviderLabel names the provider of a Cluster or Machine. Others' objects stay as they
	// are.
	ProviderLabel = "kaas.mirantis.com/provider"
	// ProviderBareMetal is the value of ProviderLabel for the bare metal provider.
	ProviderBareMetal = "baremetal"
	ControlPlaneLabel = "cluster.sigs.k8s.io/control-plane"
	// BareMetalHostAnnotation has the NAMESPACE/NAME of the host that a machine has claimed.
	BareMetalHostAnnotation = "metal3.io/BareMetalHost"
)

// AddToScheme adds the kinds to a scheme.
func AddToScheme(s *runtime.Scheme) error {
	s.AddKnownTypes(GroupVersion, &Cluster{}, &ClusterList{}, &Machine{}, &MachineList{})
	metav1.AddToGroupVersion(s, GroupVersion)
	return nil
}
