package v1alpha1

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// The JSON names of spec, finalizer and status below are in no public Go type; user name
// and password.value or password.name are those of the product's documentation.

// BareMetalHostCredentialSpec is an account of a BMC.
type BareMetalHostCredentialSpec struct {
	// Username is the name of the BMC's account.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=256
	Username string             `json:"username"`
	Password CredentialPassword `json:"password"`
}

// CredentialPassword is a password, or the Secret that it was moved to.
// +kubebuilder:validation:XValidation:rule="has(self.value) || has(self.name)",message="give value, the password, or name, the Secret that the provider has moved it to"
type CredentialPassword struct {
	// Value is the password. The provider moves it to a Secret, and removes it here.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=1024
	Value string `json:"value,omitempty"`
	// Name is the name of the Secret. The provider writes it.
	// +optional
	// +kubebuilder:validation:MaxLength=253
	Name string `json:"name,omitempty"`
}

// BareMetalHostCredentialStatus says whether the account can be used.
type BareMetalHostCredentialStatus struct {
	// Ready is true when the Secret has user name and password.
	// +optional
	Ready bool `json:"ready,omitempty"`
	// +optional
	ErrorMessage string `json:"errorMessage,omitempty"`
	// +optional
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`
}

// BareMetalHostCredential is an account of BMCs. Hosts use it by way of the
// BareMetalHostInventories that name it.
//
// +kubebuilder:object:root=true
// +kubebuilder:validation:XValidation:rule="self.metadata.name.size() <= 240",message="metadata.name has more than 240 characters: a Secret is named after it"
// +kubebuilder:resource:path=baremetalhostcredentials,scope=Namespaced,shortName=bmhc
// +kubebuilder:subresource:status
// +kubebuilder:printcolumn:name="Username",type=string,JSONPath=`.spec.username`
// +kubebuilder:printcolumn:name="Ready",type=boolean,JSONPath=`.status.ready`
// +kubebuilder:printcolumn:name="Error",type=string,JSONPath=`.status.errorMessage`
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
type BareMetalHostCredential struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	Spec BareMetalHostCredentialSpec `json:"spec"`
	// +optional
	Status BareMetalHostCredentialStatus `json:"status,omitzero"`
}

// BareMetalHostCredentialList is a list of BareMetalHostCredentials.
//
// +kubebuilder:object:root=true
type BareMetalHostCredentialList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []BareMetalHostCredential `json:"items"`
}
