package redfish

import (
	"context"
	"errors"
	"net/http"

	"github.com/metalab-dev/metalab/emulator/bmc"
	"github.com/metalab-dev/metalab/emulator/redfish/message"
)

func (v view) role() bmc.RoleSpec { return v.b.Role(bmc.Role(v.ids["role"])) }

func accountRole(v view) object {
	r := v.role()
	return object{
		"Name": string(r.ID) + " Role", "RoleId": string(r.ID), "IsPredefined": bmc.IsPredefined(r.ID),
		"AssignedPrivileges": append([]privilege{}, r.Privileges...), "OemPrivileges": append([]string{}, r.OEM...),
	}
}

// predefinedRole: what is predefined stays as it is (DSP0266, "Roles").
func predefinedRole(v view, method string) bool {
	return (method == http.MethodPatch || method == http.MethodDelete) && bmc.IsPredefined(v.role().ID)
}

var rolePrivileges = []input{
	{name: "AssignedPrivileges", kind: array, of: []input{{kind: text, values: func(view) []string { return texts(bmc.Privileges) }}}},
	{name: "OemPrivileges", kind: array, of: []input{{kind: text, form: isWord}}},
}

// isWord says whether a text can be a name: not empty, and not endless.
func isWord(s string) bool { return s != "" && len(s) <= 64 }

// roleSpec is a role as a client wants it.
func roleSpec(r bmc.RoleSpec, set values) bmc.RoleSpec {
	if all, ok := set["AssignedPrivileges"].([]any); ok {
		r.Privileges = []privilege{}
		for _, p := range bmc.Privileges { // in their order, each once
			for _, sent := range all {
				if sent == string(p) {
					r.Privileges = append(r.Privileges, p)
					break
				}
			}
		}
	}
	if all, ok := set["OemPrivileges"].([]any); ok {
		r.OEM = list(all, func(t any) string { return t.(string) })
	}
	return r
}

var roleCreate = create{
	inputs: append([]input{{name: "RoleId", kind: text, required: true}}, rolePrivileges...),
	apply: func(ctx context.Context, c operation) (reply, error) {
		id := value(c.set, "RoleId", "")
		_, err := c.host.ApplyBMC(ctx, bmc.CreateRole{RoleSpec: roleSpec(bmc.RoleSpec{ID: bmc.Role(id)}, c.set)})
		var wrong *bmc.FieldError
		if errors.As(err, &wrong) {
			m := message.PropertyValueFormatError.With(id, "RoleId")
			if wrong.Why == bmc.Taken {
				m = message.ResourceAlreadyExists.With("Role", "RoleId", id)
			}
			err = decline(http.StatusBadRequest, m.About("#/RoleId"))
		}
		return reply{id: id}, err
	},
}

var rolePatch = patch{
	inputs: rolePrivileges,
	apply: func(ctx context.Context, c operation) (reply, error) {
		_, err := c.host.ApplyBMC(ctx, bmc.ChangeRole{RoleSpec: roleSpec(c.view.role(), c.set)})
		var wrong *bmc.FieldError
		if errors.As(err, &wrong) { // the last who could administer accounts
			m := message.PropertyValueResourceConflict.With("AssignedPrivileges", "[…]", accountsURI)
			err = decline(http.StatusBadRequest, m.About("#/AssignedPrivileges"))
		}
		return reply{}, err
	},
}

func removeRole(ctx context.Context, c operation) (reply, error) {
	_, err := c.host.ApplyBMC(ctx, bmc.RemoveRole{ID: bmc.Role(c.view.ids["role"])})
	return reply{}, err
}
