package redfish

import (
	"context"

	"github.com/metalab-dev/metalab/emulator/bmc"
)

func hostInterfaceRows() []resource {
	return []resource{
		{uri: "/redfish/v1/Managers/{manager}/HostInterfaces", schema: "HostInterfaceCollection",
			name: "Host Interfaces", of: "hostinterface"},
		{uri: "/redfish/v1/Managers/{manager}/HostInterfaces/{hostinterface}", schema: "HostInterface.v1_3_3",
			shows: PartAccess, read: hostInterface, patch: &hostInterfacePatch},
	}
}

// hostInterfaceID is the last segment of the address of the interface that the
// server's own software has to the BMC.
const hostInterfaceID = "1"

func hostInterface(v view) object {
	s := v.b.HostBootstrap()
	state := "Enabled"
	if s.Disabled {
		state = "Disabled"
	}
	return object{
		"Name": "Host Interface", "Description": "The server's own way to its manager", "HostInterfaceType": "NetworkHostInterface",
		"InterfaceEnabled": !s.Disabled, "ExternallyAccessible": false, "Status": status(state),
		"AuthenticationModes": []string{"BasicAuth", "RedfishSessionAuth"},
		"CredentialBootstrapping": object{
			"Enabled": !s.Disabled && !s.Closed, "EnableAfterReset": !s.Stays, "RoleId": string(s.AccountRole()),
		},
		"NetworkProtocol": ref(v.manager("NetworkProtocol")),
		"Links": object{
			"ComputerSystems": refs(v.system()), "ComputerSystems@odata.count": 1,
			"CredentialBootstrappingRole": ref(rolesURI + "/" + string(s.AccountRole())),
		},
	}
}

var hostInterfacePatch = patch{
	inputs: []input{
		{name: "InterfaceEnabled", kind: boolean},
		{name: "CredentialBootstrapping", kind: group, of: []input{
			{name: "Enabled", kind: boolean}, {name: "EnableAfterReset", kind: boolean}, {name: "RoleId", kind: text, values: roleIDs},
		}},
	},
	apply: func(ctx context.Context, c operation) (reply, error) {
		s := *c.view.b.HostBootstrap()
		s.Disabled = !value(c.set, "InterfaceEnabled", !s.Disabled)
		s.Closed = !value(c.set, "CredentialBootstrapping/Enabled", !s.Closed)
		s.Stays = !value(c.set, "CredentialBootstrapping/EnableAfterReset", !s.Stays)
		s.Role = bmc.Role(value(c.set, "CredentialBootstrapping/RoleId", string(s.Role)))
		_, err := c.host.ApplyBMC(ctx, bmc.SetBootstrap{Bootstrap: s})
		return reply{}, err
	},
}
