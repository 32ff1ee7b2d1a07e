package redfish

import "github.com/metalab-dev/metalab/emulator/bmc"

// accountTypes are the services that every account can use.
var accountTypes = []string{"Redfish", "IPMI"}

func accountService(view) object {
	return object{
		"Name": "Account Service", "ServiceEnabled": true, "Status": status("Enabled"),
		"LocalAccountAuth": "Enabled", "HTTPBasicAuth": "Enabled", "SupportedAccountTypes": accountTypes,
		"Accounts": ref("/redfish/v1/AccountService/Accounts"),
		"Roles":    ref("/redfish/v1/AccountService/Roles"),
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
