package v1beta1

import (
	"fmt"

	capi "sigs.k8s.io/cluster-api/api/v1beta1"
)

// Conditions of an ElementalRegistration, and their reasons. They are this implementation's.
const (
	// NetworkBootReady is there while the annotation NetworkBootAnnotation is.
	NetworkBootReady         = capi.ConditionType("NetworkBootReady")
	NetworkBootRefusedReason = "NetworkBootRefused"
)

// NetworkBootMessage returns the message of NetworkBootReady when all NICs of the annotation may
// boot the seed.
func NetworkBootMessage(nics int) string { return fmt.Sprintf("NICs that may boot the seed: %d", nics) }

// Conditions of an ElementalHost, and their reasons. The severity of a reason is Error unless
// its comment names another.
const (
	RegistrationReady        = capi.ConditionType("RegistrationReady")
	RegistrationFailedReason = "RegistrationFailed"

	InstallationReady                   = capi.ConditionType("InstallationReady")
	WaitingForInstallationReason        = "WaitingForInstallation" // Info
	CloudConfigInstallationFailedReason = "CloudConfigInstallationFailed"
	InstallationFailedReason            = "InstallationFailed"

	BootstrapReady            = capi.ConditionType("BootstrapReady")
	WaitingForBootstrapReason = "WaitingForBootstrap" // Info
	BootstrapFailedReason     = "BootstrapFailed"

	ResetReady            = capi.ConditionType("ResetReady")
	WaitingForResetReason = "WaitingForReset" // Info
	ResetFailedReason     = "ResetFailed"

	OSVersionReady                      = capi.ConditionType("OSVersionReady")
	WaitingForOSReconcileReason         = "WaitingForOSReconcile"   // Info
	InPlaceUpdateNotPendingReason       = "InPlaceUpdateNotPending" // Warning
	OSVersionReconciliationFailedReason = "OSVersionReconciliationFailed"
	WaitingForPostReconcileRebootReason = "WaitingForPostReconcileReboot" // Info
)

// Conditions of an ElementalMachine, and their reasons.
const (
	AssociationReady                        = capi.ConditionType("AssociationReady")
	MissingMachineOwnerReason               = "MissingMachineOwner"
	MissingAssociatedClusterReason          = "MissingAssociatedCluster"
	MissingClusterInfrastructureReadyReason = "MissingClusterInfrastructureReady"
	MissingBootstrapSecretReason            = "MissingBootstrapSecret"
	MissingAvailableHostsReason             = "MissingAvailableHosts"  // Warning
	AssociatedHostNotFoundReason            = "AssociatedHostNotFound" // Warning

	HostReady                     = capi.ConditionType("HostReady")
	HostWaitingForInstallReason   = "HostWaitingForInstall"
	HostWaitingForBootstrapReason = "HostWaitingForBootstrap" // Info

	ProviderIDReady              = capi.ConditionType("ProviderIDReady")
	NodeNotFoundReason           = "NodeNotFound"
	WaitingForControlPlaneReason = "WaitingForControlPlaneInitialized" // Info
)

// Conditions of an ElementalCluster, and their reasons.
const (
	CAPIClusterReady          = capi.ConditionType("CAPIClusterReady")
	MissingClusterOwnerReason = "MissingClusterOwner"

	ControlPlaneEndpointReady         = capi.ConditionType("ControlPlaneEndpointReady")
	MissingControlPlaneEndpointReason = "MissingControlPlaneEndpoint"
)
