package bmc

import (
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/metalab-dev/metalab/emulator/machine/event"
)

// guarded is a kind of BMC that looks after its accounts.
func guarded() *Spec {
	s := *spec
	s.Audit = LogSpec{Size: 50, Full: Wraps}
	s.Accounts = AccountSpec{
		Most: 4, NameMax: 20, NameNot: "!:",
		Types: []TypeSpec{{Type: ForRedfish}, {Type: ForIPMI, Name: 16, Password: 20}},
		Policy: Policy{
			MinPassword: 4, MaxPassword: 30, LockoutThreshold: 3, LockoutDuration: 5 * time.Minute, LockoutCounterResetAfter: time.Minute, FailureLogThreshold: 2,
			AbsoluteSessionTimeout: time.Hour,
		},
	}
	return &s
}

func newGuarded() *BMC { return New(guarded(), []Account{admin, gone}, nil) }

func try(b *BMC, now time.Time, name, password string) LoginResult {
	b.Advance(now)
	v := b.Login(Credentials{Name: name, Password: password, To: ForRedfish, From: "192.0.2.1"})
	if v.Record != nil {
		if _, err := b.Apply(now, v.Record); err != nil {
			panic(err)
		}
	}
	return v
}

func kinds(b *BMC) []event.Kind {
	var out []event.Kind
	for e := range b.View().Audit.Entries() {
		out = append(out, e.Kind)
	}
	return out
}

func TestLogin(t *testing.T) {
	b := newGuarded()
	v := try(b, origin, "admin", "secret")
	want := admin
	want.Password = ""
	if d := cmp.Diff(LoginResult{Account: want, OK: true}, v); d != "" {
		t.Errorf("Login(admin, secret) (-want +got):\n%s", d)
	}
	for _, in := range [][2]string{{"admin", "Secret"}, {"admin", ""}, {"Admin", "secret"}, {"gone", "secret"}, {"", ""}} {
		if v := try(newGuarded(), origin, in[0], in[1]); v.OK || v.Account.ID != "" {
			t.Errorf("Login(%q, %q) = %+v, want none", in[0], in[1], v)
		}
	}
}

func TestLoginIsForAService(t *testing.T) {
	b := newGuarded()
	do(t, b, origin, ChangeAccount{ID: "1", AccountChange: AccountChange{Types: &[]AccountType{ForRedfish}}})
	for to, want := range map[AccountType]bool{ForRedfish: true, ForIPMI: false} {
		if v := b.Login(Credentials{Name: "admin", Password: "secret", To: to}); v.OK != want {
			t.Errorf("login to %s = %t, want %t", to, v.OK, want)
		}
	}
}

func TestFailedLoginsLockTheAccountForATime(t *testing.T) {
	b := newGuarded()
	at := origin
	for range 2 {
		try(b, at, "admin", "wrong")
		at = at.Add(59 * time.Second)
	}
	try(b, at, "admin", "wrong")
	if !b.View().LoginFailures.Locked("1") {
		t.Fatal("the account is not locked after 3 failures")
	}
	if try(b, at, "admin", "secret").OK {
		t.Error("a locked account logs in")
	}
	due, ok := b.ClientDeadline()
	if !ok || !due.Equal(at.Add(5*time.Minute)) {
		t.Errorf("ClientDeadline() = %v, %t, want the end of the lock", due, ok)
	}
	b.Advance(due)
	if b.View().LoginFailures.Locked("1") || !try(b, due, "admin", "secret").OK {
		t.Error("the lock has not expired")
	}
	want := []event.Kind{event.LoginFailed, event.AccountLocked, event.LoginFailed, event.LockExpired}
	if d := cmp.Diff(want, kinds(b)); d != "" {
		t.Errorf("notes (-want +got):\n%s", d)
	}
}

func TestFailureCountResets(t *testing.T) {
	for _, tt := range []struct {
		name   string
		policy func(*Policy)
		calm   time.Duration // between the second failure and the next step
		login  bool          // instead of the calm, a login that succeeds
		locked bool          // after one failure more
	}{
		{"at once", func(*Policy) {}, 0, false, true},
		{"in time", func(*Policy) {}, 59 * time.Second, false, true},
		{"by time", func(*Policy) {}, time.Minute, false, false},
		{"by a login", func(*Policy) {}, 0, true, false},
		{"not at all", func(p *Policy) { p.LockForever = true }, 24 * time.Hour, false, true},
		{"never locked", func(p *Policy) { p.LockoutThreshold = 0 }, 0, false, false},
		{"for no time", func(p *Policy) { p.LockoutDuration, p.LockoutCounterResetAfter = 0, 0 }, 0, false, false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			b := newGuarded()
			p := *b.policy()
			tt.policy(&p)
			do(t, b, origin, SetPolicy{p})
			try(b, origin, "admin", "wrong")
			try(b, origin, "admin", "wrong")
			if tt.login && !try(b, origin, "admin", "secret").OK {
				t.Fatal("the login failed")
			}
			try(b, origin.Add(tt.calm), "admin", "wrong")
			if got := b.View().LoginFailures.Locked("1"); got != tt.locked {
				t.Errorf("locked = %t, want %t", got, tt.locked)
			}
			if _, ends := b.ClientDeadline(); ends && p.LockForever {
				t.Error("a lock for ever has an end")
			}
		})
	}
}

func TestAnAdministratorUnlocks(t *testing.T) {
	b := newGuarded()
	do(t, b, origin, ChangeAccount{ID: "2", AccountChange: AccountChange{Enabled: new(true)}})
	for range 3 {
		try(b, origin, "gone", "wrong")
	}
	do(t, b, origin, ChangeAccount{ID: "2", AccountChange: AccountChange{Unlock: true}})
	if b.View().LoginFailures.Locked("2") || !try(b, origin, "gone", "secret").OK {
		t.Error("the account is still locked")
	}
}

func TestFailedLoginsDoNotRewriteAccounts(t *testing.T) {
	b := newGuarded()
	before := b.State().Access
	try(b, origin, "admin", "wrong")
	try(b, origin, "nobody", "wrong")
	if b.State().Access != before {
		t.Error("a failed login made the accounts a new part")
	}
}

func TestCreateAndRemoveAccounts(t *testing.T) {
	b := newGuarded()
	create := CreateAccount{AccountChange: AccountChange{Name: new("new"), Password: new("pass"), Role: new(Operator)}}
	evs := do(t, b, origin, create)
	if made := evs[1].(AccountCreated); made.ID != "3" {
		t.Errorf("the new account has the ID %s, want 3", made.ID)
	}
	if v := try(b, origin, "new", "pass"); !v.OK || v.Account.Role != Operator {
		t.Errorf("the new account logs in as %+v", v)
	}
	do(t, b, origin, OpenSession{Account: Account{ID: "3"}, Token: "t"})
	do(t, b, origin, RemoveAccount{"3"})
	if _, ok := b.Resume(origin, "t"); ok || try(b, origin, "new", "pass").OK {
		t.Error("the account is gone, but not its sessions or its login")
	}
	refused(t, b, origin, RemoveAccount{"3"}, ErrNotFound)
	do(t, b, origin, create)
	do(t, b, origin, CreateAccount{AccountChange: AccountChange{Name: new("other"), Password: new("pass")}})
	refused(t, b, origin, CreateAccount{AccountChange: AccountChange{Name: new("more"), Password: new("pass")}}, ErrFull)
}

// An account gets the ID that is asked for, if it is free and a number up to Most.
func TestCreateAccountAtAnID(t *testing.T) {
	b := newGuarded()
	b.spec.Accounts.Most = 5
	at := func(id string) CreateAccount {
		return CreateAccount{ID: id, AccountChange: AccountChange{Name: new("n" + id), Password: new("pass")}}
	}
	if made := do(t, b, origin, at("4"))[1].(AccountCreated); made.ID != "4" {
		t.Errorf("the new account has the ID %s, want 4", made.ID)
	}
	for id, why := range map[string]Reason{"4": Taken, "1": Taken, "0": NoSuch, "99": NoSuch, "04": NoSuch, "x": NoSuch} {
		_, err := b.Apply(origin, at(id))
		if wrong := (*FieldError)(nil); !errors.As(err, &wrong) || *wrong != (FieldError{FieldID, why}) {
			t.Errorf("an account at %q: %v, want %s %s", id, err, FieldID, why)
		}
	}
}

func TestAccountErrors(t *testing.T) {
	long := strings.Repeat("x", 21)
	for _, tt := range []struct {
		name   string
		change AccountChange
		want   FieldError
	}{
		{"no name", AccountChange{Name: new("")}, FieldError{FieldName, BadForm}},
		{"bad name", AccountChange{Name: new("no!")}, FieldError{FieldName, BadForm}},
		{"name of two words", AccountChange{Name: new("a b")}, FieldError{FieldName, BadForm}},
		{"name that is no ASCII", AccountChange{Name: new("é")}, FieldError{FieldName, BadForm}},
		{"long name", AccountChange{Name: new(strings.Repeat("x", 21))}, FieldError{FieldName, BadForm}},
		{"name of another", AccountChange{Name: new("admin")}, FieldError{FieldName, Taken}},
		{"short password", AccountChange{Password: new("abc")}, FieldError{FieldPassword, BadLength}},
		{"long password", AccountChange{Password: new(strings.Repeat("x", 31))}, FieldError{FieldPassword, BadLength}},
		{"no role", AccountChange{Role: new(Role("Nobody"))}, FieldError{FieldRole, NoSuch}},
		{"no type", AccountChange{Types: &[]AccountType{"Fax"}}, FieldError{FieldTypes, NoSuch}},
		{"password that IPMI cannot carry", AccountChange{Password: &long}, FieldError{FieldPassword, NoFit}},
		{"types that the password does not fit", AccountChange{Password: &long, Types: &[]AccountType{ForIPMI}}, FieldError{FieldTypes, NoFit}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			b := newGuarded()
			before := b.State()
			_, err := b.Apply(origin, ChangeAccount{ID: "2", AccountChange: tt.change})
			var got *FieldError
			if !errors.As(err, &got) || *got != tt.want {
				t.Errorf("error = %v, want %v", err, &tt.want)
			}
			if b.State() != before {
				t.Error("what was refused changed something")
			}
		})
	}
	b := newGuarded()
	do(t, b, origin, ChangeAccount{ID: "2", AccountChange: AccountChange{Password: &long, Types: &[]AccountType{ForRedfish}}})
	do(t, b, origin, CreateAccount{AccountChange: AccountChange{Name: new("long"), Password: &long}})
	if a, _ := b.View().Account("3"); !cmp.Equal(a.Types, []AccountType{ForRedfish}) {
		t.Errorf("an account with a password too long for IPMI has the types %q", a.Types)
	}
}

func TestImpliedAccountTypes(t *testing.T) {
	s := guarded()
	s.Accounts.Types = []TypeSpec{{Type: ForRedfish}, {Type: ForWebUI, Implies: []AccountType{ForRedfish}}}
	b := New(s, []Account{admin, gone}, nil)
	web := &[]AccountType{ForWebUI}
	do(t, b, origin, ChangeAccount{ID: "2", AccountChange: AccountChange{Types: web}})
	if a, _ := b.View().Account("2"); !cmp.Equal(a.Types, []AccountType{ForRedfish, ForWebUI}) {
		t.Errorf("types = %q, want both", a.Types)
	}
	_, err := b.Apply(origin, ChangeAccount{ID: "2", AccountChange: AccountChange{Types: web, StrictTypes: new(true)}})
	var got *FieldError
	if !errors.As(err, &got) || *got != (FieldError{FieldTypes, NotStrict}) {
		t.Errorf("error of strict types = %v", err)
	}
}

func TestLastAdministratorCannotBeRemoved(t *testing.T) {
	off := AccountChange{Enabled: new(false)}
	for name, c := range map[string]Command{
		"removed":   RemoveAccount{"1"},
		"disabled":  ChangeAccount{ID: "1", AccountChange: off},
		"demoted":   ChangeAccount{ID: "1", AccountChange: AccountChange{Role: new(ReadOnly)}},
		"kept out":  ChangeAccount{ID: "1", AccountChange: AccountChange{Types: &[]AccountType{ForIPMI}}},
		"timed out": ChangeAccount{ID: "1", AccountChange: AccountChange{Expires: new(origin)}},
	} {
		b := newGuarded()
		_, err := b.Apply(origin, c)
		var got *FieldError
		if !errors.As(err, &got) || got.Why != LastAdmin {
			t.Errorf("%s: error = %v, want %s", name, err, LastAdmin)
		}
		s := guarded()
		s.Accounts.LastAdmin = true
		do(t, New(s, []Account{admin, gone}, nil), origin, c)
	}
	b := newGuarded()
	do(t, b, origin, ChangeAccount{ID: "2", AccountChange: AccountChange{Enabled: new(true), Role: new(Administrator)}})
	do(t, b, origin, ChangeAccount{ID: "1", AccountChange: off})
}

func TestPasswordsChange(t *testing.T) {
	b := newGuarded()
	p := *b.policy()
	p.History, p.PasswordLifetime = 2, 24*time.Hour
	do(t, b, origin, SetPolicy{p})
	do(t, b, origin, ChangeAccount{ID: "1", AccountChange: AccountChange{ChangeRequired: new(true)}})
	do(t, b, origin, OpenSession{Account: admin, Token: "mine"})
	do(t, b, origin, OpenSession{Account: admin, Token: "another"})
	mine, _ := b.Resume(origin, "mine")

	set := func(p string) error {
		_, err := b.Apply(origin, ChangeAccount{ID: "1", AccountChange: AccountChange{Password: &p}, Session: mine.ID})
		return err
	}
	if err := set("first"); err != nil {
		t.Fatal(err)
	}
	if a, _ := b.View().Account("1"); a.ChangeRequired || !a.PasswordExpires.Equal(origin.Add(24*time.Hour)) {
		t.Errorf("after the change: %+v", a)
	}
	if _, ok := b.Resume(origin, "another"); ok {
		t.Error("another session outlived the password")
	}
	if _, ok := b.Resume(origin, "mine"); !ok {
		t.Error("the session that changed the password ended")
	}
	var wrong *FieldError
	if err := set("first"); !errors.As(err, &wrong) || wrong.Why != Reused {
		t.Errorf("the same password again: %v", err)
	}
	if err := set("secret"); !errors.As(err, &wrong) || wrong.Why != Reused {
		t.Errorf("the password before: %v", err)
	}
	for _, p := range []string{"second", "third", "secret"} {
		if err := set(p); err != nil {
			t.Errorf("password %s: %v", p, err)
		}
	}
	due, ok := b.Deadline()
	for ok && due.Before(origin.Add(24*time.Hour)) { // sessions time out
		b.Advance(due)
		due, ok = b.Deadline()
	}
	b.Advance(due)
	if a, _ := b.View().Account("1"); !due.Equal(origin.Add(24*time.Hour)) || !a.ChangeRequired {
		t.Errorf("at %v the password has expired: %t", due, a.ChangeRequired)
	}
	if v := try(b, due, "admin", "secret"); !v.OK || !v.Account.ChangeRequired {
		t.Errorf("login with an expired password = %+v", v)
	}
}

func TestChangePasswordNeedsTheRequestersPassword(t *testing.T) {
	b := newGuarded()
	refused(t, b, origin, ChangePassword{ID: "2", To: "other", By: "1", Proof: "wrong"}, ErrProof)
	do(t, b, origin, ChangePassword{ID: "2", To: "other", By: "1", Proof: "secret"})
	do(t, b, origin, ChangeAccount{ID: "2", AccountChange: AccountChange{Enabled: new(true)}})
	if !try(b, origin, "gone", "other").OK {
		t.Error("the password has not changed")
	}
}

func TestAccountsExpire(t *testing.T) {
	b := newGuarded()
	do(t, b, origin, ChangeAccount{ID: "2", AccountChange: AccountChange{Enabled: new(true), Expires: new(origin.Add(time.Hour))}})
	do(t, b, origin, OpenSession{Account: Account{ID: "2"}, Token: "t"})
	b.Resume(origin.Add(59*time.Minute+30*time.Second), "t")
	b.Advance(origin.Add(time.Hour))
	if a, _ := b.View().Account("2"); a.Enabled || len(b.View().Sessions) != 0 {
		t.Errorf("after its time: %+v, %d sessions", a, len(b.View().Sessions))
	}
}

func TestFixedAccounts(t *testing.T) {
	s := guarded()
	s.Accounts.Fixed, s.Accounts.Reserved = true, []string{"4"}
	b := New(s, []Account{admin}, nil)
	ids := func() []string {
		var out []string
		for _, a := range b.View().Accounts {
			out = append(out, a.ID+":"+a.Name)
		}
		return out
	}
	if d := cmp.Diff([]string{"1:admin", "2:", "3:", "4:"}, ids()); d != "" {
		t.Errorf("slots (-want +got):\n%s", d)
	}
	do(t, b, origin, ChangeAccount{ID: "3", AccountChange: AccountChange{Name: new("new"), Password: new("pass"), Role: new(Operator)}})
	if a, _ := b.View().Account("3"); a.Enabled || a.Role != Operator {
		t.Errorf("a slot that was just named: %+v, want it disabled", a)
	}
	do(t, b, origin, ChangeAccount{ID: "3", AccountChange: AccountChange{Enabled: new(true)}})
	if !try(b, origin, "new", "pass").OK {
		t.Error("the account of a slot cannot log in")
	}
	do(t, b, origin, ChangeAccount{ID: "3", AccountChange: AccountChange{Name: new(""), Enabled: new(false)}})
	if d := cmp.Diff([]string{"1:admin", "2:", "3:", "4:"}, ids()); d != "" {
		t.Errorf("slots after one was cleared (-want +got):\n%s", d)
	}
	for id, want := range map[string]error{"5": ErrNotFound, "03": ErrNotFound} {
		refused(t, b, origin, ChangeAccount{ID: id, AccountChange: AccountChange{Name: new("x"), Password: new("pass")}}, want)
	}
	var wrong *FieldError
	if _, err := b.Apply(origin, ChangeAccount{ID: "4", AccountChange: AccountChange{Name: new("x"), Password: new("pass")}}); !errors.As(err, &wrong) {
		t.Errorf("a reserved slot was used: %v", err)
	}
}

func TestLockdownRefusesChanges(t *testing.T) {
	b := newGuarded()
	p := *b.policy()
	p.Lockdown = true
	do(t, b, origin, SetPolicy{p})
	for _, c := range []Command{
		CreateAccount{}, ChangeAccount{ID: "2"}, RemoveAccount{"2"}, OpenSession{Account: admin, Token: "t"},
	} {
		refused(t, b, origin, c, ErrDisabled)
	}
}

func TestAbsoluteSessionTimeout(t *testing.T) {
	b := newGuarded()
	do(t, b, origin, OpenSession{Account: admin, Token: "t"})
	p := *b.policy()
	p.AbsoluteSessionTimeoutEnabled, p.AbsoluteSessionTimeout = true, 90*time.Second
	do(t, b, origin, SetPolicy{p})
	b.Resume(origin.Add(50*time.Second), "t")
	if end := b.View().Sessions[0].End; !end.Equal(origin.Add(90 * time.Second)) {
		t.Errorf("the session ends at %v", end)
	}
	if _, ok := b.Resume(origin.Add(90*time.Second), "t"); ok {
		t.Error("the session has not ended")
	}
}

func TestRoles(t *testing.T) {
	b := newGuarded()
	do(t, b, origin, CreateRole{RoleSpec{ID: "Guest", Privileges: []Privilege{PrivLogin}}})
	do(t, b, origin, ChangeAccount{ID: "2", AccountChange: AccountChange{Role: new(Role("Guest"))}})
	refused(t, b, origin, RemoveRole{"Guest"}, ErrInUse)
	do(t, b, origin, ChangeRole{RoleSpec{ID: "Guest", Privileges: []Privilege{PrivConfigureSelf}}})
	if got := b.View().Role("Guest").Privileges; !cmp.Equal(got, []Privilege{PrivConfigureSelf}) {
		t.Errorf("privileges = %q", got)
	}
	do(t, b, origin, ChangeAccount{ID: "2", AccountChange: AccountChange{Role: new(ReadOnly)}})
	do(t, b, origin, RemoveRole{"Guest"})
	for _, c := range []Command{RemoveRole{"Guest"}, RemoveRole{Operator}, ChangeRole{RoleSpec{ID: Operator}}} {
		refused(t, b, origin, c, ErrNotFound)
	}
	for want, c := range map[FieldError]Command{
		{FieldRole, Taken}:        CreateRole{RoleSpec{ID: Operator}},
		{FieldRole, BadForm}:      CreateRole{RoleSpec{ID: "a/b"}},
		{FieldPrivileges, NoSuch}: CreateRole{RoleSpec{ID: "X", Privileges: []Privilege{"Fly"}}},
	} {
		var got *FieldError
		if _, err := b.Apply(origin, c); !errors.As(err, &got) || *got != want {
			t.Errorf("%+v: %v, want %v", c, err, &want)
		}
	}
	// A role of one's own can make an administrator, and then it is needed.
	do(t, b, origin, CreateRole{RoleSpec{ID: "Boss", Privileges: Privileges}})
	do(t, b, origin, ChangeAccount{ID: "1", AccountChange: AccountChange{Role: new(Role("Boss"))}})
	var wrong *FieldError
	if _, err := b.Apply(origin, ChangeRole{RoleSpec{ID: "Boss"}}); !errors.As(err, &wrong) || wrong.Why != LastAdmin {
		t.Errorf("the last administrator's role lost its privileges: %v", err)
	}
}

func TestAuditKeepsTheLatest(t *testing.T) {
	b := newGuarded()
	act := AuditRecord{Method: "PATCH", Target: "/" + strings.Repeat("x", 1000), Status: 200, User: "admin", Account: "1", From: "192.0.2.1"}
	var older, newest uint64
	for i := range 3 * guarded().Audit.Size {
		evs := do(t, b, origin.Add(time.Duration(i)*time.Second), AddAuditRecord{act})
		older, newest = newest, evs[0].(Audited).Entry.ID
	}
	all := slices.Collect(values(b.View().Audit))
	if len(all) != guarded().Audit.Size || all[len(all)-1].ID != newest || len(all[0].Args[1]) > 300 {
		t.Errorf("%d entries, the last is %d, want %d", len(all), all[len(all)-1].ID, newest)
	}
	for i := range all[1:] {
		if all[i+1].ID != all[i].ID+1 {
			t.Fatalf("entry %d follows %d", all[i+1].ID, all[i].ID)
		}
	}
	held := slices.Collect(values(b.View().Audit))
	for _, id := range []uint64{older, all[0].ID} {
		do(t, b, origin, AmendAuditRecord{ID: id, Status: 400})
	}
	if got := slices.Collect(values(b.View().Audit)); got[0].Args[2] != "400" || got[len(got)-2].Args[2] != "400" || held[0].Args[2] != "200" {
		t.Error("an amended act has not changed, or changed for who held it")
	}
	refused(t, b, origin, AmendAuditRecord{ID: 1, Status: 400}, ErrNotFound)
}
