package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
)

// BareMetalHostInventorySpec describes a server and its BMC.
type BareMetalHostInventorySpec struct {
	// +optional
	// +kubebuilder:validation:Pattern=`^([0-9a-fA-F]{2}:){5}[0-9a-fA-F]{2}$`
	BootMACAddress string `json:"bootMACAddress,omitempty"`
	// +optional
	// +kubebuilder:default=UEFI
	BootMode InventoryBootMode `json:"bootMode,omitempty"`
	BMC      InventoryBMC      `json:"bmc"`
	// Online is the demanded power state of a host without a Machine.
	// +optional
	// +kubebuilder:default=true
	Online *bool `json:"online,omitempty"`
	// ConsumerRef reserves the server for an object that is no Machine.
	// +optional
	ConsumerRef *ConsumerReference `json:"consumerRef,omitempty"`
	// ExternalID identifies the server in an inventory elsewhere.
	// +optional
	// +kubebuilder:validation:MaxLength=256
	ExternalID string `json:"externalID,omitempty"`
	// +optional
	// +kubebuilder:validation:MaxLength=256
	HardwareProfile string `json:"hardwareProfile,omitempty"`
}

// InventoryBootMode is a server's boot mode.
// +kubebuilder:validation:Enum=UEFI;legacy
type InventoryBootMode string

// The boot modes.
const (
	InventoryUEFI   InventoryBootMode = "UEFI"
	InventoryLegacy InventoryBootMode = "legacy"
)

// InventoryBMC is a BMC and its account.
type InventoryBMC struct {
	// Address is that of a BareMetalHost.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=2048
	Address string `json:"address"`
	// CredentialsName is the name of the BareMetalHostCredential.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	CredentialsName string `json:"bmhCredentialsName"`
	// +optional
	DisableCertificateVerification bool `json:"disableCertificateVerification,omitempty"`
}

// ConsumerReference names the object that uses a server.
type ConsumerReference struct {
	APIVersion string `json:"apiVersion"`
	Kind       string `json:"kind"`
	// +optional
	Namespace string `json:"namespace,omitempty"`
	Name      string `json:"name"`
}

// BareMetalHostInventoryStatus copies the status of the BareMetalHost.
type BareMetalHostInventoryStatus struct {
	// +optional
	ProvisioningState string `json:"provisioningState,omitempty"`
	// +optional
	OperationalStatus string `json:"operationalStatus,omitempty"`
	// +optional
	PoweredOn bool `json:"poweredOn"`
	// HardwareDetails are those of the BareMetalHost.
	// +optional
	// +kubebuilder:pruning:PreserveUnknownFields
	HardwareDetails *runtime.RawExtension `json:"hardwareDetails,omitempty"`
	// +optional
	ErrorMessage string `json:"errorMessage,omitempty"`
	// ErrorType is the BareMetalHost's, or inventory error when the BareMetalHost does not
	// get what the inventory asks for.
	// +optional
	ErrorType string `json:"errorType,omitempty"`
	// ConsumerRef names the Machine that has claimed the server. The name is in no public
	// text.
	// +optional
	ConsumerRef *ConsumerReference `json:"consumerRef,omitempty"`
}

// InventoryError is the errorType of an inventory whose BareMetalHost cannot be written.
// The name is in no public text.
const InventoryError = "inventory error"

// BareMetalHostInventory is a server of the rack. The BareMetalHost of the same name
// follows it.
//
// +kubebuilder:object:root=true
// +kubebuilder:resource:path=baremetalhostinventories,scope=Namespaced,shortName=bmhi
// +kubebuilder:subresource:status
// +kubebuilder:printcolumn:name="State",type=string,JSONPath=`.status.provisioningState`
// +kubebuilder:printcolumn:name="Consumer",type=string,JSONPath=`.status.consumerRef.name`
// +kubebuilder:printcolumn:name="BootMode",type=string,priority=1,JSONPath=`.spec.bootMode`
// +kubebuilder:printcolumn:name="Online",type=boolean,JSONPath=`.status.poweredOn`
// +kubebuilder:printcolumn:name="Error",type=string,JSONPath=`.status.errorType`
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
type BareMetalHostInventory struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	Spec BareMetalHostInventorySpec `json:"spec"`
	// +optional
	Status BareMetalHostInventoryStatus `json:"status,omitzero"`
}

// BareMetalHostInventoryList is a list of BareMetalHostInventories.
//
// +kubebuilder:object:root=true
type BareMetalHostInventoryList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []BareMetalHostInventory `json:"items"`
}
