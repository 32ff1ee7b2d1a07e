package command

import (
	"bytes"
	"crypto/subtle"
	"errors"
	"slices"
	"strconv"
	"unicode/utf8"

	"github.com/metalab-dev/metalab/emulator/bmc"
	"github.com/metalab-dev/metalab/emulator/ipmi/wire"
)

var userCommands = []Row{
	{fn: wire.App, cmd: 0x43, name: "Set User Access Command", privilege: wire.Administrator, least: 3, most: 4, mutates: true, run: setUserAccess},
	{fn: wire.App, cmd: 0x44, name: "Get User Access Command", privilege: wire.Operator, least: 2, most: 2, run: getUserAccess},
	{fn: wire.App, cmd: 0x45, name: "Set User Name", privilege: wire.Administrator, least: 17, most: 17, mutates: true, run: setUserName},
	{fn: wire.App, cmd: 0x46, name: "Get User Name Command", privilege: wire.Operator, least: 1, most: 1, run: getUserName},
	{fn: wire.App, cmd: 0x47, name: "Set User Password Command", privilege: wire.Administrator, least: 2, most: 22, mutates: true, run: setUserPassword},
	{fn: wire.App, cmd: 0x4c, name: "Set User Payload Access", privilege: wire.Administrator, least: 6, most: 6, mutates: true, run: setPayloadAccess},
	{fn: wire.App, cmd: 0x4d, name: "Get User Payload Access", privilege: wire.Operator, least: 2, most: 2, run: getPayloadAccess},
}

const (
	anonymous          = 1    // user ID 1: it has a null name, and no access here (§6.9)
	noAccess           = 0x0f // privilege limit "no access"
	nameSize           = 16
	shortPasswordSize  = 16 // bytes of an IPMI 1.5 password
	longPasswordSize   = 20
	userIDMask         = 0x3f // mask of the user ID in a byte
	maxUsers           = 63
	solPayload         = 1 << 1 // standard payload 1
	enabledUser        = 1 << 6
	disabledUser       = 2 << 6
	ipmiMessaging      = 1 << 4
	linkAuthentication = 1 << 5
	callbackOnly       = 1 << 6
	changeAccessBits   = 1 << 7
)

// user is an IPMI user: its account, and what IPMI stores besides.
type user struct {
	bmc.IPMIUser
	id         byte
	account    bmc.Account // zero: it has none
	hasAccount bool        // it has an account
}

// accountID returns the ID of the account that a user has or would have; ""
// when it cannot have one.
func accountID(h Host, id byte) string {
	n := int(id) + 1 - int(h.Dialect().IPMI.FirstUser)
	spec := &h.Dialect().BMC.Accounts
	if id == anonymous || n < 1 || spec.Most > 0 && n > spec.Most || slices.Contains(spec.Reserved, strconv.Itoa(n)) {
		return ""
	}
	return strconv.Itoa(n)
}

// maxUserID returns the highest user ID.
func maxUserID(h Host) byte {
	n := h.Dialect().BMC.Accounts.Most
	if n == 0 {
		n = maxUsers
	}
	return byte(min(n-1+int(h.Dialect().IPMI.FirstUser), maxUsers))
}

// user returns the user with an ID.
func (x *Request) user(id byte) (user, Code) {
	switch {
	case id&^userIDMask != 0 || id == 0:
		return user{}, InvalidDataField
	case id > maxUserID(x.Host):
		return user{}, ParameterOutOfRange
	}
	u := user{id: id}
	account := accountID(x.Host, id)
	u.IPMIUser = bmc.IPMIUser{Account: account}
	if account == "" {
		return u, Completed
	}
	u.IPMIUser = x.bmc().Channel.User(account)
	all := x.Host.Accounts()
	if i := slices.IndexFunc(all, func(a bmc.Account) bool { return a.ID == account }); i >= 0 {
		u.account, u.hasAccount = all[i], true
		u.Name, u.Enabled, u.Role = u.account.Name, u.account.Enabled, u.account.Role
	}
	return u, Completed
}

// limit returns the user's privilege limit on the channel.
func (u *user) limit(v *bmc.View) wire.Privilege {
	switch {
	case u.Limit != 0:
		return wire.Privilege(u.Limit)
	case u.Role != "":
		return rolePrivilege(v.Access, u.Role)
	}
	return noAccess
}

// ipmiMessaging reports whether the user may send IPMI messages.
func (u *user) ipmiMessaging() bool {
	return u.hasAccount && u.account.Has(bmc.ForIPMI) || !u.hasAccount && u.Name != ""
}

// enabledUsers counts the enabled users.
func (x *Request) enabledUsers() byte {
	n := byte(0)
	for id := byte(1); id <= maxUserID(x.Host); id++ {
		if u, _ := x.user(id); u.Enabled && u.Name != "" {
			n++
		}
	}
	return n
}

// getUserAccess handles Get User Access (§22.27).
func getUserAccess(x *Request) error {
	if !x.isLANChannel(x.data[0]) {
		return InvalidDataField
	}
	u, code := x.user(x.data[1])
	if code != Completed {
		return code
	}
	state, access := byte(disabledUser), byte(u.limit(x.bmc()))
	if u.Enabled {
		state = enabledUser
	}
	if u.ipmiMessaging() {
		access |= ipmiMessaging
	}
	if u.LinkAuthentication {
		access |= linkAuthentication
	}
	if u.Callback {
		access |= callbackOnly
	}
	const fixedNames = 1 // user 1's name is fixed
	x.put(maxUserID(x.Host), state|x.enabledUsers(), fixedNames, access)
	return nil
}

// privilegeRoles maps privilege limits to roles. A user without access keeps
// its role, which other protocols use.
var privilegeRoles = map[wire.Privilege]struct {
	role  bmc.Role
	limit byte // limit that no role has
}{
	wire.Callback:      {bmc.ReadOnly, byte(wire.Callback)},
	wire.User:          {role: bmc.ReadOnly},
	wire.Operator:      {role: bmc.Operator},
	wire.Administrator: {role: bmc.Administrator},
	wire.OEMPrivilege:  {bmc.Administrator, byte(wire.OEMPrivilege)},
	noAccess:           {limit: noAccess},
}

// setUserAccess handles Set User Access (§22.26). It unlocks a user that bad
// passwords have locked out (table 23-4, parameter 26).
func setUserAccess(x *Request) error {
	if !x.isLANChannel(x.data[0] & 0x0f) {
		return InvalidDataField
	}
	u, code := x.user(x.data[1])
	level, known := privilegeRoles[wire.Privilege(x.data[2])]
	switch {
	case code != Completed:
		return code
	case u.Account == "" && level.limit == noAccess && x.data[0]&(ipmiMessaging|linkAuthentication|callbackOnly) == 0:
		return nil // no change
	case u.Account == "" || !known:
		return InvalidDataField
	case len(x.data) > 3 && x.data[3] != 0:
		return InvalidDataField // simultaneous sessions cannot be limited per user
	}
	as, change := u.IPMIUser, bmc.AccountChange{Unlock: u.hasAccount, Role: &level.role}
	as.Limit = level.limit
	same := level.limit == 0 && u.Role != "" && rolePrivilege(x.bmc().Access, u.Role) == rolePrivileges[level.role]
	if same || level.role == "" || level.role == u.Role {
		change.Role = nil // a custom role with that limit is kept
	}
	if x.data[0]&changeAccessBits != 0 {
		as.Callback, as.LinkAuthentication = x.data[0]&callbackOnly != 0, x.data[0]&linkAuthentication != 0
		may := x.data[0]&ipmiMessaging != 0
		if u.hasAccount && may != u.ipmiMessaging() {
			change.Types = new(accountTypes(x.Host, &u.account, may))
		}
	}
	return x.changeUser(u, change, &as)
}

// accountTypes returns an account's types with or without IPMI.
func accountTypes(h Host, a *bmc.Account, may bool) []bmc.AccountType {
	out := []bmc.AccountType{}
	for _, t := range h.Dialect().BMC.Accounts.Types {
		if t.Type == bmc.ForIPMI && may || t.Type != bmc.ForIPMI && a.Has(t.Type) {
			out = append(out, t.Type)
		}
	}
	return out
}

// changeUser changes a user's account and IPMI settings.
func (x *Request) changeUser(u user, c bmc.AccountChange, as *bmc.IPMIUser) error {
	_, err := x.applyBMC(bmc.SetUser{Account: u.Account, AccountChange: c, As: as})
	var wrong *bmc.FieldError
	if errors.As(err, &wrong) && wrong.Why == bmc.LastAdmin {
		return NotSupportedInState
	}
	return err
}

// setUserName handles Set User Name (§22.28). An empty name deletes the user.
// Names are unique, as Redfish demands.
func setUserName(x *Request) error {
	u, code := x.user(x.data[0])
	name, _, _ := bytes.Cut(x.data[1:], []byte{0})
	switch {
	case code != Completed:
		return code
	case u.Account == "" && len(name) == 0:
		return nil // the user had no name
	case u.Account == "":
		return InvalidDataField
	case u.Name == string(name):
		return nil
	}
	return x.changeUser(u, bmc.AccountChange{Name: new(string(name))}, nil)
}

// getUserName handles Get User Name (§22.29).
func getUserName(x *Request) error {
	u, code := x.user(x.data[0])
	if code != Completed {
		return code
	}
	var name [nameSize]byte
	copy(name[:], u.Name) // a longer name belongs to no IPMI user
	x.put(name[:]...)
	return nil
}

// Completion codes and operations of Set User Password (§22.30).
const (
	passwordMismatch     Code = 0x80
	passwordSizeMismatch Code = 0x81

	disableUser  = 0
	enableUser   = 1
	setPassword  = 2
	testPassword = 3
)

// setUserPassword handles Set User Password (§22.30). A password is text, as
// in Redfish, and must satisfy the password policy.
func setUserPassword(x *Request) error {
	long := x.data[0]&0x80 != 0
	size := shortPasswordSize
	if long {
		size = longPasswordSize
	}
	operation, password := x.data[1]&3, x.data[2:]
	u, code := x.user(x.data[0] & 0x7f)
	switch {
	case code != Completed:
		return code
	case x.data[1]&^3 != 0:
		return InvalidDataField
	case operation >= setPassword && len(password) != size,
		len(password) != 0 && len(password) != shortPasswordSize && len(password) != longPasswordSize:
		return DataLengthInvalid
	case u.Account == "" && operation == disableUser:
		return nil // already so
	case u.Account == "":
		return InvalidDataField
	case operation <= enableUser:
		on := operation == enableUser
		if on == u.Enabled || !u.hasAccount && u.Name == "" && !on {
			return nil
		}
		return x.changeUser(u, bmc.AccountChange{Enabled: &on}, nil)
	}
	text := bytes.TrimRight(password, "\x00")
	if operation == testPassword {
		return u.testPassword(text, long)
	}
	switch {
	case !utf8.Valid(text):
		return InvalidDataField
	case u.Name == "":
		return NotSupportedInState // a password needs a user name
	}
	as := u.IPMIUser
	as.LongPassword = long
	if !u.hasAccount && u.Role == "" {
		as.Limit = noAccess // until Set User Access sets a limit
	}
	return x.changeUser(u, bmc.AccountChange{Password: new(string(text))}, &as)
}

// longPassword reports whether the user's password is a 20-byte one: because it
// was set as one, or because of its length.
func (u *user) longPassword() bool {
	return u.LongPassword || len(u.account.Password) > shortPasswordSize
}

// testPassword compares a password with the user's.
func (u *user) testPassword(password []byte, long bool) error {
	switch {
	case !u.hasAccount:
		return passwordMismatch
	case long != u.longPassword():
		return passwordSizeMismatch
	case subtle.ConstantTimeCompare(password, []byte(u.account.Password)) != 1:
		return passwordMismatch
	}
	return nil
}

// setPayloadAccess handles Set User Payload Access (§24.6). SOL is the only
// payload.
func setPayloadAccess(x *Request) error {
	if !x.isLANChannel(x.data[0]) {
		return InvalidDataField
	}
	u, code := x.user(x.data[1] & userIDMask)
	operation := x.data[1] >> 6
	switch {
	case code != Completed:
		return code
	case u.Account == "" && operation == 1:
		return nil // no change
	case operation > 1 || x.data[2]&^solPayload != 0 || x.data[3]|x.data[4]|x.data[5] != 0 || u.Account == "":
		return InvalidDataField
	case x.data[2]&solPayload == 0:
		return nil
	}
	as := u.IPMIUser
	as.NoSOL = operation == 1
	return x.changeUser(u, bmc.AccountChange{}, &as)
}

// getPayloadAccess handles Get User Payload Access (§24.7).
func getPayloadAccess(x *Request) error {
	if !x.isLANChannel(x.data[0]) {
		return InvalidDataField
	}
	u, code := x.user(x.data[1])
	if code != Completed {
		return code
	}
	var standard byte
	if u.Account != "" && !u.NoSOL {
		standard = solPayload
	}
	x.put(standard, 0, 0, 0)
	return nil
}
