package message

// The messages about resources.
var (
	ResourceCannotBeDeleted          = zero{base, 0, "ResourceCannotBeDeleted", Critical, "This resource cannot be deleted.", "Leave the resource in place."}
	ResourceInUse                    = zero{base, 0, "ResourceInUse", Warning, "The resource is in use or changing, and was left alone.", "Free the resource or wait until it has settled, then repeat the request."}
	ResourceAlreadyExists            = three{base, 0, "ResourceAlreadyExists", Critical, "There is a %1 already whose %2 is %3.", "Use the one that is there, or choose another value."}
	ResourceNotFound                 = two{base, 2, "ResourceNotFound", Critical, "There is no %1 named %2.", "Read the collection for the names there are."}
	InsufficientStorage              = zero{base, 13, "InsufficientStorage", Critical, "There is not enough room to carry out the request.", "Free some, or ask for less at once."}
	InvalidURI                       = one{base, 10, "InvalidURI", Critical, "There is nothing at the address %1.", "Check the address."}
	CreateFailedMissingReqProperties = one{base, 0, "CreateFailedMissingReqProperties", Critical, "Nothing was created, for the request lacks the property %1.", "Add the property."}
	CreateLimitReachedForResource    = zero{base, 0, "CreateLimitReachedForResource", Critical, "As many of these resources are there as this service allows.", "Delete one that is no longer needed, then repeat the request."}
	InvalidObject                    = one{base, 0, "InvalidObject", Critical, "What is at %1 is not valid.", "Mend what is there, or check the address."}
	ResourceMissingAtURI             = one{base, 0, "ResourceMissingAtURI", Critical, "There is nothing at %1.", "Check the address, or read it anew from the resource that links to it."}
	ResourceAtURIInUnknownFormat     = one{base, 0, "ResourceAtUriInUnknownFormat", Critical, "What is at %1 has a format that is not known here.", "Put an image of a known format there."}
	ResourceAtURIUnauthorized        = two{base, 0, "ResourceAtUriUnauthorized", Critical, "Access to %1 was refused: %2.", "Send a user name and password that are valid there."}
	ResourceInStandby                = zero{base, 2, "ResourceInStandby", Critical, "The resource is in standby, where this cannot be done.", "Bring the resource into the power state that is needed, then repeat the request."}
	ResourceExhaustion               = one{base, 2, "ResourceExhaustion", Critical, "%1 has not enough resources left for this.", "Free some, then repeat the request."}
	ResourceTypeIncompatible         = two{base, 4, "ResourceTypeIncompatible", Critical, "The request is of the type %1, the resource of the type %2.", "Send a body of the resource's type."}
	ResetRequired                    = two{base, 6, "ResetRequired", Warning, "This takes effect with a reset: the action %1 with the type %2.", "Carry out the reset."}
	ResetRecommended                 = two{base, 12, "ResetRecommended", Warning, "A reset is advisable: the action %1 with the type %2.", "Carry out the reset when it suits."}
	ChassisPowerStateOnRequired      = one{base, 6, "ChassisPowerStateOnRequired", Warning, "The chassis %1 must be switched on for this.", "Switch the chassis on, and repeat the request."}
	ChassisPowerStateOffRequired     = one{base, 6, "ChassisPowerStateOffRequired", Warning, "The chassis %1 must be switched off for this.", "Switch the chassis off, and repeat the request."}
	ResourceCreationConflict         = one{base, 7, "ResourceCreationConflict", Warning, "Nothing was created, for the resource at %1 stands against it.", "Change or delete the other resource, then repeat the request."}
	ResourceDeprecated               = one{base, 10, "ResourceDeprecated", Warning, "The resource %1 is out of use.", "See the schema for what took its place."}
)

// The messages about the service and about services that it connects to.
var (
	EventSubscriptionLimitExceeded     = zero{base, 0, "EventSubscriptionLimitExceeded", Critical, "As many subscriptions are there as this service allows.", "Delete a subscription, then repeat the request."}
	ServiceShuttingDown                = zero{base, 0, "ServiceShuttingDown", Critical, "The service is about to stop and takes no more requests.", "Wait until the service is back, then repeat the request."}
	ServiceInUnknownState              = zero{base, 0, "ServiceInUnknownState", Critical, "The service does not know its own state and takes no requests.", "Restart the service, then repeat the request."}
	CouldNotEstablishConnection        = one{base, 0, "CouldNotEstablishConnection", Critical, "No connection to %1 came about.", "Check the address, and that the service there can be reached from this one."}
	SourceDoesNotSupportProtocol       = two{base, 0, "SourceDoesNotSupportProtocol", Critical, "The service at %1 does not speak %2.", "Use a protocol that the other side speaks."}
	ServiceTemporarilyUnavailable      = one{base, 0, "ServiceTemporarilyUnavailable", Critical, "The service cannot answer now. It may in %1 seconds.", "Wait, and repeat the request."}
	SubscriptionTerminated             = zero{base, 5, "SubscriptionTerminated", OK, "The subscription was ended.", "None."}
	NetworkNameResolutionNotConfigured = zero{base, 11, "NetworkNameResolutionNotConfigured", Warning, "This service has no name server configured.", "Configure one, or give an IP address instead of a name."}
	NetworkNameResolutionNotSupported  = zero{base, 11, "NetworkNameResolutionNotSupported", Warning, "This service does not resolve names.", "Give an IP address instead of a name."}
	ServiceDisabled                    = one{base, 11, "ServiceDisabled", Warning, "The service at %1 is disabled.", "Enable the service, then repeat the request."}
)
