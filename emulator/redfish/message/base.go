package message

// The messages of the Base registry that a service sends (DSP8011, Base 1.22).
var (
	Success                         = zero{"Success", OK, "The request was carried out.", "None."}
	GeneralError                    = zero{"GeneralError", Critical, "The request failed. The extended information says why.", "Act on each message of the extended information."}
	Created                         = zero{"Created", OK, "The resource was created.", "None."}
	NoOperation                     = zero{"NoOperation", Warning, "The request holds nothing to do, and nothing was changed.", "Send at least one property that can be written."}
	PropertyDuplicate               = one{"PropertyDuplicate", Warning, "The request names the property %1 more than once.", "Send each property once."}
	PropertyUnknown                 = one{"PropertyUnknown", Warning, "This resource has no property %1.", "Leave the property out, or check how it is spelled."}
	PropertyValueTypeError          = two{"PropertyValueTypeError", Warning, "The value %1 is of a type that the property %2 does not take.", "Send a value of the property's type."}
	PropertyValueFormatError        = two{"PropertyValueFormatError", Warning, "The value %1 has a form that the property %2 does not take.", "Send a value in the property's form."}
	PropertyValueNotInList          = two{"PropertyValueNotInList", Warning, "The value %1 is none that the property %2 takes.", "Choose one of the values that the resource lists for the property."}
	PropertyValueOutOfRange         = two{"PropertyValueOutOfRange", Warning, "The value %1 lies outside of the range of the property %2.", "Send a value within the property's range."}
	PropertyValueError              = one{"PropertyValueError", Warning, "The value sent for the property %1 is not acceptable.", "Send a value that the property takes."}
	PropertyNotWritable             = one{"PropertyNotWritable", Warning, "The property %1 can only be read.", "Leave the property out."}
	PropertyMissing                 = one{"PropertyMissing", Warning, "The request lacks the property %1, which is required.", "Add the property."}
	PropertyValueConflict           = two{"PropertyValueConflict", Warning, "The value sent for the property %1 contradicts the property %2.", "Make the two properties agree."}
	MalformedJSON                   = zero{"MalformedJSON", Critical, "The body of the request is not JSON.", "Send a body that is valid JSON."}
	EmptyJSON                       = zero{"EmptyJSON", Warning, "The body of the request is an object without properties.", "Send at least one property."}
	UnrecognizedRequestBody         = zero{"UnrecognizedRequestBody", Warning, "The body of the request is none that can be understood here.", "Send one JSON object as application/json."}
	PayloadTooLarge                 = zero{"PayloadTooLarge", Critical, "The body of the request is larger than this service takes.", "Send a smaller body."}
	ActionNotSupported              = one{"ActionNotSupported", Critical, "This resource has no action %1.", "Choose one of the actions that the resource lists."}
	ActionParameterMissing          = two{"ActionParameterMissing", Critical, "The action %1 requires the parameter %2.", "Add the parameter."}
	ActionParameterDuplicate        = two{"ActionParameterDuplicate", Warning, "The request for the action %1 names the parameter %2 more than once.", "Send each parameter once."}
	ActionParameterUnknown          = two{"ActionParameterUnknown", Warning, "The action %1 has no parameter %2.", "Leave the parameter out, or check how it is spelled."}
	ActionParameterNotSupported     = two{"ActionParameterNotSupported", Warning, "The parameter %1 of the action %2 is not supported here.", "Leave the parameter out."}
	ActionParameterValueTypeError   = three{"ActionParameterValueTypeError", Warning, "The value %1 is of a type that the parameter %2 of the action %3 does not take.", "Send a value of the parameter's type."}
	ActionParameterValueFormatError = three{"ActionParameterValueFormatError", Warning, "The value %1 has a form that the parameter %2 of the action %3 does not take.", "Send a value in the parameter's form."}
	ActionParameterValueNotInList   = three{"ActionParameterValueNotInList", Warning, "The value %1 is none that the parameter %2 of the action %3 takes.", "Choose one of the values that the resource lists for the parameter."}
	ActionParameterValueOutOfRange  = three{"ActionParameterValueOutOfRange", Warning, "The value %1 lies outside of the range of the parameter %2 of the action %3.", "Send a value within the parameter's range."}
	ActionParameterValueError       = two{"ActionParameterValueError", Warning, "The value sent for the parameter %1 of the action %2 is not acceptable.", "Send a value that the parameter takes."}
	ActionParameterValueConflict    = two{"ActionParameterValueConflict", Warning, "The parameter %1 cannot have the value %2 here.", "Send a value that agrees with the other parameters and with the state of the resource."}
	QueryParameterValueTypeError    = two{"QueryParameterValueTypeError", Warning, "The value %1 is of a type that the query parameter %2 does not take.", "Send a value of the parameter's type."}
	QueryParameterOutOfRange        = three{"QueryParameterOutOfRange", Warning, "The value %1 of the query parameter %2 lies outside of %3.", "Send a value within the range."}
	QueryParameterUnsupported       = one{"QueryParameterUnsupported", Warning, "The query parameter %1 is not supported here.", "Leave the query parameter out."}
	QueryNotSupportedOnResource     = zero{"QueryNotSupportedOnResource", Warning, "This resource takes no query of this kind.", "Leave the query out."}
	QueryNotSupportedOnOperation    = zero{"QueryNotSupportedOnOperation", Warning, "Only reading takes a query.", "Leave the query out."}
	QueryCombinationInvalid         = zero{"QueryCombinationInvalid", Warning, "These query parameters cannot be used together.", "Leave out those that contradict the others."}
	HeaderInvalid                   = one{"HeaderInvalid", Critical, "The header %1 has a value that is not acceptable.", "Send a value of the header that this service takes."}
	HeaderMissing                   = one{"HeaderMissing", Critical, "The request lacks the header %1.", "Add the header."}
	PreconditionFailed              = zero{"PreconditionFailed", Critical, "The resource is no longer the one that the request speaks of.", "Read the resource again, and use its new ETag."}
	PreconditionRequired            = zero{"PreconditionRequired", Critical, "This resource is changed only on a condition.", "Send the resource's ETag in If-Match."}
	OperationNotAllowed             = zero{"OperationNotAllowed", Critical, "This resource does not take this HTTP method.", "Choose one of the methods in the Allow header."}
	OperationTimeout                = zero{"OperationTimeout", Warning, "The request took too long.", "Read the resource, and repeat the request if it still is due."}
	ResourceMissingAtURI            = one{"ResourceMissingAtURI", Critical, "There is nothing at %1.", "Check the address, or read it anew from the resource that links to it."}
	ResourceNotFound                = two{"ResourceNotFound", Critical, "There is no %1 named %2.", "Read the collection for the names there are."}
	ResourceInUse                   = zero{"ResourceInUse", Warning, "The resource is in use or changing, and was left alone.", "Free the resource or wait until it has settled, then repeat the request."}
	ResourceCannotBeDeleted         = zero{"ResourceCannotBeDeleted", Critical, "This resource cannot be deleted.", "Leave the resource in place."}
	ResourceAtURIUnauthorized       = two{"ResourceAtUriUnauthorized", Critical, "Access to %1 was refused: %2.", "Send a user name and password that are valid there."}
	ResourceAtURIInUnknownFormat    = one{"ResourceAtUriInUnknownFormat", Critical, "What is at %1 has a format that is not known here.", "Put an image of a known format there."}
	CouldNotEstablishConnection     = one{"CouldNotEstablishConnection", Critical, "No connection to %1 came about.", "Check the address, and that the service there can be reached from this one."}
	SourceDoesNotSupportProtocol    = two{"SourceDoesNotSupportProtocol", Critical, "The service at %1 does not speak %2.", "Use a protocol that the other side speaks."}
	NoValidSession                  = zero{"NoValidSession", Critical, "The request shows no valid session and no valid account.", "Log in, and repeat the request with the session's token or with a user name and password."}
	InsufficientPrivilege           = zero{"InsufficientPrivilege", Critical, "This account may not do that.", "Use an account with the privilege, or have its role changed."}
	SessionLimitExceeded            = zero{"SessionLimitExceeded", Critical, "As many sessions are open as this service allows.", "Close a session, or wait until one expires."}
	ChassisPowerStateOnRequired     = one{"ChassisPowerStateOnRequired", Warning, "The chassis %1 must be switched on for this.", "Switch the chassis on, and repeat the request."}
	ServiceTemporarilyUnavailable   = one{"ServiceTemporarilyUnavailable", Critical, "The service cannot answer now. It may in %1 seconds.", "Wait, and repeat the request."}
	MaximumErrorsExceeded           = zero{"MaximumErrorsExceeded", Critical, "There are more errors than are told here.", "Mend those that are told, and repeat the request."}
	InternalError                   = zero{"InternalError", Critical, "The service failed at this request but works on.", "Repeat the request. If that does not help, restart the service."}
)

// Base lists all of them.
var Base = []Entry{
	Success, GeneralError, Created, NoOperation, PropertyDuplicate, PropertyUnknown, PropertyValueTypeError,
	PropertyValueFormatError, PropertyValueNotInList, PropertyValueOutOfRange, PropertyValueError, PropertyNotWritable,
	PropertyMissing, PropertyValueConflict, MalformedJSON, EmptyJSON, UnrecognizedRequestBody, PayloadTooLarge,
	ActionNotSupported, ActionParameterMissing, ActionParameterDuplicate, ActionParameterUnknown,
	ActionParameterNotSupported, ActionParameterValueTypeError, ActionParameterValueFormatError,
	ActionParameterValueNotInList, ActionParameterValueOutOfRange, ActionParameterValueError,
	ActionParameterValueConflict, QueryParameterValueTypeError, QueryParameterOutOfRange, QueryParameterUnsupported,
	QueryNotSupportedOnResource, QueryNotSupportedOnOperation, QueryCombinationInvalid, HeaderInvalid, HeaderMissing,
	PreconditionFailed, PreconditionRequired, OperationNotAllowed, OperationTimeout, ResourceMissingAtURI,
	ResourceNotFound, ResourceInUse, ResourceCannotBeDeleted, ResourceAtURIUnauthorized, ResourceAtURIInUnknownFormat,
	CouldNotEstablishConnection, SourceDoesNotSupportProtocol, NoValidSession, InsufficientPrivilege,
	SessionLimitExceeded, ChassisPowerStateOnRequired, ServiceTemporarilyUnavailable, MaximumErrorsExceeded,
	InternalError,
}
