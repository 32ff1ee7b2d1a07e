// Package v1alpha1 holds what baremetal.k8s.io/v1alpha1 puts into the Machines and
// Clusters of cluster.k8s.io: the bare metal provider's specs and statuses. They are no
// objects of the API by themselves.
//
// +kubebuilder:object:generate=true
// +groupName=baremetal.k8s.io
package v1alpha1
