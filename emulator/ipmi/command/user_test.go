package command

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

func (h *host) applyBMCCommand(t *testing.T, c bmc.Command) {
	t.Helper()
	_, err := h.ApplyBMC(t.Context(), c)
	must(t, err)
}

// found returns the privilege limit with which a user can log in; 0: not at all.
func (h *host) found(name string) wire.Privilege {
	u, _ := authenticator{h.state}.User(name, 0, true)
	return u.Limit
}

// The requests are those that ipmitool sends for
//
//	user set name 6 lab
//	user set password 6 secret 20
//	user priv 6 4 1
//	user enable 6
func TestIPMIUserBecomesRedfishAccount(t *testing.T) {
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
		if code != Completed || len(got) != 0 {
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
		{"right", "86 03" + padded("secret", 20), Completed, ""},
		{"wrong", "86 03" + padded("secreT", 20), passwordMismatch, ""},
		{"of 16 bytes", "06 03" + padded("secret", 16), passwordSizeMismatch, ""},
	}.try(t, h, wire.App, 0x47)
	h.applyBMCCommand(t, bmc.ChangeAccount{ID: "5", AccountChange: bmc.AccountChange{Password: new("another")}})
	exchanges{
		{"of 20 bytes no longer", "86 03" + padded("another", 20), passwordSizeMismatch, ""},
		{"of 16 bytes", "06 03" + padded("another", 16), Completed, ""},
	}.try(t, h, wire.App, 0x47)
}

func TestRedfishAccountIsIPMIUser(t *testing.T) {
	h := newHost(t)
	h.applyBMCCommand(t, bmc.CreateAccount{AccountChange: bmc.AccountChange{
		Name: new("red"), Password: new("seventeen-bytes-x"), Role: new(bmc.Operator),
	}})
	exchanges{{"name", "06", Completed, padded("red", 16)}}.tryLoose(t, h, wire.App, 0x46)
	exchanges{{"access", "01 06", Completed, "10 44 01 13"}}.try(t, h, wire.App, 0x44)
	exchanges{
		{"longer than 16 bytes", "86 03" + padded("seventeen-bytes-x", 20), Completed, ""},
		{"of 16", "06 03" + padded("seventeen-bytes-", 16), passwordSizeMismatch, ""},
	}.try(t, h, wire.App, 0x47)
	h.applyBMCCommand(t, bmc.ChangeAccount{ID: "5", AccountChange: bmc.AccountChange{Types: &[]bmc.AccountType{bmc.ForRedfish}}})
	exchanges{{"without IPMI", "01 06", Completed, "10 44 01 03"}}.try(t, h, wire.App, 0x44)
	exchanges{{"with messages again", "91 06 03", Completed, ""}}.try(t, h, wire.App, 0x43)
	if a := h.account(t, "5"); !a.Has(bmc.ForIPMI) || a.Role != bmc.Operator {
		t.Errorf("account = %+v", a)
	}
	h.applyBMCCommand(t, bmc.RemoveAccount{ID: "5"})
	exchanges{{"gone", "06", Completed, padded("", 16)}}.tryLoose(t, h, wire.App, 0x46)
	exchanges{{"no access", "01 06", Completed, "10 83 01 0f"}}.try(t, h, wire.App, 0x44)
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
		{"nobody", "01 01", Completed, "10 83 01 0f"},
		{"administrator", "01 02", Completed, "10 43 01 14"},
		{"on the own channel", "0e 02", Completed, "10 43 01 14"},
		{"operator", "01 03", Completed, "10 43 01 13"},
		{"reader", "01 04", Completed, "10 43 01 12"},
		{"disabled", "01 05", Completed, "10 83 01 14"},
		{"free", "01 06", Completed, "10 83 01 0f"},
		{"last", "01 10", Completed, "10 83 01 0f"},
		{"none", "01 11", ParameterOutOfRange, ""},
		{"number 0", "01 00", InvalidDataField, ""},
		{"reserved bits", "01 42", InvalidDataField, ""},
		{"another channel", "02 02", InvalidDataField, ""},
		{"no LAN", "0f 02", InvalidDataField, ""},
	}.try(t, h, wire.App, 0x44)
	exchanges{
		{"callback", "01 04 01", Completed, ""},
		{"operator's limit is the administrator's", "01 03 04", Completed, ""},
		{"none for the disabled", "01 05 0f", Completed, ""},
		{"bits", "f1 03 04", Completed, ""},
		{"nobody", "01 01 04", InvalidDataField, ""},
		{"nobody's messages", "91 01 0f", InvalidDataField, ""},
		{"nobody stays so", "81 01 0f", Completed, ""},
		{"limit 0", "01 03 00", InvalidDataField, ""},
		{"limit 6", "01 03 06", InvalidDataField, ""},
		{"reserved bits", "01 03 14", InvalidDataField, ""},
		{"number of sessions", "01 03 04 01", InvalidDataField, ""},
		{"no number of sessions", "01 03 04 00", Completed, ""},
		{"another channel", "02 03 04", InvalidDataField, ""},
		{"none", "01 11 04", ParameterOutOfRange, ""},
		{"number 0", "01 00 04", InvalidDataField, ""},
	}.try(t, h, wire.App, 0x43)
	exchanges{
		{"callback", "01 04", Completed, "10 43 01 11"},
		{"bits", "01 03", Completed, "10 43 01 74"},
		{"none", "01 05", Completed, "10 83 01 1f"},
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
	h.applyBMCCommand(t, bmc.ChangeAccount{ID: "3", AccountChange: bmc.AccountChange{Role: new(bmc.Operator)}})
	exchanges{{"another role has its own limit", "01 04", Completed, "10 43 01 13"}}.try(t, h, wire.App, 0x44)
}

func TestLastAdministratorCannotBeRemoved(t *testing.T) {
	h := newHost(t)
	exchanges{{"disable", "02 00", NotSupportedInState, ""}}.try(t, h, wire.App, 0x47)
	exchanges{{"take the name", "02" + padded("", 16), NotSupportedInState, ""}}.try(t, h, wire.App, 0x45)
	exchanges{{"operator", "01 02 03", NotSupportedInState, ""}}.try(t, h, wire.App, 0x43)
	if h.found("admin") != wire.Administrator {
		t.Error("the last administrator is gone")
	}
}

func TestUserNames(t *testing.T) {
	h := newHost(t)
	exchanges{
		{"sixteen", "06" + padded("0123456789abcdef", 16), Completed, ""},
		{"the same", "06" + padded("0123456789abcdef", 16), Completed, ""},
		{"of another", "07" + padded("admin", 16), InvalidDataField, ""},
		{"of one without an account", "07" + padded("0123456789abcdef", 16), InvalidDataField, ""},
		{"with a colon", "07" + padded("a:b", 16), InvalidDataField, ""},
		{"nobody's", "01" + padded("root", 16), InvalidDataField, ""},
		{"nobody's is empty", "01" + padded("", 16), Completed, ""},
		{"number 0", "00" + padded("root", 16), InvalidDataField, ""},
		{"none", "11" + padded("root", 16), ParameterOutOfRange, ""},
		{"rename", "04" + padded("looker", 16), Completed, ""},
		{"remove", "05" + padded("", 16), Completed, ""},
		{"remove again", "05" + padded("", 16), Completed, ""},
	}.try(t, h, wire.App, 0x45)
	if a := h.account(t, "3"); a.Name != "looker" {
		t.Errorf("account 3 is %q", a.Name)
	}
	if a := h.account(t, "4"); a.ID != "" {
		t.Errorf("account 4 is still there: %+v", a)
	}
	exchanges{
		{"sixteen", "06", Completed, padded("0123456789abcdef", 16)},
		{"none", "01", Completed, padded("", 16)},
		{"number 0", "00", InvalidDataField, ""},
		{"too high", "11", ParameterOutOfRange, ""},
	}.tryLoose(t, h, wire.App, 0x46)
	// Redfish's next account does not take the place of a name.
	h.applyBMCCommand(t, bmc.CreateAccount{AccountChange: bmc.AccountChange{Name: new("red"), Password: new("red-secret")}})
	h.applyBMCCommand(t, bmc.CreateAccount{AccountChange: bmc.AccountChange{Name: new("blue"), Password: new("blue-secret")}})
	if a, b := h.account(t, "4"), h.account(t, "6"); a.Name != "red" || b.Name != "blue" {
		t.Errorf("accounts 4 and 6 are %q and %q", a.Name, b.Name)
	}
	if _, err := h.ApplyBMC(t.Context(), bmc.CreateAccount{AccountChange: bmc.AccountChange{
		Name: new("0123456789abcdef"), Password: new("secret"),
	}}); err == nil {
		t.Error("two users have the same name")
	}
	exchanges{{"take it away", "06" + padded("", 16), Completed, ""}}.try(t, h, wire.App, 0x45)
	if c := h.BMC().Channel; len(c.Users) != 0 {
		t.Errorf("what is kept of users = %+v, want nothing", c.Users)
	}
}

func TestUserPasswords(t *testing.T) {
	h := newHost(t)
	exchanges{
		{"set 16", "03 02" + padded("op-another-one", 16), Completed, ""},
		{"test", "03 03" + padded("op-another-one", 16), Completed, ""},
		{"test wrong", "03 03" + padded("op-another-on", 16), passwordMismatch, ""},
		{"test as 20", "83 03" + padded("op-another-one", 20), passwordSizeMismatch, ""},
		{"set 20", "83 02" + padded("exactly-twenty-bytes", 20), Completed, ""},
		{"test 20", "83 03" + padded("exactly-twenty-bytes", 20), Completed, ""},
		{"too short for the policy", "03 02" + padded("12345", 16), InvalidDataField, ""},
		{"not text", "03 02" + strings.Repeat(" ff", 16), InvalidDataField, ""},
		{"16 for 20", "83 02" + padded("op-another-one", 16), DataLengthInvalid, ""},
		{"20 for 16", "03 02" + padded("op-another-one", 20), DataLengthInvalid, ""},
		{"none", "03 02", DataLengthInvalid, ""},
		{"cut", "03 01 00", DataLengthInvalid, ""},
		{"disable", "03 00", Completed, ""},
		{"disabled already", "03 00" + padded("", 16), Completed, ""},
		{"enable", "83 01" + padded("", 20), Completed, ""},
		{"reserved operation bits", "03 04", InvalidDataField, ""},
		{"reserved user bit", "43 01", InvalidDataField, ""},
		{"number 0", "00 01", InvalidDataField, ""},
		{"too high", "11 01", ParameterOutOfRange, ""},
		{"nobody stays disabled", "01 00", Completed, ""},
		{"nobody", "01 01", InvalidDataField, ""},
		{"nobody's password", "01 02" + padded("secret", 16), InvalidDataField, ""},
		{"without a name", "06 02" + padded("secret", 16), NotSupportedInState, ""},
		{"test without a name", "06 03" + padded("secret", 16), passwordMismatch, ""},
	}.try(t, h, wire.App, 0x47)
	if a := h.account(t, "2"); a.Password != "exactly-twenty-bytes" || !a.Enabled {
		t.Errorf("account = %+v", a)
	}
}

func TestPayloadAccess(t *testing.T) {
	h := newHost(t)
	exchanges{
		{"as new", "01 02", Completed, "02 00 00 00"},
		{"nobody", "01 01", Completed, "00 00 00 00"},
		{"another channel", "02 02", InvalidDataField, ""},
		{"number 0", "01 00", InvalidDataField, ""},
		{"too high", "01 11", ParameterOutOfRange, ""},
	}.try(t, h, wire.App, 0x4d)
	exchanges{
		{"disable SOL", "01 42 02 00 00 00", Completed, ""},
		{"nothing", "01 03 00 00 00 00", Completed, ""},
		{"reserved payload", "01 03 04 00 00 00", InvalidDataField, ""},
		{"OEM payload", "01 03 02 00 01 00", InvalidDataField, ""},
		{"reserved operation", "01 83 02 00 00 00", InvalidDataField, ""},
		{"nobody", "01 01 02 00 00 00", InvalidDataField, ""},
		{"nobody stays so", "01 41 02 00 00 00", Completed, ""},
		{"another channel", "02 03 02 00 00 00", InvalidDataField, ""},
		{"too high", "01 11 02 00 00 00", ParameterOutOfRange, ""},
	}.try(t, h, wire.App, 0x4c)
	exchanges{{"disabled", "0e 02", Completed, "00 00 00 00"}, {"not this one", "01 03", Completed, "02 00 00 00"}}.try(t, h, wire.App, 0x4d)
	exchanges{{"enable SOL", "01 02 02 00 00 00", Completed, ""}}.try(t, h, wire.App, 0x4c)
	exchanges{{"enabled", "01 02", Completed, "02 00 00 00"}}.try(t, h, wire.App, 0x4d)
}
