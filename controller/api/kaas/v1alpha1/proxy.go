package v1alpha1

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// The JSON names below are those of the product's documentation; the Go type is not public.

// ProxySpec are the proxies of a cluster's downloads. Their URLs may have a user name and a
// password.
type ProxySpec struct {
	// HTTPProxy is the URL of the proxy for http URLs.
	// +optional
	HTTPProxy ProxyURL `json:"httpProxy,omitempty"`
	// HTTPSProxy is the URL of the proxy for https URLs.
	// +optional
	HTTPSProxy ProxyURL `json:"httpsProxy,omitempty"`
	// NoProxy are hosts, domains, addresses and networks that are reached directly,
	// separated by commas.
	// +optional
	// +kubebuilder:validation:MaxLength=4096
	// +kubebuilder:validation:XValidation:rule="self.matches('^[-A-Za-z0-9.,:/*_\\\\[\\\\]]*$')",message="give hosts, domains, addresses and networks, separated by commas"
	NoProxy string `json:"noProxy,omitempty"`
	// CACertificate are PEM certificates of a proxy that reads TLS.
	// +optional
	// +kubebuilder:validation:MaxLength=65536
	CACertificate string `json:"caCertificate,omitempty"`
}

// ProxyURL is the URL of a proxy. Its rule refuses what a file of environment variables would
// have to quote, and shows no value.
// +kubebuilder:validation:MaxLength=2048
// +kubebuilder:validation:XValidation:rule="size(self) == 0 || (isURL(self) && url(self).getScheme() in ['http', 'https'] && self.matches('^[-A-Za-z0-9._~:/?@!&()*+,;=%\\\\[\\\\]]+$'))",message="give a URL of http or https; encode spaces, quotes, #, $ and backslashes with %"
type ProxyURL string

// Proxy has the proxies of the Clusters that name it.
//
// +kubebuilder:object:root=true
// +kubebuilder:validation:XValidation:rule="has(self.spec.httpProxy) || has(self.spec.httpsProxy)",message="spec: give httpProxy, httpsProxy, or both"
// +kubebuilder:resource:path=proxies,scope=Namespaced
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
type Proxy struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	Spec ProxySpec `json:"spec"`
}

// ProxyList is a list of Proxies.
//
// +kubebuilder:object:root=true
type ProxyList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []Proxy `json:"items"`
}
