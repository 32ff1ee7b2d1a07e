// Package v1beta1 holds the Elemental kinds of infrastructure.cluster.x-k8s.io/v1beta1: the
// registration that servers register themselves with, the hosts that they become, and the
// machines and clusters of Cluster API that the hosts serve. It owns their JSON names, defaults,
// labels, phases, conditions and reasons, and nothing that acts on them: controller/elemental
// does.
//
// Conditions and the parts of Cluster API's own kinds are those of
// sigs.k8s.io/cluster-api/api/v1beta1, contract v1beta1.
//
// +kubebuilder:object:generate=true
// +groupName=infrastructure.cluster.x-k8s.io
package v1beta1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// GroupVersion is the group and version of the kinds.
var GroupVersion = schema.GroupVersion{Group: "infrastructure.cluster.x-k8s.io", Version: "v1beta1"}

// AddToScheme adds the kinds to a scheme.
func AddToScheme(s *runtime.Scheme) error {
	s.AddKnownTypes(GroupVersion,
		&ElementalRegistration{}, &ElementalRegistrationList{},
		&ElementalHost{}, &ElementalHostList{},
		&ElementalMachine{}, &ElementalMachineList{},
		&ElementalMachineTemplate{}, &ElementalMachineTemplateList{},
		&ElementalCluster{}, &ElementalClusterList{},
		&ElementalClusterTemplate{}, &ElementalClusterTemplateList{},
	)
	metav1.AddToGroupVersion(s, GroupVersion)
	return nil
}

// Finalizer is on ElementalHosts and on ElementalMachines: a host goes when its server has
// reset itself, a machine when its host is marked for the reset.
const Finalizer = "elementalmachine.infrastructure.cluster.x-k8s.io"

// Labels of an ElementalHost.
const (
	MachineNameLabel          = "elementalhost.infrastructure.cluster.x-k8s.io/machine-name"
	ElementalMachineNameLabel = "elementalhost.infrastructure.cluster.x-k8s.io/elemental-machine-name"
	InstalledLabel            = "elementalhost.infrastructure.cluster.x-k8s.io/installed"    // "true"
	BootstrappedLabel         = "elementalhost.infrastructure.cluster.x-k8s.io/bootstrapped" // "true"
	NeedsResetLabel           = "elementalhost.infrastructure.cluster.x-k8s.io/needs-reset"  // "true"
	ResetLabel                = "elementalhost.infrastructure.cluster.x-k8s.io/reset"        // "true"
	InPlaceUpdateLabel        = "elementalhost.infrastructure.cluster.x-k8s.io/in-place-update"
)

// True is the value of the labels that say that something has happened.
const True = "true"

// Values of InPlaceUpdateLabel.
const (
	InPlaceUpdatePending = "pending"
	InPlaceUpdateDone    = "done"
)
