// Package v1alpha1 holds the kind BareMetalHostProfile, which stands in the group
// metal3.io/v1alpha1 beside upstream's kinds: the disks that a server must have, and the
// partitions, kernel parameters and scripts of its operating system. It owns their JSON
// names and validation, and nothing that acts on them.
//
// +kubebuilder:object:generate=true
// +groupName=metal3.io
package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// GroupVersion is the group and version of the kind.
var GroupVersion = schema.GroupVersion{Group: "metal3.io", Version: "v1alpha1"}

// AddToScheme adds the kind to a scheme. Upstream's kinds of the group may be there.
func AddToScheme(s *runtime.Scheme) error {
	s.AddKnownTypes(GroupVersion, &BareMetalHostProfile{}, &BareMetalHostProfileList{})
	metav1.AddToGroupVersion(s, GroupVersion)
	return nil
}
