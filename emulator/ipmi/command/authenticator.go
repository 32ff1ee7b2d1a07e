package command

import (
	"encoding/hex"
	"net/netip"
	"slices"
	"strconv"
	"strings"

	"github.com/metalab-dev/metalab/emulator/bmc"
	"github.com/metalab-dev/metalab/emulator/ipmi/session"
	"github.com/metalab-dev/metalab/emulator/ipmi/wire"
)

// authenticator implements session.Authenticator for a host: it decides who may log in.
type authenticator struct{ state *State }

var _ session.FaultyAuthenticator = authenticator{}

// Faults implements session.FaultyAuthenticator.
func (r authenticator) Faults() session.Faults {
	f := &r.state.Host.Dialect().IPMI.Faults
	return session.Faults{OpenSessionRole: f.OpenSessPriv, RAKP4Code: f.IntegrityCheck, RAKP2ExtraByte: f.LongAuthCode, PaddedNames: f.PaddedKeys, ZeroSessionID: f.ZeroSessionID, SwappedSequence: f.BigEndianSequence, WrongCode: f.BadAuthCode}
}

// GUID implements session.Authenticator. It is the UUID that SMBIOS and Redfish show,
// in SMBIOS byte order (IPMI v2.0 rev 1.1, §20.8; SMBIOS 3, §7.2.1): the
// first three fields least significant byte first.
func (r authenticator) GUID() [16]byte { return guid(r.state.Host.Machine().Identity.UUID) }

// guid returns a UUID in SMBIOS byte order.
func guid(uuid string) (out [16]byte) {
	raw, err := hex.DecodeString(strings.ReplaceAll(uuid, "-", ""))
	if err != nil || len(raw) != len(out) {
		return out
	}
	copy(out[:], raw)
	slices.Reverse(out[0:4])
	slices.Reverse(out[4:6])
	slices.Reverse(out[6:8])
	return out
}

// KG implements session.Authenticator.
func (r authenticator) KG() []byte {
	if !r.state.Host.BMC().Channel.HasKG {
		return nil
	}
	return r.state.Host.KG()
}

// Suites implements session.Authenticator.
func (r authenticator) Suites() []session.Suite {
	var out []session.Suite
	limits, most := r.state.Host.BMC().Channel.Suites, r.Limit()
	for _, id := range r.state.Host.Dialect().IPMI.CipherSuites {
		if limit := min(suiteLimit(limits, id), most); limit > 0 {
			out = append(out, session.Suite{ID: id, Limit: limit})
		}
	}
	return out
}

// AuthTypes implements session.Authenticator.
func (r authenticator) AuthTypes(up wire.Privilege) wire.AuthTypes {
	var all wire.AuthTypes
	for i, types := range r.state.Host.BMC().Channel.AuthTypes {
		if up == 0 || int(up) == i+1 {
			all |= wire.AuthTypes(types)
		}
	}
	return all
}

// Limit implements session.Authenticator.
func (r authenticator) Limit() wire.Privilege { return r.state.privilegeLimit() }

// rolePrivileges maps the predefined roles to privilege limits.
var rolePrivileges = map[bmc.Role]wire.Privilege{
	bmc.Administrator: wire.Administrator,
	bmc.Operator:      wire.Operator,
	bmc.ReadOnly:      wire.User,
}

// rolePrivilege returns the privilege limit of a role. A custom role has the
// limit of the predefined role whose privileges it includes.
func rolePrivilege(a *bmc.Access, role bmc.Role) wire.Privilege {
	if p, ok := rolePrivileges[role]; ok {
		return p
	}
	has := a.Role(role).Privileges
	for _, r := range bmc.Predefined {
		lacks := slices.ContainsFunc(r.Privileges, func(p bmc.Privilege) bool { return !slices.Contains(has, p) })
		if !lacks {
			return rolePrivileges[r.ID]
		}
	}
	return 0
}

// user returns an account as an IPMI user; false when it may not use IPMI.
func (r authenticator) user(a *bmc.Account, v *bmc.View) (session.User, bool) {
	id := userID(r.state.Host, a.ID)
	is := user{IPMIUser: v.Channel.User(a.ID), id: id, account: *a, hasAccount: true}
	is.Role = a.Role
	limit := is.limit(v)
	switch {
	case limit == noAccess:
		limit = 0
	case is.Callback: // callback-only users cannot log in over LAN
		limit = wire.Callback
	}
	u := session.User{ID: id, Account: a.ID, Name: a.Name, Password: a.Password, LongPassword: is.longPassword(), Limit: min(limit, r.Limit())}
	return u, id != 0 && a.Enabled && a.Has(bmc.ForIPMI) && u.Limit > 0 && !v.LoginFailures.Locked(a.ID)
}

// userID returns the user ID of an account; 0 when it has none, since user IDs
// have 6 bits.
func userID(h Host, account string) byte {
	n, err := strconv.Atoi(account)
	id := n - 1 + int(h.Dialect().IPMI.FirstUser)
	if err != nil || n < 1 || id > 63 {
		return 0
	}
	return byte(id)
}

// account returns the user of the account with that ID.
func (r authenticator) account(id string) (session.User, bool) {
	v, all := r.state.Host.BMC(), r.state.Host.Accounts()
	for i := range all {
		if all[i].ID == id {
			return r.user(&all[i], v)
		}
	}
	return session.User{}, false
}

// User implements session.Authenticator (§13.20): it looks a user up by name alone, or
// returns the first user with that name whose limit is the requested role.
func (r authenticator) User(name string, role wire.Privilege, byName bool) (session.User, bool) {
	v, all := r.state.Host.BMC(), r.state.Host.Accounts()
	for i := range all {
		if all[i].Name != name {
			continue
		}
		if u, ok := r.user(&all[i], v); ok && (byName || u.Limit == role) {
			return u, true
		}
	}
	return session.User{}, false
}

// Admit implements session.Authenticator.
func (r authenticator) Admit(u session.User, proved bool, from netip.AddrPort) bool {
	_, ok := r.state.Host.Login(bmc.Credentials{
		Name: u.Name, Account: u.Account, Proved: proved, To: bmc.ForIPMI, From: from.Addr().Unmap().String(),
	})
	return ok
}
