package registration

import (
	"k8s.io/apimachinery/pkg/runtime"
	capi "sigs.k8s.io/cluster-api/api/v1beta1"

	elementalv1 "github.com/metalab-dev/metalab/controller/api/elemental/v1beta1"
)

// The bodies of requests and responses. Requests may have more fields: upstream's agent sends
// its parameters of paths and headers, empty.

// createRequest makes a host.
type createRequest struct {
	Name        string            `json:"name"`
	Annotations map[string]string `json:"annotations"`
	Labels      map[string]string `json:"labels"`
	PubKey      string            `json:"pubKey"`
}

// patchRequest reports about a host. A nil field changes nothing.
type patchRequest struct {
	Annotations   map[string]string      `json:"annotations"`
	Labels        map[string]string      `json:"labels"`
	Bootstrapped  *bool                  `json:"bootstrapped"`
	Installed     *bool                  `json:"installed"`
	Reset         *bool                  `json:"reset"`
	InPlaceUpdate *string                `json:"inPlaceUpdate"`
	Condition     *capi.Condition        `json:"condition"`
	Phase         *elementalv1.HostPhase `json:"phase"`
}

// hostResponse describes a host to its agent. The field inPlaceUpgrade has the value
// that a request has in inPlaceUpdate.
type hostResponse struct {
	Name                string                          `json:"name,omitempty"`
	Annotations         map[string]string               `json:"annotations,omitempty"`
	Labels              map[string]string               `json:"labels,omitempty"`
	BootstrapReady      bool                            `json:"bootstrapReady,omitempty"`
	Bootstrapped        bool                            `json:"bootstrapped,omitempty"`
	Installed           bool                            `json:"installed,omitempty"`
	NeedsReset          bool                            `json:"needsReset,omitempty"`
	InPlaceUpgrade      string                          `json:"inPlaceUpgrade,omitempty"`
	OSVersionManagement map[string]runtime.RawExtension `json:"osVersionManagement,omitempty"`
}

func responseOf(h *elementalv1.ElementalHost) hostResponse {
	return hostResponse{
		Name: h.Name, Annotations: h.Annotations, Labels: h.Labels,
		BootstrapReady:      h.Spec.BootstrapSecret != nil,
		Bootstrapped:        h.Labels[elementalv1.BootstrappedLabel] == elementalv1.True,
		Installed:           h.Labels[elementalv1.InstalledLabel] == elementalv1.True,
		NeedsReset:          h.Labels[elementalv1.NeedsResetLabel] == elementalv1.True,
		InPlaceUpgrade:      h.Labels[elementalv1.InPlaceUpdateLabel],
		OSVersionManagement: h.Spec.OSVersionManagement,
	}
}

// registrationResponse is how a server is to be installed.
type registrationResponse struct {
	HostLabels      map[string]string  `json:"hostLabels,omitempty"`
	HostAnnotations map[string]string  `json:"hostAnnotations,omitempty"`
	Config          elementalv1.Config `json:"config"`
}

// bootstrapResponse is the bootstrap data of a server.
type bootstrapResponse struct {
	Format string `json:"format"`
	Config string `json:"config"`
}
