package message

// The messages about any resource: the one in OriginOfCondition.
var (
	ResourceCreated                  = zero{resourceEvent, 0, "ResourceCreated", OK, "The resource was created.", "None."}
	ResourceRemoved                  = zero{resourceEvent, 0, "ResourceRemoved", OK, "The resource was removed.", "None."}
	ResourceErrorsDetected           = two{resourceEvent, 0, "ResourceErrorsDetected", Warning, "Errors of the kind %2 were found in the property %1.", "Act on the kind of error."}
	ResourceErrorsCorrected          = two{resourceEvent, 0, "ResourceErrorsCorrected", OK, "Errors of the kind %2 in the property %1 are mended.", "None."}
	ResourceErrorThresholdExceeded   = two{resourceEvent, 0, "ResourceErrorThresholdExceeded", Critical, "The property %1 has passed its error threshold of %2.", "Look at what the resource shows."}
	ResourceErrorThresholdCleared    = two{resourceEvent, 0, "ResourceErrorThresholdCleared", OK, "The property %1 is back within its error threshold of %2.", "None."}
	ResourceWarningThresholdExceeded = two{resourceEvent, 0, "ResourceWarningThresholdExceeded", Warning, "The property %1 has passed its warning threshold of %2.", "Look at what the resource shows."}
	ResourceWarningThresholdCleared  = two{resourceEvent, 0, "ResourceWarningThresholdCleared", OK, "The property %1 is back within its warning threshold of %2.", "None."}
	ResourceStatusChangedOK          = two{resourceEvent, 0, "ResourceStatusChangedOK", OK, "The health of %1 is %2 again.", "None."}
	ResourceStatusChangedWarning     = two{resourceEvent, 0, "ResourceStatusChangedWarning", Warning, "The health of %1 is now %2.", "Look at what the resource shows."}
	ResourceStatusChangedCritical    = two{resourceEvent, 0, "ResourceStatusChangedCritical", Critical, "The health of %1 is now %2.", "Look at what the resource shows."}
	ResourceStateChanged             = two{resourceEvent, 1, "ResourceStateChanged", OK, "The state of %1 is now %2.", "None."}
	ResourcePoweredOn                = one{resourceEvent, 1, "ResourcePoweredOn", OK, "%1 is switched on.", "None."}
	ResourcePoweringOn               = one{resourceEvent, 1, "ResourcePoweringOn", OK, "%1 is being switched on.", "None."}
	ResourcePoweredOff               = one{resourceEvent, 1, "ResourcePoweredOff", OK, "%1 is switched off.", "None."}
	ResourcePoweringOff              = one{resourceEvent, 1, "ResourcePoweringOff", OK, "%1 is being switched off.", "None."}
	ResourcePaused                   = one{resourceEvent, 1, "ResourcePaused", OK, "%1 was halted.", "None."}
	URIForResourceChanged            = zero{resourceEvent, 0, "URIForResourceChanged", OK, "The resource has another address now.", "Read the address anew from the resource that links to it."}
	ResourceChanged                  = zero{resourceEvent, 0, "ResourceChanged", OK, "Properties of the resource have changed.", "None."}
	PropertyValueModifiedByClient    = two{resourceEvent, 4, "PropertyValueModifiedByClient", OK, "A client gave the property %1 the value %2.", "None."}
	ResourceVersionIncompatible      = one{resourceEvent, 0, "ResourceVersionIncompatible", Warning, "The version of the software %1 does not fit.", "Install a version that does."}
	ResourceSelfTestFailed           = one{resourceEvent, 0, "ResourceSelfTestFailed", Critical, "The self-test failed and says: %1", "Act on what the test says."}
	ResourceSelfTestCompleted        = zero{resourceEvent, 0, "ResourceSelfTestCompleted", OK, "The self-test is done.", "None."}
	TestMessage                      = zero{resourceEvent, 3, "TestMessage", OK, "This is a test.", "None."}
	AggregationSourceDiscovered      = two{resourceEvent, 2, "AggregationSourceDiscovered", OK, "A source of resources was found at %2, to be reached by %1.", "Add the source if its resources are wanted."}
)

// ResourceEvent lists the messages of the ResourceEvent registry (DSP8011).
var ResourceEvent = []Entry{
	ResourceCreated, ResourceRemoved, ResourceErrorsDetected, ResourceErrorsCorrected,
	ResourceErrorThresholdExceeded, ResourceErrorThresholdCleared, ResourceWarningThresholdExceeded, ResourceWarningThresholdCleared,
	ResourceStatusChangedOK, ResourceStatusChangedWarning, ResourceStatusChangedCritical, ResourceStateChanged,
	ResourcePoweredOn, ResourcePoweringOn, ResourcePoweredOff, ResourcePoweringOff,
	ResourcePaused, URIForResourceChanged, ResourceChanged, PropertyValueModifiedByClient,
	ResourceVersionIncompatible, ResourceSelfTestFailed, ResourceSelfTestCompleted, TestMessage,
	AggregationSourceDiscovered,
}
