package redfish

import "github.com/metalab-dev/metalab/emulator/bmc"

func accountRows() []resource {
	return []resource{
		{uri: "/redfish/v1/AccountService", schema: "AccountService.v1_18_1", needs: ofUsers, read: accountService},
		{uri: "/redfish/v1/AccountService/Accounts", schema: "ManagerAccountCollection", needs: ofUsers, shows: showsAccess,
			name: "Accounts", of: "account"},
		{uri: "/redfish/v1/AccountService/Accounts/{account}", schema: "ManagerAccount.v1_14_1", needs: ofAccount, shows: showsAccess,
			read: account, own: ownAccount},
		{uri: "/redfish/v1/AccountService/Roles", schema: "RoleCollection", needs: ofManager, name: "Roles", of: "role"},
		{uri: "/redfish/v1/AccountService/Roles/{role}", schema: "Role.v1_3_3", needs: ofManager, read: accountRole},
	}
}

// accountTypes are the services that every account can use.
var accountTypes = []string{"Redfish", "IPMI"}

func accountService(view) object {
	return object{
		"Name": "Account Service", "ServiceEnabled": true, "Status": status("Enabled"),
		"LocalAccountAuth": "Enabled", "HTTPBasicAuth": "Enabled", "SupportedAccountTypes": accountTypes,
	}
}

func (v view) account() bmc.Account {
	return pick(v.b.Accounts, v.ids["account"], func(a bmc.Account) string { return a.ID })
}

func account(v view) object {
	a := v.account()
	return object{
		"Name": "Account " + a.ID, "UserName": a.Name, "RoleId": string(a.Role), "Enabled": a.Enabled,
		"Password": nil, // never shown (DSP2046, ManagerAccount.Password)
		"Locked":   false, "PasswordChangeRequired": false, "AccountTypes": accountTypes,
		"Links": object{"Role": ref("/redfish/v1/AccountService/Roles/" + string(a.Role))},
	}
}

func ownAccount(v view, who actor) bool { return v.account().ID == who.account }

func accountRole(v view) object {
	r := pick(roles, v.ids["role"], func(r role) string { return string(r.name) })
	return object{
		"Name": string(r.name) + " Role", "RoleId": string(r.name), "IsPredefined": true,
		"AssignedPrivileges": r.privileges,
	}
}
