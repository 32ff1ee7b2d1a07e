package message

// The messages about requests.
var (
	Success                    = zero{base, 0, "Success", OK, "The request was carried out.", "None."}
	GeneralError               = zero{base, 0, "GeneralError", Critical, "The request failed. The extended information says why.", "Act on each message of the extended information."}
	Created                    = zero{base, 0, "Created", OK, "The resource was created.", "None."}
	NoOperation                = zero{base, 4, "NoOperation", Warning, "The request holds nothing to do, and nothing was changed.", "Send at least one property that can be written."}
	MalformedJSON              = zero{base, 0, "MalformedJSON", Critical, "The body of the request is not JSON.", "Send a body that is valid JSON."}
	InvalidJSON                = one{base, 10, "InvalidJSON", Critical, "The body of the request is no JSON from line %1 on.", "Send a body that is valid JSON."}
	EmptyJSON                  = zero{base, 2, "EmptyJSON", Warning, "The body of the request is an object without properties.", "Send at least one property."}
	PayloadTooLarge            = zero{base, 13, "PayloadTooLarge", Critical, "The body of the request is larger than this service takes.", "Send a smaller body."}
	MissingOrMalformedPart     = zero{base, 13, "MissingOrMalformedPart", Critical, "The multipart body lacks a part, or one of its parts cannot be read.", "Send every part that is required, each in its form."}
	InternalError              = zero{base, 0, "InternalError", Critical, "The service failed at this request but works on.", "Repeat the request. If that does not help, restart the service."}
	UnrecognizedRequestBody    = zero{base, 0, "UnrecognizedRequestBody", Warning, "The body of the request is none that can be understood here.", "Send one JSON object as application/json."}
	MaximumErrorsExceeded      = zero{base, 8, "MaximumErrorsExceeded", Critical, "There are more errors than are told here.", "Mend those that are told, and repeat the request."}
	PreconditionFailed         = zero{base, 8, "PreconditionFailed", Critical, "The resource is no longer the one that the request speaks of.", "Read the resource again, and use its new ETag."}
	PreconditionRequired       = zero{base, 8, "PreconditionRequired", Critical, "This resource is changed only on a condition.", "Send the resource's ETag in If-Match."}
	HeaderMissing              = one{base, 13, "HeaderMissing", Critical, "The request lacks the header %1.", "Add the header."}
	HeaderInvalid              = one{base, 13, "HeaderInvalid", Critical, "The header %1 has a value that is not acceptable.", "Send a value of the header that this service takes."}
	OperationFailed            = zero{base, 8, "OperationFailed", Warning, "Part of the work failed within the service. What it gives back may be incomplete.", "Repeat the request. If that does not help, restart the service."}
	OperationTimeout           = zero{base, 8, "OperationTimeout", Warning, "The request took too long.", "Read the resource, and repeat the request if it still is due."}
	OperationNotAllowed        = zero{base, 13, "OperationNotAllowed", Critical, "This resource does not take this HTTP method.", "Choose one of the methods in the Allow header."}
	UndeterminedFault          = one{base, 9, "UndeterminedFault", Critical, "%1 tells of a fault that it cannot name.", "Look at the part for what it shows."}
	ConditionInRelatedResource = zero{base, 9, "ConditionInRelatedResource", Warning, "A resource that belongs to this one needs attention.", "Look at the conditions of the resource in OriginOfCondition."}
	EventBufferExceeded        = zero{base, 13, "EventBufferExceeded", Warning, "More events came than the buffer holds. Some may be lost.", "Read the log for what is missing."}
	LicenseRequired            = one{base, 16, "LicenseRequired", Critical, "This takes a license: %1.", "Install the license, then repeat the request."}
	PropertyModified           = zero{base, 19, "PropertyModified", OK, "Properties of the resource were changed.", "None."}
)

// The messages about query parameters.
var (
	QueryParameterValueTypeError   = two{base, 0, "QueryParameterValueTypeError", Warning, "The value %1 is of a type that the query parameter %2 does not take.", "Send a value of the parameter's type."}
	QueryParameterValueFormatError = two{base, 0, "QueryParameterValueFormatError", Warning, "The value %1 has a form that the query parameter %2 does not take.", "Send a value in the parameter's form."}
	QueryParameterValueError       = one{base, 11, "QueryParameterValueError", Warning, "The value sent for the query parameter %1 is not acceptable.", "Send a value that the parameter takes."}
	QueryParameterOutOfRange       = three{base, 0, "QueryParameterOutOfRange", Warning, "The value %1 of the query parameter %2 lies outside of %3.", "Send a value within the range."}
	QueryNotSupportedOnResource    = zero{base, 0, "QueryNotSupportedOnResource", Warning, "This resource takes no query of this kind.", "Leave the query out."}
	QueryNotSupportedOnOperation   = zero{base, 6, "QueryNotSupportedOnOperation", Warning, "Only reading takes a query.", "Leave the query out."}
	QueryNotSupported              = zero{base, 0, "QueryNotSupported", Warning, "This service takes no queries.", "Leave the query out."}
	QueryCombinationInvalid        = zero{base, 6, "QueryCombinationInvalid", Warning, "These query parameters cannot be used together.", "Leave out those that contradict the others."}
	QueryParameterUnsupported      = one{base, 15, "QueryParameterUnsupported", Warning, "The query parameter %1 is not supported here.", "Leave the query parameter out."}
)

// The messages about actions.
var (
	ActionNotSupported              = one{base, 0, "ActionNotSupported", Critical, "This resource has no action %1.", "Choose one of the actions that the resource lists."}
	ActionParameterMissing          = two{base, 0, "ActionParameterMissing", Critical, "The action %1 requires the parameter %2.", "Add the parameter."}
	ActionParameterDuplicate        = two{base, 0, "ActionParameterDuplicate", Warning, "The request for the action %1 names the parameter %2 more than once.", "Send each parameter once."}
	ActionParameterUnknown          = two{base, 0, "ActionParameterUnknown", Warning, "The action %1 has no parameter %2.", "Leave the parameter out, or check how it is spelled."}
	ActionParameterValueTypeError   = three{base, 0, "ActionParameterValueTypeError", Warning, "The value %1 is of a type that the parameter %2 of the action %3 does not take.", "Send a value of the parameter's type."}
	ActionParameterValueFormatError = three{base, 0, "ActionParameterValueFormatError", Warning, "The value %1 has a form that the parameter %2 of the action %3 does not take.", "Send a value in the parameter's form."}
	ActionParameterValueNotInList   = three{base, 10, "ActionParameterValueNotInList", Warning, "The value %1 is none that the parameter %2 of the action %3 takes.", "Choose one of the values that the resource lists for the parameter."}
	ActionParameterValueOutOfRange  = three{base, 18, "ActionParameterValueOutOfRange", Warning, "The value %1 lies outside of the range of the parameter %2 of the action %3.", "Send a value within the parameter's range."}
	ActionParameterValueError       = two{base, 11, "ActionParameterValueError", Warning, "The value sent for the parameter %1 of the action %2 is not acceptable.", "Send a value that the parameter takes."}
	ActionParameterNotSupported     = two{base, 0, "ActionParameterNotSupported", Warning, "The parameter %1 of the action %2 is not supported here.", "Leave the parameter out."}
	ActionParameterValueConflict    = two{base, 12, "ActionParameterValueConflict", Warning, "The parameter %1 cannot have the value %2 here.", "Send a value that agrees with the other parameters and with the state of the resource."}
	ActionDeprecated                = one{base, 10, "ActionDeprecated", Warning, "The action %1 is out of use.", "See the schema for what took its place."}
)

// Base lists the messages of the Base registry (DSP8011).
var Base = []Entry{
	Success, GeneralError, Created, NoOperation,
	MalformedJSON, InvalidJSON, EmptyJSON, PayloadTooLarge,
	MissingOrMalformedPart, InternalError, UnrecognizedRequestBody, MaximumErrorsExceeded,
	PreconditionFailed, PreconditionRequired, HeaderMissing, HeaderInvalid,
	OperationFailed, OperationTimeout, OperationNotAllowed, UndeterminedFault,
	ConditionInRelatedResource, EventBufferExceeded, LicenseRequired, PropertyModified,
	PropertyDuplicate, PropertyUnknown, PropertyValueTypeError, PropertyValueFormatError,
	PropertyValueNotInList, PropertyValueOutOfRange, PropertyValueError, PropertyNotWritable,
	PropertyNotUpdated, PropertyMissing, ArraySizeTooLong, ArraySizeTooShort,
	InvalidIndex, PropertyValueModified, StringValueTooLong, StringValueTooShort,
	PropertyValueConflict, PropertyValueResourceConflict, PropertyValueExternalConflict, PropertyValueIncorrect,
	StrictAccountTypes, PropertyDeprecated, PropertyValueDeprecated,
	ActionNotSupported, ActionParameterMissing, ActionParameterDuplicate, ActionParameterUnknown,
	ActionParameterValueTypeError, ActionParameterValueFormatError, ActionParameterValueNotInList, ActionParameterValueOutOfRange,
	ActionParameterValueError, ActionParameterNotSupported, ActionParameterValueConflict, ActionDeprecated,
	QueryParameterValueTypeError, QueryParameterValueFormatError, QueryParameterValueError, QueryParameterOutOfRange,
	QueryNotSupportedOnResource, QueryNotSupportedOnOperation, QueryNotSupported, QueryCombinationInvalid,
	QueryParameterUnsupported,
	SessionLimitExceeded, NoValidSession, InsufficientPrivilege, AccountModified,
	AccountNotModified, AccountRemoved, AccountForSessionNoLongerExists, AccessDenied,
	SessionTerminated, PasswordChangeRequired, PasswordIncorrectLength, PasswordReuseTooRecent,
	PasswordComplexityNotMet, RestrictedRole, RestrictedPrivilege, AuthenticationTokenRequired,
	OneTimePasscodeSent, GenerateSecretKeyRequired, AccessUnauthorized, AccessForbidden,
	ResourceCannotBeDeleted, ResourceInUse, ResourceAlreadyExists, ResourceNotFound,
	InsufficientStorage, InvalidURI, CreateFailedMissingReqProperties, CreateLimitReachedForResource,
	InvalidObject, ResourceMissingAtURI, ResourceAtURIInUnknownFormat, ResourceAtURIUnauthorized,
	ResourceInStandby, ResourceExhaustion, ResourceTypeIncompatible, ResetRequired,
	ResetRecommended, ChassisPowerStateOnRequired, ChassisPowerStateOffRequired, ResourceCreationConflict,
	ResourceDeprecated,
	EventSubscriptionLimitExceeded, ServiceShuttingDown, ServiceInUnknownState, CouldNotEstablishConnection,
	SourceDoesNotSupportProtocol, ServiceTemporarilyUnavailable, SubscriptionTerminated, NetworkNameResolutionNotConfigured,
	NetworkNameResolutionNotSupported, ServiceDisabled,
}
