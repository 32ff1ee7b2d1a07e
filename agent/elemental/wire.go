package elemental

import (
	"encoding/json"
	"time"
)

// Phase is the phase of an ElementalHost.
type Phase string

// The phases.
const (
	PhaseRegistering    Phase = "Registering"
	PhaseFinalizing     Phase = "Finalizing Registration"
	PhaseInstalling     Phase = "Installing"
	PhaseBootstrapping  Phase = "Bootstrapping"
	PhaseRunning        Phase = "Running"
	PhaseTriggering     Phase = "Triggering Reset"
	PhaseResetting      Phase = "Resetting"
	PhaseReconcilingOSV Phase = "Reconciling OS Version"
)

// Condition is a condition of an ElementalHost, as Cluster API's v1beta1 has it.
type Condition struct {
	Type               string     `json:"type"`
	Status             string     `json:"status"`
	Severity           string     `json:"severity,omitempty"`
	LastTransitionTime *time.Time `json:"lastTransitionTime"` // the server sets it
	Reason             string     `json:"reason,omitempty"`
	Message            string     `json:"message,omitempty"`
}

// Types of conditions.
const (
	registrationReady = "RegistrationReady"
	installationReady = "InstallationReady"
	bootstrapReady    = "BootstrapReady"
	resetReady        = "ResetReady"
	osVersionReady    = "OSVersionReady"
)

// Severities and statuses of conditions.
const (
	severityError = "Error"
	severityInfo  = "Info"
	statusTrue    = "True"
	statusFalse   = "False"
)

// Reasons of conditions.
const (
	registrationFailed            = "RegistrationFailed"
	waitingForInstallation        = "WaitingForInstallation"
	cloudConfigInstallationFailed = "CloudConfigInstallationFailed"
	installationFailed            = "InstallationFailed"
	waitingForBootstrap           = "WaitingForBootstrap"
	bootstrapFailed               = "BootstrapFailed"
	waitingForReset               = "WaitingForReset"
	resetFailed                   = "ResetFailed"
	osVersionFailed               = "OSVersionReconciliationFailed"
	waitingForReboot              = "WaitingForPostReconcileReboot"
)

// met returns a condition that is true.
func met(kind string) *Condition {
	return &Condition{Type: kind, Status: statusTrue, Severity: severityInfo}
}

// waits returns a condition that is false for now.
func waits(kind, reason, message string) *Condition {
	return &Condition{Type: kind, Status: statusFalse, Severity: severityInfo, Reason: reason, Message: message}
}

// failed returns a condition that is false because of an error.
func failed(kind, reason string, err error) *Condition {
	return &Condition{Type: kind, Status: statusFalse, Severity: severityError, Reason: reason, Message: err.Error()}
}

// In-place update, as the label of the host says it.
const (
	updatePending = "pending"
	updateDone    = "done"
)

// createRequest creates an ElementalHost. The empty fields without a JSON name are those that
// the provider's agent sends: servers ignore them.
type createRequest struct {
	Auth             string
	RegAuth          string
	Namespace        string
	RegistrationName string

	Name        string            `json:"name,omitempty"`
	Annotations map[string]string `json:"annotations,omitempty"`
	Labels      map[string]string `json:"labels,omitempty"`
	PubKey      string            `json:"pubKey,omitempty"`
}

// patchRequest changes an ElementalHost. Its empty fields are as those of createRequest.
type patchRequest struct {
	Auth             string
	Namespace        string
	RegistrationName string
	HostName         string

	Annotations   map[string]string `json:"annotations,omitempty"`
	Labels        map[string]string `json:"labels,omitempty"`
	Bootstrapped  *bool             `json:"bootstrapped,omitempty"`
	Installed     *bool             `json:"installed,omitempty"`
	Reset         *bool             `json:"reset,omitempty"`
	InPlaceUpdate *string           `json:"inPlaceUpdate,omitempty"`
	Condition     *Condition        `json:"condition,omitempty"`
	Phase         *Phase            `json:"phase,omitempty"`
}

// host is an ElementalHost as the API answers it.
type host struct {
	Name                string          `json:"name"`
	BootstrapReady      bool            `json:"bootstrapReady"`
	Bootstrapped        bool            `json:"bootstrapped"`
	Installed           bool            `json:"installed"`
	NeedsReset          bool            `json:"needsReset"`
	InPlaceUpdate       string          `json:"inPlaceUpgrade"` // the answer's name differs from the request's
	OSVersionManagement json.RawMessage `json:"osVersionManagement"`
}

// registration is an ElementalRegistration as the API answers it.
type registration struct {
	HostLabels      map[string]string `json:"hostLabels"`
	HostAnnotations map[string]string `json:"hostAnnotations"`
	Config          struct {
		CloudConfig json.RawMessage `json:"cloudConfig"`
		Elemental   struct {
			File
			Install json.RawMessage `json:"install"`
			Reset   json.RawMessage `json:"reset"`
		} `json:"elemental"`
	} `json:"config"`
}

// bootstrap is the bootstrap configuration of a host.
type bootstrap struct {
	Format string `json:"format"`
	Config string `json:"config"`
}

// orNull returns a JSON document, or null if there is none.
func orNull(b json.RawMessage) []byte {
	if len(b) == 0 {
		return []byte("null")
	}
	return b
}
