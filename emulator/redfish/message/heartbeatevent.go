package message

// The messages about the Redfish service.
var (
	RedfishServiceFunctional   = zero{heartbeatEvent, 0, "RedfishServiceFunctional", OK, "The Redfish service is alive.", "None."}
	RedfishServiceStarted      = zero{heartbeatEvent, 1, "RedfishServiceStarted", OK, "The Redfish service has started.", "None."}
	RedfishServiceShuttingDown = zero{heartbeatEvent, 1, "RedfishServiceShuttingDown", OK, "The Redfish service is about to stop.", "None."}
)

// HeartbeatEvent lists the messages of the HeartbeatEvent registry (DSP8011).
var HeartbeatEvent = []Entry{
	RedfishServiceFunctional, RedfishServiceStarted, RedfishServiceShuttingDown,
}
