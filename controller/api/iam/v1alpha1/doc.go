// Package v1alpha1 holds the kinds of iam.mirantis.com/v1alpha1: users, their roles, and the
// scopes in which they have them. It owns their JSON names and validation, and nothing that
// acts on them: controller/mosk/provider/iam makes the scopes of clusters.
//
// +kubebuilder:object:generate=true
// +groupName=iam.mirantis.com
package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// GroupVersion is the group and version of the kinds.
var GroupVersion = schema.GroupVersion{Group: "iam.mirantis.com", Version: "v1alpha1"}

// AddToScheme adds the kinds to a scheme.
func AddToScheme(s *runtime.Scheme) error {
	s.AddKnownTypes(GroupVersion,
		&IAMRole{}, &IAMRoleList{},
		&IAMUser{}, &IAMUserList{},
		&Scope{}, &ScopeList{},
		&IAMGlobalRoleBinding{}, &IAMGlobalRoleBindingList{},
		&IAMRoleBinding{}, &IAMRoleBindingList{},
		&IAMClusterRoleBinding{}, &IAMClusterRoleBindingList{},
	)
	metav1.AddToGroupVersion(s, GroupVersion)
	return nil
}
