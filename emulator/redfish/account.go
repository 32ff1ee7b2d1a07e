package redfish

import (
	"context"
	"errors"
	"net/http"
	"slices"
	"time"

	"github.com/metalab-dev/metalab/emulator/bmc"
	"github.com/metalab-dev/metalab/emulator/redfish/message"
)

func accountRows() []resource {
	return []resource{
		{uri: "/redfish/v1/AccountService", schema: "AccountService.v1_18_1", shows: PartAccess,
			read: accountService, patch: &accountServicePatch},
		{uri: "/redfish/v1/AccountService/Accounts", schema: "ManagerAccountCollection", shows: PartAccess,
			name: "Accounts", of: "account", create: &accountCreate, spares: fixedAccounts},
		{uri: accountsURI + "/{account}", schema: "ManagerAccount.v1_14_1", shows: PartAccess | PartLoginFailures,
			read: account, own: ownAccount, patch: &accountPatch, remove: removeAccount, spares: keptAccount, actions: accountActions},
		{uri: rolesURI, schema: "RoleCollection", shows: PartAccess, name: "Roles", of: "role", create: &roleCreate},
		{uri: rolesURI + "/{role}", schema: "Role.v1_3_3", shows: PartAccess,
			read: accountRole, patch: &rolePatch, remove: removeRole, spares: predefinedRole},
	}
}

const (
	accountsURI = "/redfish/v1/AccountService/Accounts"
	rolesURI    = "/redfish/v1/AccountService/Roles"
)

func accountURI(id string) string { return accountsURI + "/" + id }

func (v view) account() bmc.Account {
	a, _ := v.b.Account(v.ids["account"])
	return a
}

func account(v view) object {
	a := v.account()
	o := object{
		"Name": "Account " + a.ID, "UserName": a.Name, "RoleId": string(a.Role), "Enabled": a.Enabled,
		"Password": nil, // never shown (DSP2046, ManagerAccount.Password)
		"Locked":   v.b.LoginFailures.Locked(a.ID), "PasswordChangeRequired": a.ChangeRequired,
		"PasswordExpiration": dateOrNull(a.PasswordExpires), "AccountExpiration": dateOrNull(a.Expires),
		"AccountTypes": accountTypes(v, a), "StrictAccountTypes": a.StrictTypes,
		"Links": object{},
	}
	if a.Bootstrap {
		o["HostBootstrapAccount"] = true
	}
	if a.Role != "" { // that of an unused slot
		o["Links"] = object{"Role": ref(rolesURI + "/" + string(a.Role))}
	}
	return o
}

// dateOrNull is a time as Redfish writes it; null when there is none.
func dateOrNull(t time.Time) any {
	if t.IsZero() {
		return nil
	}
	return t.UTC().Format(time.RFC3339)
}

// accountTypes are the services that an account may use.
func accountTypes(v view, a bmc.Account) []string {
	out := []string{}
	for _, t := range v.b.Spec.Accounts.Types {
		if a.Name != "" && a.Has(t.Type) {
			out = append(out, string(t.Type))
		}
	}
	return out
}

func supportedTypes(v view) []string {
	return list(v.b.Spec.Accounts.Types, func(t bmc.TypeSpec) string { return string(t.Type) })
}

func roleIDs(v view) []string {
	return list(v.b.Roles(), func(r bmc.RoleSpec) string { return string(r.ID) })
}

func ownAccount(v view, who actor) bool { return v.account().ID == who.account }

// fixedAccounts: a BMC whose accounts are slots has them made and removed by
// PATCH.
func fixedAccounts(v view, method string) bool {
	return method == http.MethodPost && v.b.Spec.Accounts.Fixed
}

// keptAccount says that an account cannot be deleted: that of a slot, or of
// the last who can administer accounts, if the vendor's BMC keeps that.
func keptAccount(v view, method string) bool {
	if method != http.MethodDelete {
		return false
	}
	if v.b.Spec.Accounts.Fixed {
		return true
	}
	rest := *v.b.Access
	rest.Accounts = slices.DeleteFunc(slices.Clone(rest.Accounts), func(a bmc.Account) bool { return a.ID == v.ids["account"] })
	return !v.b.Spec.Accounts.LastAdmin && v.b.Admins() > 0 && rest.Admins() == 0
}

// isDate says whether a text is a date and time as Redfish writes it.
func isDate(s string) bool {
	_, err := time.Parse(time.RFC3339, s)
	return err == nil
}

// accountInputs are what a client can say of an account; with all it can say
// of a new one.
func accountInputs(ofNew bool) []input {
	in := []input{
		{name: "UserName", kind: text, required: ofNew},
		{name: "Password", kind: text, required: ofNew, secret: true},
		{name: "RoleId", kind: text, required: ofNew, values: roleIDs},
		{name: "Enabled", kind: boolean},
		{name: "PasswordChangeRequired", kind: boolean},
		{name: "PasswordExpiration", kind: text, form: isDate, nullable: true},
		{name: "AccountExpiration", kind: text, form: isDate, nullable: true},
		{name: "AccountTypes", kind: array, of: []input{{kind: text, values: supportedTypes}}},
		{name: "StrictAccountTypes", kind: boolean},
	}
	if !ofNew {
		// The service locks; a client can only unlock (DSP2046,
		// ManagerAccount.Locked).
		in = append(in, input{name: "Locked", kind: boolean, values: oneOf("false")})
	}
	return in
}

// sent is a pointer to what a client sent under a name; nil when it did not.
func sent[T, S any](set values, name string, as func(T) S) *S {
	if v, ok := set[name].(T); ok {
		return new(as(v))
	}
	return nil
}

func same[T any](v T) T { return v }

// accountChange is what a client wants of an account.
func accountChange(set values) bmc.AccountChange {
	c := bmc.AccountChange{
		Name: sent(set, "UserName", same[string]), Password: sent(set, "Password", same[string]),
		Role:    sent(set, "RoleId", func(s string) bmc.Role { return bmc.Role(s) }),
		Enabled: sent(set, "Enabled", same[bool]), ChangeRequired: sent(set, "PasswordChangeRequired", same[bool]),
		StrictTypes: sent(set, "StrictAccountTypes", same[bool]),
		Types: sent(set, "AccountTypes", func(all []any) []bmc.AccountType {
			return list(all, func(t any) bmc.AccountType { return bmc.AccountType(t.(string)) })
		}),
		PasswordExpires: sentDate(set, "PasswordExpiration"), Expires: sentDate(set, "AccountExpiration"),
	}
	_, c.Unlock = set["Locked"]
	return c
}

// sentDate is a date that a client sent, of which null is a zero time.
func sentDate(set values, name string) *time.Time {
	v, ok := set[name]
	if !ok {
		return nil
	}
	t, _ := v.(string)
	at, _ := time.Parse(time.RFC3339, t) // zero of null; anything else was checked
	return &at
}

var accountCreate = create{
	inputs: accountInputs(true),
	most:   func(v view) int { return v.b.Spec.Accounts.Most },
	apply: func(ctx context.Context, c operation) (reply, error) {
		evs, err := c.host.ApplyBMC(ctx, bmc.CreateAccount{AccountChange: accountChange(c.set)})
		var wrong *bmc.FieldError
		if errors.As(err, &wrong) {
			return reply{}, decline(http.StatusBadRequest, c.notTaken(wrong).ofProperty())
		}
		for _, ev := range evs {
			if made, ok := ev.(bmc.AccountCreated); ok {
				return reply{id: made.ID}, err
			}
		}
		return reply{}, err
	},
}

// accountPatch changes what can be changed: what the model refuses is left out
// until the rest is taken.
var accountPatch = patch{
	inputs: accountInputs(false),
	apply: func(ctx context.Context, c operation) (reply, error) {
		var out reply
		if _, ok := c.set["Password"]; ok && c.view.b.Policy.OldPassword {
			out.bad = append(out.bad, c.notTaken(&bmc.FieldError{Field: bmc.FieldPassword, Why: bmc.ByAction}))
			delete(c.set, "Password")
		}
		for len(c.set) > 0 {
			_, err := c.host.ApplyBMC(ctx, bmc.ChangeAccount{
				ID: c.view.ids["account"], AccountChange: accountChange(c.set), Session: c.who.session,
			})
			var wrong *bmc.FieldError
			if !errors.As(err, &wrong) {
				return out, err
			}
			bad := c.notTaken(wrong)
			if _, sent := c.set[bad.property()]; !sent { // it follows from another
				return reply{}, decline(http.StatusBadRequest, bad.ofProperty())
			}
			out.bad = append(out.bad, bad)
			delete(c.set, bad.property())
		}
		return out, nil
	},
}

func removeAccount(ctx context.Context, c operation) (reply, error) {
	_, err := c.host.ApplyBMC(ctx, bmc.RemoveAccount{ID: c.view.ids["account"]})
	return reply{}, err
}

// accountActions: who may set a password may do so by the action too. The
// registry maps no actions, and by the entity's POST nobody could but who
// administers accounts, which is not what the action is for.
var accountActions = []action{{
	name: "ManagerAccount.ChangePassword", like: "Password",
	inputs: []input{
		{name: "NewPassword", kind: text, required: true, secret: true},
		{name: "SessionAccountPassword", kind: text, required: true, secret: true},
	},
	when: func(v view) bool { return v.account().Name != "" },
	apply: func(ctx context.Context, c operation) (reply, error) {
		_, err := c.host.ApplyBMC(ctx, bmc.ChangePassword{
			ID: c.view.ids["account"], To: value(c.set, "NewPassword", ""),
			By: c.who.account, Proof: value(c.set, "SessionAccountPassword", ""), Session: c.who.session,
		})
		var wrong *bmc.FieldError
		switch {
		case errors.Is(err, bmc.ErrProof):
			return reply{}, decline(http.StatusBadRequest,
				message.ActionParameterValueError.With("SessionAccountPassword", "ManagerAccount.ChangePassword").About("#/SessionAccountPassword"))
		case errors.As(err, &wrong):
			return reply{}, decline(http.StatusBadRequest, c.notTaken(wrong).says.About("#/NewPassword"))
		}
		return reply{}, err
	},
}}

// fieldNames are the properties that the fields of an account are.
var fieldNames = map[bmc.Field]string{
	bmc.FieldName: "UserName", bmc.FieldPassword: "Password", bmc.FieldRole: "RoleId", bmc.FieldEnabled: "Enabled",
	bmc.FieldTypes: "AccountTypes",
}

// notTaken words what the model finds wrong with an account.
func (c operation) notTaken(e *bmc.FieldError) refusal {
	name := fieldNames[e.Field]
	sent := echo(c.set[name])
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
		bmc.LastAdmin: func() message.Message { return message.PropertyValueResourceConflict.With(name, sent, accountsURI) },
		bmc.NoFit:     func() message.Message { return message.PropertyValueConflict.With(name, other) },
		bmc.NotStrict: func() message.Message { return message.StrictAccountTypes.With(name) },
		bmc.ByAction:  func() message.Message { return message.PropertyNotWritable.With(name) },
	}[e.Why]()
	return refusal{path: []string{name}, why: outright, says: says}
}
