package v1beta1

import (
	"strings"
	"unicode"

	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	capi "sigs.k8s.io/cluster-api/api/v1beta1"
)

// NetworkBootAnnotation lists, by commas, the MAC addresses of the NICs by which servers may boot
// the seed of an ElementalRegistration over the network. It is this implementation's.
const NetworkBootAnnotation = "metalab.dev/network-boot"

// NetworkBootMACs returns the MAC addresses of NetworkBootAnnotation as they are written there.
// Spaces and line breaks separate them, too.
func (r *ElementalRegistration) NetworkBootMACs() []string {
	return strings.FieldsFunc(r.Annotations[NetworkBootAnnotation], func(c rune) bool { return c == ',' || unicode.IsSpace(c) })
}

// ElementalRegistrationSpec describes how servers register, and the configuration that they install.
type ElementalRegistrationSpec struct {
	// HostLabels are labels of each ElementalHost that registers.
	// +optional
	HostLabels map[string]string `json:"hostLabels,omitempty"`
	// HostAnnotations are annotations of each ElementalHost that registers.
	// +optional
	HostAnnotations map[string]string `json:"hostAnnotations,omitempty"`
	// Config is the configuration of the agents.
	// +optional
	Config Config `json:"config,omitempty"`
	// PrivateKeyRef marks that the key that signs registration tokens exists. The key is that of
	// the Secret with the registration's name. Without the reference a key is made.
	// +optional
	PrivateKeyRef *corev1.ObjectReference `json:"privateKeyRef,omitempty"`
}

// Config is the configuration of the servers of a registration.
type Config struct {
	// +optional
	Elemental Elemental `json:"elemental,omitempty"`
	// CloudConfig is the cloud-config that the server is installed with.
	// +optional
	// +kubebuilder:validation:Schemaless
	// +kubebuilder:validation:XPreserveUnknownFields
	CloudConfig map[string]runtime.RawExtension `json:"cloudConfig,omitempty"`
}

// Elemental is the configuration of the agent and of its plugin.
type Elemental struct {
	// Install is handed to the agent's plugin, which installs the server.
	// +optional
	// +kubebuilder:validation:Schemaless
	// +kubebuilder:validation:XPreserveUnknownFields
	Install map[string]runtime.RawExtension `json:"install,omitempty"`
	// Reset is handed to the agent's plugin, which resets the server.
	// +optional
	// +kubebuilder:validation:Schemaless
	// +kubebuilder:validation:XPreserveUnknownFields
	Reset map[string]runtime.RawExtension `json:"reset,omitempty"`
	// +optional
	Registration Registration `json:"registration,omitempty"`
	// +optional
	// +kubebuilder:default:={"debug":false,"reconciliation":10000000000,"hostname":{"useExisting":false},"osPlugin":"/usr/lib/elemental/plugins/elemental.so"}
	Agent Agent `json:"agent,omitempty"`
}

// Registration tells agents where they register, and by which token.
type Registration struct {
	// URI is the address of the registration in the Elemental API. The controller fills it in
	// when it is empty.
	// +optional
	URI string `json:"uri,omitempty"`
	// CACert has the PEM certificates that agents trust for the API.
	// +optional
	CACert string `json:"caCert,omitempty"`
	// TokenDuration is the lifetime of a token that the controller makes, in nanoseconds. 0 means
	// without end; a negative duration makes a token that has expired, so that no server registers.
	// +optional
	TokenDuration time.Duration `json:"tokenDuration,omitempty"`
	// Token registers servers. The controller makes one when it is empty.
	// +optional
	Token string `json:"token,omitempty"`
}

// Agent is the configuration of the agent.
type Agent struct {
	// WorkDir is the agent's directory on the server.
	// +optional
	// +kubebuilder:default:="/var/lib/elemental/agent"
	WorkDir string `json:"workDir,omitempty"`
	// +optional
	// +kubebuilder:default:={"useExisting":false}
	Hostname Hostname `json:"hostname,omitempty"`
	// NoSMBIOS leaves out labels from SMBIOS.
	// +optional
	NoSMBIOS bool `json:"noSmbios,omitempty"`
	// Debug logs more.
	// +optional
	Debug bool `json:"debug,omitempty"`
	// OSPlugin is the file of the agent's plugin.
	// +optional
	// +kubebuilder:default:="/usr/lib/elemental/plugins/elemental.so"
	OSPlugin string `json:"osPlugin,omitempty"`
	// Reconciliation is the time between two passes of the agent, and between a failure and the
	// next attempt, in nanoseconds.
	// +optional
	// +kubebuilder:default:=10000000000
	Reconciliation time.Duration `json:"reconciliation,omitempty"`
	// InsecureAllowHTTP allows a URI without TLS.
	// +optional
	InsecureAllowHTTP bool `json:"insecureAllowHttp,omitempty"`
	// InsecureSkipTLSVerify accepts any certificate of the API.
	// +optional
	InsecureSkipTLSVerify bool `json:"insecureSkipTlsVerify,omitempty"`
	// UseSystemCertPool trusts the certificates of the server's system, too.
	// +optional
	UseSystemCertPool bool `json:"useSystemCertPool,omitempty"`
	// PostInstall is what follows the installation.
	// +optional
	PostInstall PostAction `json:"postInstall,omitempty"`
	// PostReset is what follows the reset.
	// +optional
	PostReset PostAction `json:"postReset,omitempty"`
}

// Hostname chooses the name of a host.
type Hostname struct {
	// UseExisting takes the name that the server has; otherwise a random one is made.
	// +optional
	// +kubebuilder:default:=false
	UseExisting bool `json:"useExisting,omitempty"`
	// Prefix is the beginning of the name.
	// +optional
	Prefix string `json:"prefix,omitempty"`
}

// PostAction switches the server off or reboots it. PowerOff wins.
type PostAction struct {
	// +optional
	PowerOff bool `json:"powerOff,omitempty"`
	// +optional
	Reboot bool `json:"reboot,omitempty"`
}

// ElementalRegistrationStatus is the state of a registration.
type ElementalRegistrationStatus struct {
	// +optional
	Conditions capi.Conditions `json:"conditions,omitempty"`
}

// ElementalRegistration is an address and a token by which servers register as ElementalHosts.
//
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:storageversion
// +kubebuilder:resource:path=elementalregistrations,scope=Namespaced,categories=cluster-api
// +kubebuilder:metadata:labels="cluster.x-k8s.io/v1beta1=v1beta1"
type ElementalRegistration struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	Spec   ElementalRegistrationSpec   `json:"spec,omitempty"`
	Status ElementalRegistrationStatus `json:"status,omitempty"`
}

// ElementalRegistrationList is a list of ElementalRegistrations.
//
// +kubebuilder:object:root=true
type ElementalRegistrationList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []ElementalRegistration `json:"items"`
}

// GetConditions returns the conditions.
func (r *ElementalRegistration) GetConditions() capi.Conditions { return r.Status.Conditions }

// SetConditions replaces the conditions.
func (r *ElementalRegistration) SetConditions(c capi.Conditions) { r.Status.Conditions = c }
