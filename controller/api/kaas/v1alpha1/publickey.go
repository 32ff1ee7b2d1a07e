package v1alpha1

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// PublicKeySpec has a key.
type PublicKeySpec struct {
	// PublicKey is a line of authorized_keys (sshd(8)).
	// +kubebuilder:validation:MaxLength=16384
	// +kubebuilder:validation:Pattern=`^[^\r\n]*\S[^\r\n]*\n?$`
	PublicKey string `json:"publicKey"`
}

// PublicKey is an SSH key that every machine of a cluster accepts.
//
// +kubebuilder:object:root=true
// +kubebuilder:resource:path=publickeys,scope=Namespaced
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
type PublicKey struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	Spec PublicKeySpec `json:"spec"`
}

// PublicKeyList is a list of PublicKeys.
//
// +kubebuilder:object:root=true
type PublicKeyList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []PublicKey `json:"items"`
}
