package resource

import (
	"context"
	"errors"
	"net/http"
	"slices"
	"time"

	"github.com/metalab-dev/metalab/emulator/bmc"
	"github.com/metalab-dev/metalab/emulator/redfish/message"
)

// accountRows returns the rows of the AccountService, its accounts and its
// roles.
func accountRows() []Row {
	return []Row{
		{URI: "/redfish/v1/AccountService", Schema: "AccountService.v1_18_1", DependsOn: partAccess,
			Read: accountService, Patch: &accountServicePatch},
		{URI: "/redfish/v1/AccountService/Accounts", Schema: "ManagerAccountCollection", DependsOn: partAccess,
			collectionName: "Accounts", memberVariable: "account", Create: &accountCreate, Refuses: slotAccounts},
		{URI: AccountsURI + "/{account}", Schema: "ManagerAccount.v1_14_1", DependsOn: partAccess | partLoginFailures,
			Read: account, BelongsTo: isActorsAccount, Patch: &accountPatch, Remove: removeAccount, Refuses: undeletableAccount, Actions: accountActions},
		{URI: RolesURI, Schema: "RoleCollection", DependsOn: partAccess, collectionName: "Roles", memberVariable: "role", Create: &roleCreate},
		{URI: RolesURI + "/{role}", Schema: "Role.v1_3_3", DependsOn: partAccess,
			Read: accountRole, Patch: &rolePatch, Remove: removeRole, Refuses: predefinedRole},
	}
}

// URIs of the collections of the AccountService.
const (
	AccountsURI = "/redfish/v1/AccountService/Accounts"
	RolesURI    = "/redfish/v1/AccountService/Roles"
)

// AccountURI returns the URI of the account with an ID.
func AccountURI(id string) string { return AccountsURI + "/" + id }

func (v View) account() bmc.Account {
	a, _ := v.BMC.Account(v.IDs["account"])
	return a
}

func account(v View) Object {
	a := v.account()
	o := Object{
		"Name": "Account " + a.ID, "UserName": a.Name, "RoleId": string(a.Role), "Enabled": a.Enabled,
		"Password": nil, // never shown (DSP2046, ManagerAccount.Password)
		"Locked":   v.BMC.LoginFailures.Locked(a.ID), "PasswordChangeRequired": a.ChangeRequired,
		"PasswordExpiration": dateOrNull(a.PasswordExpires), "AccountExpiration": dateOrNull(a.Expires),
		"AccountTypes": accountTypes(v, a), "StrictAccountTypes": a.StrictTypes,
		"Links": Object{},
	}
	if a.Bootstrap {
		o["HostBootstrapAccount"] = true
	}
	if a.Role != "" { // that of an unused slot
		o["Links"] = Object{"Role": Ref(RolesURI + "/" + string(a.Role))}
	}
	return o
}

// dateOrNull formats a time as Redfish writes it; the zero time becomes null.
func dateOrNull(t time.Time) any {
	if t.IsZero() {
		return nil
	}
	return t.UTC().Format(time.RFC3339)
}

// accountTypes returns the ManagerAccount.AccountTypes of an account: the
// services that it may use.
func accountTypes(v View, a bmc.Account) []string {
	out := []string{}
	for _, t := range v.BMC.Spec.Accounts.Types {
		if a.Name != "" && a.Has(t.Type) {
			out = append(out, string(t.Type))
		}
	}
	return out
}

func supportedTypes(v View) []string {
	return Map(v.BMC.Spec.Accounts.Types, func(t bmc.TypeSpec) string { return string(t.Type) })
}

func roleIDs(v View) []string {
	return Map(v.BMC.Roles(), func(r bmc.RoleSpec) string { return string(r.ID) })
}

func isActorsAccount(v View, who Actor) bool { return v.account().ID == who.Account }

// slotAccounts refuses POST on a BMC with a fixed number of account slots: its
// clients create and delete accounts by PATCH.
func slotAccounts(v View, method string) bool {
	return method == http.MethodPost && v.BMC.Spec.Accounts.Fixed
}

// undeletableAccount refuses to delete an account slot, and the last account
// that can administer accounts unless the vendor's BMC allows that.
func undeletableAccount(v View, method string) bool {
	if method != http.MethodDelete {
		return false
	}
	if v.BMC.Spec.Accounts.Fixed {
		return true
	}
	rest := *v.BMC.Access
	rest.Accounts = slices.DeleteFunc(slices.Clone(rest.Accounts), func(a bmc.Account) bool { return a.ID == v.IDs["account"] })
	return !v.BMC.Spec.Accounts.LastAdmin && v.BMC.Admins() > 0 && rest.Admins() == 0
}

// isDate reports whether a string is a date-time as Redfish writes it (RFC
// 3339).
func isDate(s string) bool {
	_, err := time.Parse(time.RFC3339, s)
	return err == nil
}

// accountInputs returns the inputs of a PATCH to an account, or of the POST that
// creates one.
func accountInputs(ofNew bool) []Input {
	in := []Input{
		{Name: "UserName", Kind: Text, Required: ofNew},
		{Name: "Password", Kind: Text, Required: ofNew, Secret: true},
		{Name: "RoleId", Kind: Text, Required: ofNew, Allowed: roleIDs},
		{Name: "Enabled", Kind: Boolean},
		{Name: "PasswordChangeRequired", Kind: Boolean},
		{Name: "PasswordExpiration", Kind: Text, form: isDate, nullable: true},
		{Name: "AccountExpiration", Kind: Text, form: isDate, nullable: true},
		{Name: "AccountTypes", Kind: Array, Of: []Input{{Kind: Text, Allowed: supportedTypes}}},
		{Name: "StrictAccountTypes", Kind: Boolean},
	}
	if ofNew {
		return append(in, Input{Name: "Id", Kind: Text, when: func(v View) bool { return v.BMC.Spec.Accounts.ChosenID }})
	}
	// The service locks; a client can only unlock (DSP2046, ManagerAccount.Locked).
	return append(in, Input{Name: "Locked", Kind: Boolean, Allowed: OneOf("false")})
}

// sentValue returns a pointer to the converted value of a property; nil when the
// client did not send it.
func sentValue[T, S any](set Values, name string, as func(T) S) *S {
	if v, ok := set[name].(T); ok {
		return new(as(v))
	}
	return nil
}

func identity[T any](v T) T { return v }

// accountChange converts the values of a request to the change of an account.
func accountChange(set Values) bmc.AccountChange {
	c := bmc.AccountChange{
		Name: sentValue(set, "UserName", identity[string]), Password: sentValue(set, "Password", identity[string]),
		Role:    sentValue(set, "RoleId", func(s string) bmc.Role { return bmc.Role(s) }),
		Enabled: sentValue(set, "Enabled", identity[bool]), ChangeRequired: sentValue(set, "PasswordChangeRequired", identity[bool]),
		StrictTypes: sentValue(set, "StrictAccountTypes", identity[bool]),
		Types: sentValue(set, "AccountTypes", func(all []any) []bmc.AccountType {
			return Map(all, func(t any) bmc.AccountType { return bmc.AccountType(t.(string)) })
		}),
		PasswordExpires: sentDate(set, "PasswordExpiration"), Expires: sentDate(set, "AccountExpiration"),
	}
	_, c.Unlock = set["Locked"]
	return c
}

// sentDate returns a date-time that a client sent; nil when it was not sent, the
// zero time for null.
func sentDate(set Values, name string) *time.Time {
	v, ok := set[name]
	if !ok {
		return nil
	}
	t, _ := v.(string)
	at, _ := time.Parse(time.RFC3339, t) // null gives the zero time; the format was validated
	return &at
}

var accountCreate = create{
	Inputs:     accountInputs(true),
	maxMembers: func(v View) int { return v.BMC.Spec.Accounts.Most },
	Apply: func(ctx context.Context, c Call) (Result, error) {
		evs, err := c.Host.ApplyBMC(ctx, bmc.CreateAccount{ID: Value(c.Values, "Id", ""), AccountChange: accountChange(c.Values)})
		var wrong *bmc.FieldError
		if errors.As(err, &wrong) {
			return Result{}, Reject(http.StatusBadRequest, c.accountError(wrong).PropertyMessage())
		}
		for _, ev := range evs {
			if made, ok := ev.(bmc.AccountCreated); ok {
				return Result{ID: made.ID}, err
			}
		}
		return Result{}, err
	},
}

// accountPatch changes an account. When the model rejects a property, it reports
// an InputError, drops the property and tries again with the others.
var accountPatch = Patch{
	Inputs: accountInputs(false),
	Apply: func(ctx context.Context, c Call) (Result, error) {
		var out Result
		if _, ok := c.Values["Password"]; ok && c.View.BMC.Policy.OldPassword {
			out.InputErrors = append(out.InputErrors, c.accountError(&bmc.FieldError{Field: bmc.FieldPassword, Why: bmc.ByAction}))
			delete(c.Values, "Password")
		}
		for len(c.Values) > 0 {
			_, err := c.Host.ApplyBMC(ctx, bmc.ChangeAccount{
				ID: c.View.IDs["account"], AccountChange: accountChange(c.Values), Session: c.Actor.Session,
			})
			var wrong *bmc.FieldError
			if !errors.As(err, &wrong) {
				return out, err
			}
			bad := c.accountError(wrong)
			if _, sent := c.Values[bad.Property()]; !sent { // it follows from another
				return Result{}, Reject(http.StatusBadRequest, bad.PropertyMessage())
			}
			out.InputErrors = append(out.InputErrors, bad)
			delete(c.Values, bad.Property())
		}
		return out, nil
	},
}

func removeAccount(ctx context.Context, c Call) (Result, error) {
	_, err := c.Host.ApplyBMC(ctx, bmc.RemoveAccount{ID: c.View.IDs["account"]})
	return Result{}, err
}

// accountActions are the actions of a ManagerAccount. ChangePassword needs the
// privileges that PATCH of Password needs: the privilege registry maps no
// actions, and by the entity's POST mapping only an account administrator could
// call it, which defeats its purpose.
var accountActions = []Action{{
	Name: "ManagerAccount.ChangePassword", writes: "Password",
	Inputs: []Input{
		{Name: "NewPassword", Kind: Text, Required: true, Secret: true},
		{Name: "SessionAccountPassword", Kind: Text, Required: true, Secret: true},
	},
	when: func(v View) bool { return v.account().Name != "" },
	Apply: func(ctx context.Context, c Call) (Result, error) {
		_, err := c.Host.ApplyBMC(ctx, bmc.ChangePassword{
			ID: c.View.IDs["account"], To: Value(c.Values, "NewPassword", ""),
			By: c.Actor.Account, Proof: Value(c.Values, "SessionAccountPassword", ""), Session: c.Actor.Session,
		})
		var wrong *bmc.FieldError
		switch {
		case errors.Is(err, bmc.ErrProof):
			return Result{}, Reject(http.StatusBadRequest,
				message.ActionParameterValueError.With("SessionAccountPassword", "ManagerAccount.ChangePassword").About("#/SessionAccountPassword"))
		case errors.As(err, &wrong):
			return Result{}, Reject(http.StatusBadRequest, c.accountError(wrong).Message.About("#/NewPassword"))
		}
		return Result{}, err
	},
}}

// fieldNames maps the fields of a bmc account to the properties of
// ManagerAccount.
var fieldNames = map[bmc.Field]string{
	bmc.FieldID: "Id", bmc.FieldName: "UserName", bmc.FieldPassword: "Password", bmc.FieldRole: "RoleId", bmc.FieldEnabled: "Enabled",
	bmc.FieldTypes: "AccountTypes",
}

// accountError converts an error of the account model to an InputError with the
// message of the standard.
func (c Call) accountError(e *bmc.FieldError) InputError {
	name := fieldNames[e.Field]
	sent := Echo(c.Values[name])
	if e.Field == bmc.FieldTypes {
		sent = "[…]"
	}
	other := "AccountTypes"
	if e.Field == bmc.FieldTypes {
		other = "Password"
	}
	says := map[bmc.Reason]func() message.Message{
		bmc.Taken:     func() message.Message { return message.ResourceAlreadyExists.With("ManagerAccount", name, sent) },
		bmc.BadForm:   func() message.Message { return message.PropertyValueFormatError.With(sent, name) },
		bmc.BadLength: message.PasswordIncorrectLength.With,
		bmc.Reused:    message.PasswordReuseTooRecent.With,
		bmc.NoSuch:    func() message.Message { return message.PropertyValueNotInList.With(sent, name) },
		bmc.LastAdmin: func() message.Message { return message.PropertyValueResourceConflict.With(name, sent, AccountsURI) },
		bmc.NoFit:     func() message.Message { return message.PropertyValueConflict.With(name, other) },
		bmc.NotStrict: func() message.Message { return message.StrictAccountTypes.With(name) },
		bmc.ByAction:  func() message.Message { return message.PropertyNotWritable.With(name) },
	}[e.Why]()
	return InputError{Path: []string{name}, Problem: CustomMessage, Message: says}
}
