package message

// The messages about logins and accounts.
var (
	AccountSecurityInsufficientPrivilege = four{accountSecurity, 0, "InsufficientPrivilege", Critical, "Somebody at %1 tried over %2, with the privileges %3, what takes %4.", "None."}
	InvalidCredentials                   = two{accountSecurity, 0, "InvalidCredentials", Critical, "Somebody at %1 came over %2 with a wrong name or password.", "None."}
	SuccessfulLogin                      = three{accountSecurity, 0, "SuccessfulLogin", OK, "The user %1 logged in from %2 over %3.", "None."}
	AccountCreated                       = one{accountSecurity, 0, "AccountCreated", OK, "The account %1 was created.", "None."}
	AccountSecurityAccountRemoved        = one{accountSecurity, 0, "AccountRemoved", OK, "The account %1 was deleted.", "None."}
	AccountLocked                        = one{accountSecurity, 0, "AccountLocked", Critical, "The account %1 was locked after too many wrong passwords.", "Wait until the lock expires, or unlock the account."}
	AccountLockoutExpired                = one{accountSecurity, 0, "AccountLockoutExpired", OK, "The lock of the account %1 has expired.", "None."}
	AccountUnlocked                      = one{accountSecurity, 0, "AccountUnlocked", OK, "An administrator unlocked the account %1.", "None."}
	AccountEnabled                       = one{accountSecurity, 0, "AccountEnabled", OK, "The account %1 was enabled.", "None."}
	AccountDisabled                      = one{accountSecurity, 0, "AccountDisabled", Warning, "The account %1 was disabled.", "None."}
	PasswordModified                     = one{accountSecurity, 0, "PasswordModified", OK, "The password of the account %1 was changed.", "None."}
	ManagerAccountRoleChanged            = three{accountSecurity, 0, "ManagerAccountRoleChanged", OK, "The role of the account %1 was %2 and is now %3.", "None."}
	RolePrivilegeRemoved                 = two{accountSecurity, 0, "RolePrivilegeRemoved", OK, "The privilege %1 was taken from the role %2.", "None."}
	RolePrivilegeAdded                   = two{accountSecurity, 0, "RolePrivilegeAdded", OK, "The privilege %1 was given to the role %2.", "None."}
	UserCertificateAdded                 = one{accountSecurity, 0, "UserCertificateAdded", OK, "The account %1 was given a certificate.", "None."}
	UserCertificateRemoved               = one{accountSecurity, 0, "UserCertificateRemoved", OK, "A certificate was taken from the account %1.", "None."}
	UserCertificateReplaced              = one{accountSecurity, 0, "UserCertificateReplaced", OK, "A certificate of the account %1 was replaced.", "None."}
	UserKeyAdded                         = one{accountSecurity, 0, "UserKeyAdded", OK, "The account %1 was given a key.", "None."}
	UserKeyRemoved                       = one{accountSecurity, 0, "UserKeyRemoved", OK, "A key was taken from the account %1.", "None."}
)

// AccountSecurity lists the messages of the AccountSecurity registry (DSP8011).
var AccountSecurity = []Entry{
	AccountSecurityInsufficientPrivilege, InvalidCredentials, SuccessfulLogin, AccountCreated,
	AccountSecurityAccountRemoved, AccountLocked, AccountLockoutExpired, AccountUnlocked,
	AccountEnabled, AccountDisabled, PasswordModified, ManagerAccountRoleChanged,
	RolePrivilegeRemoved, RolePrivilegeAdded, UserCertificateAdded, UserCertificateRemoved,
	UserCertificateReplaced, UserKeyAdded, UserKeyRemoved,
}
