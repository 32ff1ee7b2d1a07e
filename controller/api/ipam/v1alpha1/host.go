package v1alpha1

import (
	"cmp"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
)

// L2TemplateSpec is the configuration of the interfaces of a cluster's servers.
type L2TemplateSpec struct {
	// ClusterRef is the name of the Cluster. The label cluster.sigs.k8s.io/cluster-name has
	// replaced it, and takes precedence.
	// +optional
	// +kubebuilder:validation:MaxLength=253
	ClusterRef string `json:"clusterRef,omitempty"`
	// NPTemplate is a template, in Go's language, of a netplan configuration of version 2.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=65536
	NPTemplate string `json:"npTemplate"`
	// L3Layout are the Subnets that the template uses.
	// +optional
	// +kubebuilder:validation:MaxItems=64
	L3Layout []L3Layout `json:"l3Layout,omitempty"`
	// IfMapping are the names of the interfaces that the template numbers.
	// +optional
	// +kubebuilder:validation:MaxItems=64
	IfMapping []string `json:"ifMapping,omitempty"`
	// AutoIfMappingPrio are beginnings of names, by which interfaces are ordered where
	// ifMapping is empty.
	// +optional
	// +kubebuilder:validation:MaxItems=64
	AutoIfMappingPrio []string `json:"autoIfMappingPrio,omitempty"`
}

// L3Layout names a Subnet of the namespace.
type L3Layout struct {
	// SubnetName is the name of the Subnet in the template. It is also the Subnet's object
	// name, unless labelSelector selects the Subnet.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	SubnetName string `json:"subnetName"`
	// Scope is namespace, of the L2Template, or global: the namespace default.
	// +optional
	// +kubebuilder:validation:Enum=namespace;global
	// +kubebuilder:default=namespace
	Scope string `json:"scope,omitempty"`
	// SubnetPool names a SubnetPool from which a Subnet would be made.
	// +optional
	// +kubebuilder:validation:MaxLength=253
	SubnetPool string `json:"subnetPool,omitempty"`
	// LabelSelector selects one Subnet by its labels.
	// +optional
	LabelSelector map[string]string `json:"labelSelector,omitempty"`
}

// L2Template is the configuration of the interfaces of a cluster's servers.
//
// +kubebuilder:object:root=true
// +kubebuilder:resource:path=l2templates,scope=Namespaced
// +kubebuilder:subresource:status
// +kubebuilder:printcolumn:name="Cluster",type=string,JSONPath=`.metadata.labels.cluster\.sigs\.k8s\.io/cluster-name`
// +kubebuilder:printcolumn:name="Phase",type=string,JSONPath=`.status.phase`
// +kubebuilder:printcolumn:name="Reason",type=string,JSONPath=`.status.reason`
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
type L2Template struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	Spec L2TemplateSpec `json:"spec"`
	// +optional
	Status L2TemplateStatus `json:"status,omitzero"`
}

// The phases of an L2Template.
const (
	L2TemplateReady  = "Ready"
	L2TemplateFailed = "Failed"
)

// L2TemplateStatus says whether a template can be used.
type L2TemplateStatus struct {
	// Phase is Ready or Failed.
	// +optional
	Phase string `json:"phase,omitempty"`
	// Reason names the mistake in the template.
	// +optional
	Reason string `json:"reason,omitempty"`
	// SpecHash is the SHA-256 of the spec to which the phase belongs, in hexadecimal.
	// +optional
	SpecHash string `json:"specHash,omitempty"`
}

// ClusterNameLabel is the label of an L2Template with the name of its Cluster, as Machines have
// it.
const ClusterNameLabel = "cluster.sigs.k8s.io/cluster-name"

// ScopeGlobal is the scope of a Subnet of the namespace GlobalNamespace.
const (
	ScopeGlobal     = "global"
	GlobalNamespace = metav1.NamespaceDefault
)

// Cluster returns the name of the template's Cluster, "" when it has none.
func (t *L2Template) Cluster() string { return cmp.Or(t.Labels[ClusterNameLabel], t.Spec.ClusterRef) }

// L2TemplateList is a list of L2Templates.
//
// +kubebuilder:object:root=true
type L2TemplateList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []L2Template `json:"items"`
}

// IpamHostSpec is a server with its interfaces.
type IpamHostSpec struct {
	// +optional
	NICMACMap []NIC `json:"nicMACmap,omitempty"`
	// NPTemplateOverride replaces npTemplate of the L2Template.
	// +optional
	// +kubebuilder:validation:MaxLength=65536
	NPTemplateOverride string `json:"npTemplateOverride,omitempty"`
	// IfMappingOverride replaces ifMapping of the L2Template.
	// +optional
	IfMappingOverride []string `json:"ifMappingOverride,omitempty"`
}

// NIC is an interface of a server.
type NIC struct {
	Name string `json:"name"`
	MAC  string `json:"mac"`
	// Primary is true for the interface that the server boots from.
	// +optional
	Primary bool `json:"primary,omitempty"`
}

// IpamHostStatus is the network that a server gets.
type IpamHostStatus struct {
	// NetconfigV2 is the configuration for netplan.
	// +optional
	// +kubebuilder:pruning:PreserveUnknownFields
	NetconfigV2 *runtime.RawExtension `json:"netconfigV2,omitempty"`
	// +optional
	NetconfigV2State string `json:"netconfigV2state,omitempty"`
	// NetconfigFiles have the configuration as the file that netplan would read.
	// +optional
	NetconfigFiles []NetconfigFile `json:"netconfigFiles,omitempty"`
	// NetconfigFilesState is OK, or begins with ERR.
	// +optional
	NetconfigFilesState string `json:"netconfigFilesState,omitempty"`
	// ServiceMap are the addresses of each service: of the Subnets with the label
	// ipam/SVC-SERVICE.
	// +optional
	ServiceMap map[string][]ServiceAddress `json:"serviceMap,omitempty"`
	// IPAllocationResult is OK, or begins with ERR.
	// +optional
	IPAllocationResult string `json:"ipAllocationResult,omitempty"`
	// L2TemplateRef is NAMESPACE/NAME of the L2Template.
	// +optional
	L2TemplateRef string `json:"l2TemplateRef,omitempty"`
	// L2RenderResult is OK, or begins with ERR.
	// +optional
	L2RenderResult string `json:"l2RenderResult,omitempty"`
	// +optional
	Messages []string `json:"messages,omitempty"`
}

// NetplanFile is the file of the public types that has a server's whole network.
const NetplanFile = "/etc/netplan/60-kaas-lcm-netplan.yaml"

// NetconfigFile is a file of the network's configuration.
type NetconfigFile struct {
	Path string `json:"path"`
	// Content is in base64.
	Content string `json:"content"`
}

// ServiceLabelPrefix begins the labels of Subnets that name a service.
const ServiceLabelPrefix = "ipam/SVC-"

// ServiceAddress is an address of a server for a service.
type ServiceAddress struct {
	// +optional
	IfName string `json:"ifName,omitempty"`
	// +optional
	IPAddress string `json:"ipAddress,omitempty"`
}

// IpamHost is the network of a Machine's server. It has the Machine's name.
//
// +kubebuilder:object:root=true
// +kubebuilder:resource:path=ipamhosts,scope=Namespaced
// +kubebuilder:subresource:status
// +kubebuilder:printcolumn:name="L2Template",type=string,JSONPath=`.status.l2TemplateRef`
// +kubebuilder:printcolumn:name="Addresses",type=string,JSONPath=`.status.ipAllocationResult`
// +kubebuilder:printcolumn:name="Netconfig",type=string,JSONPath=`.status.netconfigV2state`
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
type IpamHost struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	Spec IpamHostSpec `json:"spec"`
	// +optional
	Status IpamHostStatus `json:"status,omitzero"`
}

// IpamHostList is a list of IpamHosts.
//
// +kubebuilder:object:root=true
type IpamHostList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []IpamHost `json:"items"`
}
