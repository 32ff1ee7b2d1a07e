package resource

import (
	"context"
	"errors"
	"net/http"

	"github.com/metalab-dev/metalab/emulator/bmc"
	"github.com/metalab-dev/metalab/emulator/redfish/message"
)

func (v View) role() bmc.RoleSpec { return v.BMC.Role(bmc.Role(v.IDs["role"])) }

func accountRole(v View) Object {
	r := v.role()
	return Object{
		"Name": string(r.ID) + " Role", "RoleId": string(r.ID), "IsPredefined": bmc.IsPredefined(r.ID),
		"AssignedPrivileges": append([]Privilege{}, r.Privileges...), "OemPrivileges": append([]string{}, r.OEM...),
	}
}

// predefinedRole reports whether a request would change a predefined role (DSP0266,
// "Roles").
func predefinedRole(v View, method string) bool {
	return (method == http.MethodPatch || method == http.MethodDelete) && bmc.IsPredefined(v.role().ID)
}

var rolePrivileges = []Input{
	{Name: "AssignedPrivileges", Kind: Array, Of: []Input{{Kind: Text, Allowed: func(View) []string { return Texts(bmc.Privileges) }}}},
	{Name: "OemPrivileges", Kind: Array, Of: []Input{{Kind: Text, form: isPrivilegeName}}},
}

// isPrivilegeName reports whether a text can be the name of an OEM privilege: it has 1 to
// 64 bytes.
func isPrivilegeName(s string) bool { return s != "" && len(s) <= 64 }

// roleSpec returns a role with the changes that a client sent.
func roleSpec(r bmc.RoleSpec, set Values) bmc.RoleSpec {
	if all, ok := set["AssignedPrivileges"].([]any); ok {
		r.Privileges = []Privilege{}
		for _, p := range bmc.Privileges { // in the standard's order, without duplicates
			for _, sent := range all {
				if sent == string(p) {
					r.Privileges = append(r.Privileges, p)
					break
				}
			}
		}
	}
	if all, ok := set["OemPrivileges"].([]any); ok {
		r.OEM = Map(all, func(t any) string { return t.(string) })
	}
	return r
}

var roleCreate = create{
	Inputs: append([]Input{{Name: "RoleId", Kind: Text, Required: true}}, rolePrivileges...),
	Apply: func(ctx context.Context, c Call) (Result, error) {
		id := Value(c.Values, "RoleId", "")
		_, err := c.Host.ApplyBMC(ctx, bmc.CreateRole{RoleSpec: roleSpec(bmc.RoleSpec{ID: bmc.Role(id)}, c.Values)})
		var wrong *bmc.FieldError
		if errors.As(err, &wrong) {
			m := message.PropertyValueFormatError.With(id, "RoleId")
			if wrong.Why == bmc.Taken {
				m = message.ResourceAlreadyExists.With("Role", "RoleId", id)
			}
			err = Reject(http.StatusBadRequest, m.About("#/RoleId"))
		}
		return Result{ID: id}, err
	},
}

var rolePatch = Patch{
	Inputs: rolePrivileges,
	Apply: func(ctx context.Context, c Call) (Result, error) {
		_, err := c.Host.ApplyBMC(ctx, bmc.ChangeRole{RoleSpec: roleSpec(c.View.role(), c.Values)})
		var wrong *bmc.FieldError
		if errors.As(err, &wrong) { // no other role could administer accounts
			m := message.PropertyValueResourceConflict.With("AssignedPrivileges", "[…]", AccountsURI)
			err = Reject(http.StatusBadRequest, m.About("#/AssignedPrivileges"))
		}
		return Result{}, err
	},
}

func removeRole(ctx context.Context, c Call) (Result, error) {
	_, err := c.Host.ApplyBMC(ctx, bmc.RemoveRole{ID: bmc.Role(c.View.IDs["role"])})
	return Result{}, err
}
