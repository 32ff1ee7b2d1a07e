package message

// The messages about properties.
var (
	PropertyDuplicate             = one{base, 0, "PropertyDuplicate", Warning, "The request names the property %1 more than once.", "Send each property once."}
	PropertyUnknown               = one{base, 0, "PropertyUnknown", Warning, "This resource has no property %1.", "Leave the property out, or check how it is spelled."}
	PropertyValueTypeError        = two{base, 0, "PropertyValueTypeError", Warning, "The value %1 is of a type that the property %2 does not take.", "Send a value of the property's type."}
	PropertyValueFormatError      = two{base, 0, "PropertyValueFormatError", Warning, "The value %1 has a form that the property %2 does not take.", "Send a value in the property's form."}
	PropertyValueNotInList        = two{base, 0, "PropertyValueNotInList", Warning, "The value %1 is none that the property %2 takes.", "Choose one of the values that the resource lists for the property."}
	PropertyValueOutOfRange       = two{base, 3, "PropertyValueOutOfRange", Warning, "The value %1 lies outside of the range of the property %2.", "Send a value within the property's range."}
	PropertyValueError            = one{base, 11, "PropertyValueError", Warning, "The value sent for the property %1 is not acceptable.", "Send a value that the property takes."}
	PropertyNotWritable           = one{base, 0, "PropertyNotWritable", Warning, "The property %1 can only be read.", "Leave the property out."}
	PropertyNotUpdated            = one{base, 12, "PropertyNotUpdated", Critical, "The property %1 was not changed, for the service failed at it but works on.", "Repeat the request. If that does not help, restart the service."}
	PropertyMissing               = one{base, 0, "PropertyMissing", Warning, "The request lacks the property %1, which is required.", "Add the property."}
	ArraySizeTooLong              = two{base, 16, "ArraySizeTooLong", Warning, "The array %1 has more than %2 elements.", "Send fewer elements."}
	ArraySizeTooShort             = two{base, 16, "ArraySizeTooShort", Warning, "The array %1 has fewer than %2 elements.", "Send more elements."}
	InvalidIndex                  = one{base, 0, "InvalidIndex", Warning, "The array has no element %1.", "Choose an index within the array."}
	PropertyValueModified         = two{base, 0, "PropertyValueModified", Warning, "The service gave the property %1 the value %2 instead of the one sent.", "None."}
	StringValueTooLong            = two{base, 2, "StringValueTooLong", Warning, "The text %1 is longer than %2 characters.", "Send a shorter text."}
	StringValueTooShort           = two{base, 16, "StringValueTooShort", Warning, "The text %1 is shorter than %2 characters.", "Send a longer text."}
	PropertyValueConflict         = two{base, 6, "PropertyValueConflict", Warning, "The value sent for the property %1 contradicts the property %2.", "Make the two properties agree."}
	PropertyValueResourceConflict = three{base, 10, "PropertyValueResourceConflict", Warning, "The property %1 cannot have the value %2, for %3 stands against it.", "Change the other resource, or send another value."}
	PropertyValueExternalConflict = two{base, 10, "PropertyValueExternalConflict", Warning, "The property %1 cannot have the value %2 as things are configured.", "Change the configuration, or send another value."}
	PropertyValueIncorrect        = two{base, 7, "PropertyValueIncorrect", Warning, "The property %1 cannot have the value %2.", "Send another value."}
	StrictAccountTypes            = one{base, 9, "StrictAccountTypes", Warning, "The account types in %1 cannot all be granted, and StrictAccountTypes asks for all or none.", "Choose other account types, or set StrictAccountTypes to false."}
	PropertyDeprecated            = one{base, 10, "PropertyDeprecated", Warning, "The property %1 is out of use.", "See the schema for what took its place."}
	PropertyValueDeprecated       = two{base, 10, "PropertyValueDeprecated", Warning, "The value %1 of the property %2 is out of use.", "See the schema for what took its place."}
)

// The messages about authentication and authorization.
var (
	SessionLimitExceeded            = zero{base, 0, "SessionLimitExceeded", Critical, "As many sessions are open as this service allows.", "Close a session, or wait until one expires."}
	NoValidSession                  = zero{base, 0, "NoValidSession", Critical, "The request shows no valid session and no valid account.", "Log in, and repeat the request with the session's token or with a user name and password."}
	InsufficientPrivilege           = zero{base, 0, "InsufficientPrivilege", Critical, "This account may not do that.", "Use an account with the privilege, or have its role changed."}
	AccountModified                 = zero{base, 0, "AccountModified", OK, "The account was changed.", "None."}
	AccountNotModified              = zero{base, 0, "AccountNotModified", Warning, "The account was not changed.", "Check the rights of the account in use and the properties that were sent."}
	AccountRemoved                  = zero{base, 0, "AccountRemoved", OK, "The account was deleted.", "None."}
	AccountForSessionNoLongerExists = zero{base, 0, "AccountForSessionNoLongerExists", OK, "The account of this session was deleted, and the session with it.", "Log in with another account."}
	AccessDenied                    = one{base, 0, "AccessDenied", Critical, "%1 refused the connection of this service.", "Check the address and the rights that this service has there."}
	SessionTerminated               = zero{base, 3, "SessionTerminated", OK, "The session was closed.", "None."}
	PasswordChangeRequired          = one{base, 5, "PasswordChangeRequired", Critical, "The password of this account must be changed before anything else. Send a new one to %1.", "PATCH the property Password of the account at that address."}
	PasswordIncorrectLength         = zero{base, 21, "PasswordIncorrectLength", Critical, "The password is shorter or longer than this service allows.", "See MinPasswordLength and MaxPasswordLength of the AccountService."}
	PasswordReuseTooRecent          = zero{base, 21, "PasswordReuseTooRecent", Critical, "The password was used before, and too recently.", "Choose a password that EnforcePasswordHistoryCount of the AccountService allows."}
	PasswordComplexityNotMet        = zero{base, 21, "PasswordComplexityNotMet", Critical, "The password is too simple for this service.", "Follow PasswordGuidanceMessage of the AccountService."}
	RestrictedRole                  = one{base, 9, "RestrictedRole", Warning, "The role %1 is restricted.", "Use the role that AlternateRoleId of that role names."}
	RestrictedPrivilege             = one{base, 9, "RestrictedPrivilege", Warning, "The privilege %1 is restricted.", "Leave the privilege out."}
	AuthenticationTokenRequired     = zero{base, 15, "AuthenticationTokenRequired", Critical, "The request lacks an authentication token.", "Get a token, and repeat the request with it."}
	OneTimePasscodeSent             = one{base, 17, "OneTimePasscodeSent", OK, "A passcode was sent to %1. Log in with it as Token.", "Repeat the request with the passcode as its property Token."}
	GenerateSecretKeyRequired       = one{base, 19, "GenerateSecretKeyRequired", Critical, "This account needs a new secret key before anything else. The action %1 makes one.", "Carry out the action, keep the key, and log in with a passcode made from it."}
	AccessUnauthorized              = zero{base, 20, "AccessUnauthorized", Critical, "The request is not authorised.", "Repeat the request with a valid user name and password."}
	AccessForbidden                 = zero{base, 20, "AccessForbidden", Critical, "Access is forbidden.", "Use an account with the privileges that this takes."}
)
