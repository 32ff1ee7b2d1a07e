package resource

import (
	"context"

	"github.com/metalab-dev/metalab/emulator/bmc"
)

func hostInterfaceRows() []Row {
	return []Row{
		{URI: "/redfish/v1/Managers/{manager}/HostInterfaces", Schema: "HostInterfaceCollection",
			collectionName: "Host Interfaces", memberVariable: "hostinterface"},
		{URI: "/redfish/v1/Managers/{manager}/HostInterfaces/{hostinterface}", Schema: "HostInterface.v1_3_3",
			DependsOn: partAccess, Read: hostInterface, Patch: &hostInterfacePatch},
	}
}

// HostInterfaceID is the ID of the HostInterface, through which the server's
// operating system reaches the BMC.
const HostInterfaceID = "1"

func hostInterface(v View) Object {
	s := v.BMC.HostBootstrap()
	state := "Enabled"
	if s.Disabled {
		state = "Disabled"
	}
	return Object{
		"Name": "Host Interface", "Description": "The server's own way to its manager", "HostInterfaceType": "NetworkHostInterface",
		"InterfaceEnabled": !s.Disabled, "ExternallyAccessible": false, "Status": status(state),
		"AuthenticationModes": []string{"BasicAuth", "RedfishSessionAuth"},
		"CredentialBootstrapping": Object{
			"Enabled": !s.Disabled && !s.Closed, "EnableAfterReset": !s.Stays, "RoleId": string(s.AccountRole()),
		},
		"NetworkProtocol": Ref(v.manager("NetworkProtocol")),
		"Links": Object{
			"ComputerSystems": refs(v.system()), "ComputerSystems@odata.count": 1,
			"CredentialBootstrappingRole": Ref(RolesURI + "/" + string(s.AccountRole())),
		},
	}
}

var hostInterfacePatch = Patch{
	Inputs: []Input{
		{Name: "InterfaceEnabled", Kind: Boolean},
		{Name: "CredentialBootstrapping", Kind: Group, Of: []Input{
			{Name: "Enabled", Kind: Boolean}, {Name: "EnableAfterReset", Kind: Boolean}, {Name: "RoleId", Kind: Text, Allowed: roleIDs},
		}},
	},
	Apply: func(ctx context.Context, c Call) (Result, error) {
		s := *c.View.BMC.HostBootstrap()
		s.Disabled = !Value(c.Values, "InterfaceEnabled", !s.Disabled)
		s.Closed = !Value(c.Values, "CredentialBootstrapping/Enabled", !s.Closed)
		s.Stays = !Value(c.Values, "CredentialBootstrapping/EnableAfterReset", !s.Stays)
		s.Role = bmc.Role(Value(c.Values, "CredentialBootstrapping/RoleId", string(s.Role)))
		_, err := c.Host.ApplyBMC(ctx, bmc.SetBootstrap{Bootstrap: s})
		return Result{}, err
	},
}
