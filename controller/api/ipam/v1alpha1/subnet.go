package v1alpha1

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// SubnetSpec is a network, and the range of its addresses that servers get.
type SubnetSpec struct {
	// +kubebuilder:validation:MaxLength=64
	// +kubebuilder:validation:XValidation:rule="isCIDR(self)",message="give a network as ADDRESS/LENGTH"
	CIDR string `json:"cidr"`
	// IncludeRanges are the addresses that are allocated, each one address or FIRST-LAST;
	// none means all of the network.
	// +optional
	// +kubebuilder:validation:MaxItems=64
	IncludeRanges []AddressRange `json:"includeRanges,omitempty"`
	// ExcludeRanges are addresses that are not allocated.
	// +optional
	// +kubebuilder:validation:MaxItems=64
	ExcludeRanges []AddressRange `json:"excludeRanges,omitempty"`
	// UseCompleteCIDR also allocates the first and last address of an IPv4 network.
	// +optional
	UseCompleteCIDR bool `json:"useWholeCidr,omitempty"`
	// Gateway is never allocated.
	// +optional
	// +kubebuilder:validation:XValidation:rule="isIP(self)",message="give an address"
	// +kubebuilder:validation:MaxLength=45
	Gateway string `json:"gateway,omitempty"`
	// +optional
	// +kubebuilder:validation:MaxItems=16
	Nameservers []Address `json:"nameservers,omitempty"`
	// SubnetPoolRef names a SubnetPool that the network would be part of.
	// +optional
	// +kubebuilder:validation:MaxLength=253
	SubnetPoolRef string `json:"subnetPoolRef,omitempty"`
}

// Address is an IP address.
// +kubebuilder:validation:MaxLength=45
// +kubebuilder:validation:XValidation:rule="isIP(self)",message="give an address"
type Address string

// AddressRange is one address, or FIRST-LAST.
// +kubebuilder:validation:MaxLength=91
// +kubebuilder:validation:XValidation:rule="self.split('-').size() <= 2 && self.split('-').all(a, isIP(a))",message="give an address or FIRST-LAST"
type AddressRange string

// SubnetStatus counts and lists the allocated addresses.
type SubnetStatus struct {
	// +optional
	Ranges []string `json:"ranges,omitempty"`
	// AllocatedIPs are ADDRESS:HOST.
	// +optional
	AllocatedIPs []string `json:"allocatedIPs,omitempty"`
	// Capacity is how many addresses can be allocated together.
	// +optional
	Capacity int64 `json:"capacity"`
	// Allocatable is how many of them are free.
	// +optional
	Allocatable int64 `json:"allocatable"`
	// StatusMessage is OK, or why no address is allocated.
	// +optional
	StatusMessage string `json:"statusMessage,omitempty"`
}

// Subnet is a network whose addresses servers get.
//
// +kubebuilder:object:root=true
// +kubebuilder:resource:path=subnets,scope=Namespaced
// +kubebuilder:subresource:status
// +kubebuilder:printcolumn:name="CIDR",type=string,JSONPath=`.spec.cidr`
// +kubebuilder:printcolumn:name="Gateway",type=string,JSONPath=`.spec.gateway`
// +kubebuilder:printcolumn:name="Capacity",type=integer,JSONPath=`.status.capacity`
// +kubebuilder:printcolumn:name="Allocatable",type=integer,JSONPath=`.status.allocatable`
// +kubebuilder:printcolumn:name="Status",type=string,JSONPath=`.status.statusMessage`
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
type Subnet struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	Spec SubnetSpec `json:"spec"`
	// +optional
	Status SubnetStatus `json:"status,omitzero"`
}

// SubnetList is a list of Subnets.
//
// +kubebuilder:object:root=true
type SubnetList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []Subnet `json:"items"`
}

// IPaddrSpec is an address of a server.
// +kubebuilder:validation:XValidation:rule="self == oldSelf",message="an address never changes: delete it"
type IPaddrSpec struct {
	SubnetRef string `json:"subnetRef"`
	// WantedAddress is the address that is allocated.
	WantedAddress string `json:"wantedAddress"`
	// Interface is the interface of the L2Template that has the address. The name is in no
	// public text.
	// +optional
	Interface string `json:"interface,omitempty"`
}

// IPaddr is an address that a server has. Its name follows from the address: the API
// refuses a second one of the namespace.
//
// +kubebuilder:object:root=true
// +kubebuilder:resource:path=ipaddrs,scope=Namespaced
// +kubebuilder:subresource:status
// +kubebuilder:printcolumn:name="Address",type=string,JSONPath=`.spec.wantedAddress`
// +kubebuilder:printcolumn:name="Subnet",type=string,JSONPath=`.spec.subnetRef`
// +kubebuilder:printcolumn:name="Host",type=string,JSONPath=`.metadata.ownerReferences[0].name`
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
type IPaddr struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	Spec IPaddrSpec `json:"spec"`
	// +optional
	Status IPaddrStatus `json:"status,omitzero"`
}

// IPaddrPhase is the phase of an IPaddr.
type IPaddrPhase string

// The phases.
const (
	IPaddrActive IPaddrPhase = "Active"
	IPaddrFailed IPaddrPhase = "Failed"
)

// IPaddrStatus is an address with the network that it is in.
type IPaddrStatus struct {
	// Phase is Active while the Subnet has the address, else Failed.
	// +optional
	Phase IPaddrPhase `json:"phase,omitempty"`
	// Reason is why the address is of no use.
	// +optional
	Reason string `json:"reason,omitempty"`
	// +optional
	Address string `json:"address,omitempty"`
	// +optional
	CIDR string `json:"cidr,omitempty"`
	// +optional
	Gateway string `json:"gateway,omitempty"`
	// +optional
	Nameservers []string `json:"nameservers,omitempty"`
}

// IPaddrList is a list of IPaddrs.
//
// +kubebuilder:object:root=true
type IPaddrList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []IPaddr `json:"items"`
}
