package ipmi

import (
	"encoding/hex"
	"strings"
	"testing"

	"github.com/metalab-dev/metalab/emulator/bmc"
	"github.com/metalab-dev/metalab/emulator/ipmi/wire"
)

// padded is a text as bytes of a size, in hex.
func padded(text string, size int) string {
	b := make([]byte, size)
	copy(b, text)
	return " " + hex.EncodeToString(b)
}

func (h *host) account(t *testing.T, id string) bmc.Account {
	t.Helper()
	for _, a := range h.Accounts() {
		if a.ID == id {
			return a
		}
	}
	return bmc.Account{}
}

func (h *host) tell(t *testing.T, c bmc.Command) {
	t.Helper()
	_, err := h.ApplyBMC(t.Context(), c)
	must(t, err)
}

// found says with which limit somebody can log in; 0: not at all.
func (h *host) found(name string) wire.Privilege {
	u, _ := h.service.side(h).realm.User(name, 0, true)
	return u.Limit
}

// This is what ipmitool sends for
//
//	user set name 6 lab
//	user set password 6 secret 20
//	user priv 6 4 1
//	user enable 6
func TestUserThatIPMIMakesIsAnAccount(t *testing.T) {
	h := newHost(t)
	steps := []struct {
		name string
		cmd  byte
		data string
		has  bool
		in   wire.Privilege
	}{
		{"name", 0x45, "06" + padded("lab", 16), false, 0},
		{"password", 0x47, "86 02" + padded("secret", 20), true, 0},
		{"privilege", 0x43, "01 06 04 00", true, 0},
		{"enable", 0x47, "06 01" + padded("", 16), true, wire.Administrator},
	}
	for _, s := range steps {
		code, got := ask(t, h, wire.App, s.cmd, unhex(t, s.data)...)
		if code != Done || len(got) != 0 {
			t.Fatalf("%s = %v [% x]", s.name, code, got)
		}
		if a := h.account(t, "5"); (a.ID != "") != s.has {
			t.Errorf("%s: account = %+v", s.name, a)
		}
		if in := h.found("lab"); in != s.in {
			t.Errorf("%s: lab logs in with %d, want %d", s.name, in, s.in)
		}
	}
	a := h.account(t, "5")
	if a.Name != "lab" || a.Password != "secret" || a.Role != bmc.Administrator || !a.Enabled || !a.Has(bmc.ForRedfish) {
		t.Errorf("account = %+v", a)
	}
	exchanges{
		{"right", "86 03" + padded("secret", 20), Done, ""},
		{"wrong", "86 03" + padded("secreT", 20), wrongPassword, ""},
		{"of 16 bytes", "06 03" + padded("secret", 16), wrongSize, ""},
	}.try(t, h, wire.App, 0x47)
	h.tell(t, bmc.ChangeAccount{ID: "5", AccountChange: bmc.AccountChange{Password: new("another")}})
	exchanges{
		{"of 20 bytes no longer", "86 03" + padded("another", 20), wrongSize, ""},
		{"of 16 bytes", "06 03" + padded("another", 16), Done, ""},
	}.try(t, h, wire.App, 0x47)
}

func TestUserOfRedfishIsOneOfIPMI(t *testing.T) {
	h := newHost(t)
	h.tell(t, bmc.CreateAccount{AccountChange: bmc.AccountChange{
		Name: new("red"), Password: new("seventeen-bytes-x"), Role: new(bmc.Operator),
	}})
	exchanges{{"name", "06", Done, padded("red", 16)}}.tryLoose(t, h, wire.App, 0x46)
	exchanges{{"access", "01 06", Done, "10 44 01 13"}}.try(t, h, wire.App, 0x44)
	exchanges{
		{"longer than 16 bytes", "86 03" + padded("seventeen-bytes-x", 20), Done, ""},
		{"of 16", "06 03" + padded("seventeen-bytes-", 16), wrongSize, ""},
	}.try(t, h, wire.App, 0x47)
	h.tell(t, bmc.ChangeAccount{ID: "5", AccountChange: bmc.AccountChange{Types: &[]bmc.AccountType{bmc.ForRedfish}}})
	exchanges{{"without IPMI", "01 06", Done, "10 44 01 03"}}.try(t, h, wire.App, 0x44)
	exchanges{{"with messages again", "91 06 03", Done, ""}}.try(t, h, wire.App, 0x43)
	if a := h.account(t, "5"); !a.Has(bmc.ForIPMI) || a.Role != bmc.Operator {
		t.Errorf("account = %+v", a)
	}
	h.tell(t, bmc.RemoveAccount{ID: "5"})
	exchanges{{"gone", "06", Done, padded("", 16)}}.tryLoose(t, h, wire.App, 0x46)
	exchanges{{"no access", "01 06", Done, "10 83 01 0f"}}.try(t, h, wire.App, 0x44)
}

// tryLoose is try with answers that are written without blanks.
func (all exchanges) tryLoose(t *testing.T, h *host, fn wire.NetFn, cmd byte) {
	t.Helper()
	for i := range all {
		all[i].want = tohex(unhex(t, all[i].want))
	}
	all.try(t, h, fn, cmd)
}

func TestUserAccess(t *testing.T) {
	h := newHost(t)
	exchanges{
		{"nobody", "01 01", Done, "10 83 01 0f"},
		{"administrator", "01 02", Done, "10 43 01 14"},
		{"on the own channel", "0e 02", Done, "10 43 01 14"},
		{"operator", "01 03", Done, "10 43 01 13"},
		{"reader", "01 04", Done, "10 43 01 12"},
		{"disabled", "01 05", Done, "10 83 01 14"},
		{"free", "01 06", Done, "10 83 01 0f"},
		{"last", "01 10", Done, "10 83 01 0f"},
		{"none", "01 11", OutOfRange, ""},
		{"number 0", "01 00", BadField, ""},
		{"reserved bits", "01 42", BadField, ""},
		{"another channel", "02 02", BadField, ""},
		{"no LAN", "0f 02", BadField, ""},
	}.try(t, h, wire.App, 0x44)
	exchanges{
		{"callback", "01 04 01", Done, ""},
		{"operator's limit is the administrator's", "01 03 04", Done, ""},
		{"none for the disabled", "01 05 0f", Done, ""},
		{"bits", "f1 03 04", Done, ""},
		{"nobody", "01 01 04", BadField, ""},
		{"nobody's messages", "91 01 0f", BadField, ""},
		{"nobody stays so", "81 01 0f", Done, ""},
		{"limit 0", "01 03 00", BadField, ""},
		{"limit 6", "01 03 06", BadField, ""},
		{"reserved bits", "01 03 14", BadField, ""},
		{"number of sessions", "01 03 04 01", BadField, ""},
		{"no number of sessions", "01 03 04 00", Done, ""},
		{"another channel", "02 03 04", BadField, ""},
		{"none", "01 11 04", OutOfRange, ""},
		{"number 0", "01 00 04", BadField, ""},
	}.try(t, h, wire.App, 0x43)
	exchanges{
		{"callback", "01 04", Done, "10 43 01 11"},
		{"bits", "01 03", Done, "10 43 01 74"},
		{"none", "01 05", Done, "10 83 01 1f"},
	}.try(t, h, wire.App, 0x44)
	if a := h.account(t, "2"); a.Role != bmc.Administrator {
		t.Errorf("operator has role %s", a.Role)
	}
	if a := h.account(t, "3"); a.Role != bmc.ReadOnly {
		t.Errorf("reader has role %s", a.Role)
	}
	if a := h.account(t, "4"); a.Role != bmc.Administrator {
		t.Errorf("who has no access has lost role %s", a.Role)
	}
	for name, want := range map[string]wire.Privilege{"admin": wire.Administrator, "operator": wire.Callback, "reader": wire.Callback, "gone": 0} {
		if got := h.found(name); got != want {
			t.Errorf("%s logs in with %d, want %d", name, got, want)
		}
	}
	h.tell(t, bmc.ChangeAccount{ID: "3", AccountChange: bmc.AccountChange{Role: new(bmc.Operator)}})
	exchanges{{"another role has its own limit", "01 04", Done, "10 43 01 13"}}.try(t, h, wire.App, 0x44)
}

func TestLastAdministratorStays(t *testing.T) {
	h := newHost(t)
	exchanges{{"disable", "02 00", WrongState, ""}}.try(t, h, wire.App, 0x47)
	exchanges{{"take the name", "02" + padded("", 16), WrongState, ""}}.try(t, h, wire.App, 0x45)
	exchanges{{"operator", "01 02 03", WrongState, ""}}.try(t, h, wire.App, 0x43)
	if h.found("admin") != wire.Administrator {
		t.Error("the last administrator is gone")
	}
}

func TestUserNames(t *testing.T) {
	h := newHost(t)
	exchanges{
		{"sixteen", "06" + padded("0123456789abcdef", 16), Done, ""},
		{"the same", "06" + padded("0123456789abcdef", 16), Done, ""},
		{"of another", "07" + padded("admin", 16), BadField, ""},
		{"of one without an account", "07" + padded("0123456789abcdef", 16), BadField, ""},
		{"with a colon", "07" + padded("a:b", 16), BadField, ""},
		{"nobody's", "01" + padded("root", 16), BadField, ""},
		{"nobody's is empty", "01" + padded("", 16), Done, ""},
		{"number 0", "00" + padded("root", 16), BadField, ""},
		{"none", "11" + padded("root", 16), OutOfRange, ""},
		{"rename", "04" + padded("looker", 16), Done, ""},
		{"remove", "05" + padded("", 16), Done, ""},
		{"remove again", "05" + padded("", 16), Done, ""},
	}.try(t, h, wire.App, 0x45)
	if a := h.account(t, "3"); a.Name != "looker" {
		t.Errorf("account 3 is %q", a.Name)
	}
	if a := h.account(t, "4"); a.ID != "" {
		t.Errorf("account 4 is still there: %+v", a)
	}
	exchanges{
		{"sixteen", "06", Done, padded("0123456789abcdef", 16)},
		{"none", "01", Done, padded("", 16)},
		{"number 0", "00", BadField, ""},
		{"too high", "11", OutOfRange, ""},
	}.tryLoose(t, h, wire.App, 0x46)
	// Redfish's next account does not take the place of a name.
	h.tell(t, bmc.CreateAccount{AccountChange: bmc.AccountChange{Name: new("red"), Password: new("red-secret")}})
	h.tell(t, bmc.CreateAccount{AccountChange: bmc.AccountChange{Name: new("blue"), Password: new("blue-secret")}})
	if a, b := h.account(t, "4"), h.account(t, "6"); a.Name != "red" || b.Name != "blue" {
		t.Errorf("accounts 4 and 6 are %q and %q", a.Name, b.Name)
	}
	if _, err := h.ApplyBMC(t.Context(), bmc.CreateAccount{AccountChange: bmc.AccountChange{
		Name: new("0123456789abcdef"), Password: new("secret"),
	}}); err == nil {
		t.Error("two users have the same name")
	}
	exchanges{{"take it away", "06" + padded("", 16), Done, ""}}.try(t, h, wire.App, 0x45)
	if c := h.BMC().Channel; len(c.Users) != 0 {
		t.Errorf("what is kept of users = %+v, want nothing", c.Users)
	}
}

func TestUserPasswords(t *testing.T) {
	h := newHost(t)
	exchanges{
		{"set 16", "03 02" + padded("op-another-one", 16), Done, ""},
		{"test", "03 03" + padded("op-another-one", 16), Done, ""},
		{"test wrong", "03 03" + padded("op-another-on", 16), wrongPassword, ""},
		{"test as 20", "83 03" + padded("op-another-one", 20), wrongSize, ""},
		{"set 20", "83 02" + padded("exactly-twenty-bytes", 20), Done, ""},
		{"test 20", "83 03" + padded("exactly-twenty-bytes", 20), Done, ""},
		{"too short for the policy", "03 02" + padded("12345", 16), BadField, ""},
		{"not text", "03 02" + strings.Repeat(" ff", 16), BadField, ""},
		{"16 for 20", "83 02" + padded("op-another-one", 16), BadLength, ""},
		{"20 for 16", "03 02" + padded("op-another-one", 20), BadLength, ""},
		{"none", "03 02", BadLength, ""},
		{"cut", "03 01 00", BadLength, ""},
		{"disable", "03 00", Done, ""},
		{"disabled already", "03 00" + padded("", 16), Done, ""},
		{"enable", "83 01" + padded("", 20), Done, ""},
		{"reserved operation bits", "03 04", BadField, ""},
		{"reserved user bit", "43 01", BadField, ""},
		{"number 0", "00 01", BadField, ""},
		{"too high", "11 01", OutOfRange, ""},
		{"nobody stays disabled", "01 00", Done, ""},
		{"nobody", "01 01", BadField, ""},
		{"nobody's password", "01 02" + padded("secret", 16), BadField, ""},
		{"without a name", "06 02" + padded("secret", 16), WrongState, ""},
		{"test without a name", "06 03" + padded("secret", 16), wrongPassword, ""},
	}.try(t, h, wire.App, 0x47)
	if a := h.account(t, "2"); a.Password != "exactly-twenty-bytes" || !a.Enabled {
		t.Errorf("account = %+v", a)
	}
}

func TestPayloadAccess(t *testing.T) {
	h := newHost(t)
	exchanges{
		{"as new", "01 02", Done, "02 00 00 00"},
		{"nobody", "01 01", Done, "00 00 00 00"},
		{"another channel", "02 02", BadField, ""},
		{"number 0", "01 00", BadField, ""},
		{"too high", "01 11", OutOfRange, ""},
	}.try(t, h, wire.App, 0x4d)
	exchanges{
		{"disable SOL", "01 42 02 00 00 00", Done, ""},
		{"nothing", "01 03 00 00 00 00", Done, ""},
		{"reserved payload", "01 03 04 00 00 00", BadField, ""},
		{"OEM payload", "01 03 02 00 01 00", BadField, ""},
		{"reserved operation", "01 83 02 00 00 00", BadField, ""},
		{"nobody", "01 01 02 00 00 00", BadField, ""},
		{"nobody stays so", "01 41 02 00 00 00", Done, ""},
		{"another channel", "02 03 02 00 00 00", BadField, ""},
		{"too high", "01 11 02 00 00 00", OutOfRange, ""},
	}.try(t, h, wire.App, 0x4c)
	exchanges{{"disabled", "0e 02", Done, "00 00 00 00"}, {"not this one", "01 03", Done, "02 00 00 00"}}.try(t, h, wire.App, 0x4d)
	exchanges{{"enable SOL", "01 02 02 00 00 00", Done, ""}}.try(t, h, wire.App, 0x4c)
	exchanges{{"enabled", "01 02", Done, "02 00 00 00"}}.try(t, h, wire.App, 0x4d)
}
