// Package v1alpha1 holds the kinds of kaas.mirantis.com/v1alpha1 that users write: host OS
// configurations and the modules that they use, releases, SSH keys, servers and accounts of
// their BMCs. It owns their JSON names, defaults and
// validation, and nothing that acts on them.
//
// +kubebuilder:object:generate=true
// +groupName=kaas.mirantis.com
package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// GroupVersion is the group and version of the kinds.
var GroupVersion = schema.GroupVersion{Group: "kaas.mirantis.com", Version: "v1alpha1"}

// AddToScheme adds the kinds to a scheme.
func AddToScheme(s *runtime.Scheme) error {
	s.AddKnownTypes(GroupVersion,
		&HostOSConfiguration{}, &HostOSConfigurationList{},
		&HostOSConfigurationModules{}, &HostOSConfigurationModulesList{},
		&KaaSRelease{}, &KaaSReleaseList{},
		&ClusterRelease{}, &ClusterReleaseList{},
		&PublicKey{}, &PublicKeyList{},
		&Proxy{}, &ProxyList{},
		&ClusterDeploymentStatus{}, &ClusterDeploymentStatusList{},
		&GracefulRebootRequest{}, &GracefulRebootRequestList{},
		&UpdateGroup{}, &UpdateGroupList{},
		&ClusterUpdatePlan{}, &ClusterUpdatePlanList{},
		&BareMetalHostCredential{}, &BareMetalHostCredentialList{},
		&BareMetalHostInventory{}, &BareMetalHostInventoryList{},
	)
	metav1.AddToGroupVersion(s, GroupVersion)
	return nil
}

// ModuleName is the name of a module. It is a part of paths and of the names of state
// items.
// +kubebuilder:validation:MinLength=1
// +kubebuilder:validation:MaxLength=63
// +kubebuilder:validation:Pattern=`^[A-Za-z0-9]([-_.A-Za-z0-9]*[A-Za-z0-9])?$`
type ModuleName string

// SemVer is a version as Semantic Versioning 2.0.0 defines it.
// +kubebuilder:validation:MaxLength=64
// +kubebuilder:validation:Pattern=`^(0|[1-9][0-9]*)\.(0|[1-9][0-9]*)\.(0|[1-9][0-9]*)(-(0|[1-9][0-9]*|[0-9]*[a-zA-Z-][0-9a-zA-Z-]*)(\.(0|[1-9][0-9]*|[0-9]*[a-zA-Z-][0-9a-zA-Z-]*))*)?(\+[0-9a-zA-Z-]+(\.[0-9a-zA-Z-]+)*)?$`
type SemVer string

// ModuleReference names a version of a module.
type ModuleReference struct {
	Name    ModuleName `json:"name"`
	Version SemVer     `json:"version"`
}
