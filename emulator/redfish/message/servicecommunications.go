package message

// The messages about services that this one connects to.
var (
	NameResolutionFailure = one{serviceCommunications, 0, "NameResolutionFailure", Critical, "The name %1 cannot be resolved.", "Check the name and the name servers."}
	ConnectionRefused     = two{serviceCommunications, 0, "ConnectionRefused", Critical, "%1 refused a connection to its port %2.", "Check that the service there runs, and its port."}
	ConnectionTimeout     = two{serviceCommunications, 0, "ConnectionTimeout", Critical, "%1 did not answer at its port %2.", "Check that the service there runs, and its port."}
	HTTPFailure           = two{serviceCommunications, 0, "HTTPFailure", Critical, "The status code %1 came from %2.", "Look for the cause at the other service."}
)

// ServiceCommunications lists the messages of the ServiceCommunications registry (DSP8011).
var ServiceCommunications = []Entry{
	NameResolutionFailure, ConnectionRefused, ConnectionTimeout, HTTPFailure,
}
