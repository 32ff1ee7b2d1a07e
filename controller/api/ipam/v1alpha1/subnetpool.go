package v1alpha1

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// SubnetPoolSpec is a network that is divided into Subnets of one size.
type SubnetPoolSpec struct {
	// +kubebuilder:validation:MaxLength=64
	// +kubebuilder:validation:XValidation:rule="isCIDR(self)",message="give a network as ADDRESS/LENGTH"
	CIDR string `json:"cidr"`
	// BlockSize is the length of a Subnet's network, such as /24.
	// +kubebuilder:validation:Pattern=`^/[0-9]{1,3}$`
	BlockSize string `json:"blockSize"`
	// GatewayPolicy is first, last or none.
	// +optional
	// +kubebuilder:validation:MaxLength=16
	GatewayPolicy string `json:"gatewayPolicy,omitempty"`
	// +optional
	// +kubebuilder:validation:MaxItems=16
	Nameservers []Address `json:"nameservers,omitempty"`
}

// SubnetPoolStatus is how many Subnets a pool has made.
type SubnetPoolStatus struct {
	// StatusMessage is OK, or why no Subnet is made.
	// +optional
	StatusMessage string `json:"statusMessage,omitempty"`
	// +optional
	AllocatedSubnets []string `json:"allocatedSubnets,omitempty"`
	// +optional
	BlockSize string `json:"blockSize,omitempty"`
	// +optional
	Capacity int64 `json:"capacity,omitempty"`
	// +optional
	Allocatable int64 `json:"allocatable,omitempty"`
}

// SubnetPool is a network that is divided into Subnets. Nothing makes Subnets of one: its status
// says so.
//
// +kubebuilder:object:root=true
// +kubebuilder:resource:path=subnetpools,scope=Namespaced
// +kubebuilder:subresource:status
// +kubebuilder:printcolumn:name="CIDR",type=string,JSONPath=`.spec.cidr`
// +kubebuilder:printcolumn:name="Message",type=string,JSONPath=`.status.statusMessage`
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
type SubnetPool struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	Spec SubnetPoolSpec `json:"spec"`
	// +optional
	Status SubnetPoolStatus `json:"status,omitzero"`
}

// SubnetPoolList is a list of SubnetPools.
//
// +kubebuilder:object:root=true
type SubnetPoolList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []SubnetPool `json:"items"`
}
