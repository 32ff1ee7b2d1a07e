// Package v1alpha1 holds the kinds of ipam.mirantis.com/v1alpha1 by which servers get their
// networks: Subnets with addresses, L2Templates with the configuration of interfaces, and
// what each server gets of both. It owns their JSON names, defaults and validation, and
// nothing that acts on them.
//
// +kubebuilder:object:generate=true
// +groupName=ipam.mirantis.com
package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// GroupVersion is the group and version of the kinds.
var GroupVersion = schema.GroupVersion{Group: "ipam.mirantis.com", Version: "v1alpha1"}

// DefaultForClusterLabel marks the L2Template of Machines that select none.
const DefaultForClusterLabel = "ipam/DefaultForCluster"

// AddToScheme adds the kinds to a scheme.
func AddToScheme(s *runtime.Scheme) error {
	s.AddKnownTypes(GroupVersion,
		&Subnet{}, &SubnetList{}, &SubnetPool{}, &SubnetPoolList{}, &L2Template{}, &L2TemplateList{}, &IpamHost{}, &IpamHostList{}, &IPaddr{}, &IPaddrList{},
	)
	metav1.AddToGroupVersion(s, GroupVersion)
	return nil
}

// ResultOK is the result of a step that has succeeded. Others begin with ERR.
const ResultOK = "OK"
