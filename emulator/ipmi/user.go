package ipmi

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

var userCommands = []command{
	{fn: wire.App, cmd: 0x43, name: "Set User Access Command", needs: wire.Administrator, least: 3, most: 4, acts: true, run: setUserAccess},
	{fn: wire.App, cmd: 0x44, name: "Get User Access Command", needs: wire.Operator, least: 2, most: 2, run: getUserAccess},
	{fn: wire.App, cmd: 0x45, name: "Set User Name", needs: wire.Administrator, least: 17, most: 17, acts: true, run: setUserName},
	{fn: wire.App, cmd: 0x46, name: "Get User Name Command", needs: wire.Operator, least: 1, most: 1, run: getUserName},
	{fn: wire.App, cmd: 0x47, name: "Set User Password Command", needs: wire.Administrator, least: 2, most: 22, acts: true, run: setUserPassword},
	{fn: wire.App, cmd: 0x4c, name: "Set User Payload Access", needs: wire.Administrator, least: 6, most: 6, acts: true, run: setPayloadAccess},
	{fn: wire.App, cmd: 0x4d, name: "Get User Payload Access", needs: wire.Operator, least: 2, most: 2, run: getPayloadAccess},
}

const (
	anonymous    = 1    // user ID: it has no name, and here no access (§6.9)
	noAccess     = 0x0f // privilege limit
	nameSize     = 16
	shortSize    = 16 // of a password
	longSize     = 20
	unreserved   = 0x3f // of a byte with a user ID
	maxUsers     = 63
	solPayload   = 1 << 1 // standard payload 1
	enabledUser  = 1 << 6
	disabledUser = 2 << 6
	mayMessage   = 1 << 4
	mayLink      = 1 << 5
	onlyCallback = 1 << 6
	changesBits  = 1 << 7
)

// user is one that has an ID: what there is of its account and beside.
type user struct {
	bmc.User
	id      byte
	account bmc.Account // zero: it has none
	has     bool        // an account
}

// accountID is the ID of the account that a user has, or will have; "" when it
// cannot have any.
func accountID(h Host, id byte) string {
	n := int(id) + 1 - int(h.Dialect().IPMI.FirstUser)
	spec := &h.Dialect().BMC.Accounts
	if id == anonymous || n < 1 || spec.Most > 0 && n > spec.Most || slices.Contains(spec.Reserved, strconv.Itoa(n)) {
		return ""
	}
	return strconv.Itoa(n)
}

// users is the highest user ID.
func users(h Host) byte {
	n := h.Dialect().BMC.Accounts.Most
	if n == 0 {
		n = maxUsers
	}
	return byte(min(n-1+int(h.Dialect().IPMI.FirstUser), maxUsers))
}

// user is that with an ID.
func (x *exchange) user(id byte) (user, Code) {
	switch {
	case id&^unreserved != 0 || id == 0:
		return user{}, BadField
	case id > users(x.host):
		return user{}, OutOfRange
	}
	u := user{id: id}
	account := accountID(x.host, id)
	u.User = bmc.User{Account: account}
	if account == "" {
		return u, Done
	}
	u.User = x.bmc().Channel.User(account)
	all := x.host.Accounts()
	if i := slices.IndexFunc(all, func(a bmc.Account) bool { return a.ID == account }); i >= 0 {
		u.account, u.has = all[i], true
		u.Name, u.Enabled, u.Role = u.account.Name, u.account.Enabled, u.account.Role
	}
	return u, Done
}

// limit is the privilege limit that the user has on the channel.
func (u *user) limit(v *bmc.View) wire.Privilege {
	switch {
	case u.Limit != 0:
		return wire.Privilege(u.Limit)
	case u.Role != "":
		return limitOf(v.Access, u.Role)
	}
	return noAccess
}

// messages says whether the user may send commands.
func (u *user) messages() bool { return u.has && u.account.Has(bmc.ForIPMI) || !u.has && u.Name != "" }

// enabledUsers counts the users that are.
func (x *exchange) enabledUsers() byte {
	n := byte(0)
	for id := byte(1); id <= users(x.host); id++ {
		if u, _ := x.user(id); u.Enabled && u.Name != "" {
			n++
		}
	}
	return n
}

// getUserAccess is §22.27.
func getUserAccess(x *exchange) error {
	if !x.lan(x.data[0]) {
		return BadField
	}
	u, code := x.user(x.data[1])
	if code != Done {
		return code
	}
	state, access := byte(disabledUser), byte(u.limit(x.bmc()))
	if u.Enabled {
		state = enabledUser
	}
	if u.messages() {
		access |= mayMessage
	}
	if u.Link {
		access |= mayLink
	}
	if u.Callback {
		access |= onlyCallback
	}
	const fixedNames = 1 // that of user 1
	x.put(users(x.host), state|x.enabledUsers(), fixedNames, access)
	return nil
}

// levels are the roles that privilege limits make. A user without access keeps
// the role that it has, which counts for other protocols.
var levels = map[wire.Privilege]struct {
	role  bmc.Role
	limit byte // that the role does not stand for
}{
	wire.Callback:      {bmc.ReadOnly, byte(wire.Callback)},
	wire.User:          {role: bmc.ReadOnly},
	wire.Operator:      {role: bmc.Operator},
	wire.Administrator: {role: bmc.Administrator},
	wire.OEMPrivilege:  {bmc.Administrator, byte(wire.OEMPrivilege)},
	noAccess:           {limit: noAccess},
}

// setUserAccess is §22.26. It unlocks a user that wrong passwords have locked
// out (table 23-4, parameter 26).
func setUserAccess(x *exchange) error {
	if !x.lan(x.data[0] & 0x0f) {
		return BadField
	}
	u, code := x.user(x.data[1])
	level, known := levels[wire.Privilege(x.data[2])]
	switch {
	case code != Done:
		return code
	case u.Account == "" && level.limit == noAccess && x.data[0]&(mayMessage|mayLink|onlyCallback) == 0:
		return nil // as it is
	case u.Account == "" || !known:
		return BadField
	case len(x.data) > 3 && x.data[3] != 0:
		return BadField // the number of a user's sessions has no limit of its own
	}
	as, change := u.User, bmc.AccountChange{Unlock: u.has, Role: &level.role}
	as.Limit = level.limit
	same := level.limit == 0 && u.Role != "" && limitOf(x.bmc().Access, u.Role) == roles[level.role]
	if same || level.role == "" || level.role == u.Role {
		change.Role = nil // a role that somebody has made may be as good
	}
	if x.data[0]&changesBits != 0 {
		as.Callback, as.Link = x.data[0]&onlyCallback != 0, x.data[0]&mayLink != 0
		may := x.data[0]&mayMessage != 0
		if u.has && may != u.messages() {
			change.Types = new(withIPMI(x.host, &u.account, may))
		}
	}
	return x.setUser(u, change, &as)
}

// withIPMI is what an account may use, with IPMI or without.
func withIPMI(h Host, a *bmc.Account, may bool) []bmc.AccountType {
	out := []bmc.AccountType{}
	for _, t := range h.Dialect().BMC.Accounts.Types {
		if t.Type == bmc.ForIPMI && may || t.Type != bmc.ForIPMI && a.Has(t.Type) {
			out = append(out, t.Type)
		}
	}
	return out
}

// setUser changes a user.
func (x *exchange) setUser(u user, c bmc.AccountChange, as *bmc.User) error {
	_, err := x.tell(bmc.SetUser{Account: u.Account, AccountChange: c, As: as})
	var wrong *bmc.FieldError
	if errors.As(err, &wrong) && wrong.Why == bmc.LastAdmin {
		return WrongState
	}
	return err
}

// setUserName is §22.28. An empty name takes a user away. No two have the same
// name, which Redfish demands.
func setUserName(x *exchange) error {
	u, code := x.user(x.data[0])
	name, _, _ := bytes.Cut(x.data[1:], []byte{0})
	switch {
	case code != Done:
		return code
	case u.Account == "" && len(name) == 0:
		return nil // it has none
	case u.Account == "":
		return BadField
	case u.Name == string(name):
		return nil
	}
	return x.setUser(u, bmc.AccountChange{Name: new(string(name))}, nil)
}

// getUserName is §22.29.
func getUserName(x *exchange) error {
	u, code := x.user(x.data[0])
	if code != Done {
		return code
	}
	var name [nameSize]byte
	copy(name[:], u.Name) // one that is longer is none of a user of IPMI
	x.put(name[:]...)
	return nil
}

// Of Set User Password (§22.30).
const (
	wrongPassword Code = 0x80
	wrongSize     Code = 0x81

	disableUser  = 0
	enableUser   = 1
	setPassword  = 2
	testPassword = 3
)

// setUserPassword is §22.30. A password is text, as Redfish takes it, and must
// be as the policy for all accounts says.
func setUserPassword(x *exchange) error {
	long := x.data[0]&0x80 != 0
	size := shortSize
	if long {
		size = longSize
	}
	operation, password := x.data[1]&3, x.data[2:]
	u, code := x.user(x.data[0] & 0x7f)
	switch {
	case code != Done:
		return code
	case x.data[1]&^3 != 0:
		return BadField
	case operation >= setPassword && len(password) != size,
		len(password) != 0 && len(password) != shortSize && len(password) != longSize:
		return BadLength
	case u.Account == "" && operation == disableUser:
		return nil // it is
	case u.Account == "":
		return BadField
	case operation <= enableUser:
		on := operation == enableUser
		if on == u.Enabled || !u.has && u.Name == "" && !on {
			return nil
		}
		return x.setUser(u, bmc.AccountChange{Enabled: &on}, nil)
	}
	text := bytes.TrimRight(password, "\x00")
	if operation == testPassword {
		return u.test(text, long)
	}
	switch {
	case !utf8.Valid(text):
		return BadField
	case u.Name == "":
		return WrongState // a password without a name is nobody's
	}
	as := u.User
	as.Long = long
	if !u.has && u.Role == "" {
		as.Limit = noAccess // until somebody says which
	}
	return x.setUser(u, bmc.AccountChange{Password: new(string(text))}, &as)
}

// long says whether the user's password is one of 20 bytes: as it was given, or
// because it is that long.
func (u *user) long() bool { return u.Long || len(u.account.Password) > shortSize }

// test compares a password with the user's.
func (u *user) test(password []byte, long bool) error {
	switch {
	case !u.has:
		return wrongPassword
	case long != u.long():
		return wrongSize
	case subtle.ConstantTimeCompare(password, []byte(u.account.Password)) != 1:
		return wrongPassword
	}
	return nil
}

// setPayloadAccess is §24.6. Serial over LAN is the only payload.
func setPayloadAccess(x *exchange) error {
	if !x.lan(x.data[0]) {
		return BadField
	}
	u, code := x.user(x.data[1] & unreserved)
	operation := x.data[1] >> 6
	switch {
	case code != Done:
		return code
	case u.Account == "" && operation == 1:
		return nil // as it is
	case operation > 1 || x.data[2]&^solPayload != 0 || x.data[3]|x.data[4]|x.data[5] != 0 || u.Account == "":
		return BadField
	case x.data[2]&solPayload == 0:
		return nil
	}
	as := u.User
	as.NoSOL = operation == 1
	return x.setUser(u, bmc.AccountChange{}, &as)
}

// getPayloadAccess is §24.7.
func getPayloadAccess(x *exchange) error {
	if !x.lan(x.data[0]) {
		return BadField
	}
	u, code := x.user(x.data[1])
	if code != Done {
		return code
	}
	var standard byte
	if u.Account != "" && !u.NoSOL {
		standard = solPayload
	}
	x.put(standard, 0, 0, 0)
	return nil
}
