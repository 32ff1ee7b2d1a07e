// Package v1alpha1 holds the kinds of lcm.mirantis.com/v1alpha1: the objects by which the
// bare metal provider, the LCM controller and the agents on servers share the work on a
// cluster's machines. It owns their JSON names, defaults and validation, and nothing that
// acts on them: controller/mosk/lcm/item computes hashes and states.
//
// JSON names that look misspelled (agentVesrion, Distribution) are those of the API.
//
// +kubebuilder:object:generate=true
// +groupName=lcm.mirantis.com
package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// GroupVersion is the group and version of the kinds.
var GroupVersion = schema.GroupVersion{Group: "lcm.mirantis.com", Version: "v1alpha1"}

// AddToScheme adds the kinds to a scheme.
func AddToScheme(s *runtime.Scheme) error {
	s.AddKnownTypes(GroupVersion,
		&LCMCluster{}, &LCMClusterList{},
		&LCMMachine{}, &LCMMachineList{},
		&LCMClusterState{}, &LCMClusterStateList{},
		&ClusterMaintenanceRequest{}, &ClusterMaintenanceRequestList{},
		&NodeMaintenanceRequest{}, &NodeMaintenanceRequestList{},
		&ClusterWorkloadLock{}, &ClusterWorkloadLockList{},
		&NodeWorkloadLock{}, &NodeWorkloadLockList{},
		&NodeDeletionRequest{}, &NodeDeletionRequestList{},
		&HelmBundle{}, &HelmBundleList{},
	)
	metav1.AddToGroupVersion(s, GroupVersion)
	return nil
}
