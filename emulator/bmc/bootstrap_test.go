package bmc

import (
	"errors"
	"testing"
	"time"

	"github.com/metalab-dev/metalab/emulator/machine/event"
)

// newTyped is a BMC that keeps services apart.
func newTyped() *BMC {
	s := *spec
	s.Accounts.Types = []TypeSpec{{Type: ForRedfish}, {Type: ForIPMI}}
	return New(&s, []Account{admin, gone}, nil)
}

func TestBootstrapAccountsAreDeletedByReset(t *testing.T) {
	resets := map[string]func(b *BMC){
		"machine": func(b *BMC) { b.ObserveMachine(origin, []event.Event{event.Boot{At: origin}}) },
		"power":   func(b *BMC) { b.ObserveMachine(origin, []event.Event{event.Note{At: origin, Kind: event.PowerOff}}) },
		"BMC": func(b *BMC) {
			do(t, b, origin, Restart{Kind: ForceRestart})
			b.Advance(origin.Add(time.Hour))
		},
	}
	for name, reset := range resets {
		b := newTyped()
		do(t, b, origin, CreateBootstrapAccount{Name: "boot1", Password: "secret-1"})
		do(t, b, origin, CreateBootstrapAccount{Name: "boot2", Password: "secret-2", Last: true})
		if _, err := b.Apply(origin, CreateBootstrapAccount{Name: "boot3", Password: "secret-3"}); !errors.Is(err, ErrDisabled) {
			t.Errorf("%s: one after the last = %v, want ErrDisabled", name, err)
		}
		if v := b.Login(Credentials{Name: "boot2", Password: "secret-2", To: ForRedfish}); !v.OK || v.Account.Role != Administrator || !v.Account.Bootstrap {
			t.Errorf("%s: login = %+v", name, v)
		}
		if v := b.Login(Credentials{Name: "boot2", Password: "secret-2", To: ForIPMI}); v.OK {
			t.Errorf("%s: the account is good for IPMI", name)
		}
		b = stored(t, b)
		reset(b)
		if n := len(b.State().Access.Accounts); n != 2 {
			t.Errorf("%s: %d accounts after a reset, want the 2 of before", name, n)
		}
		do(t, b, origin.Add(2*time.Hour), CreateBootstrapAccount{Name: "boot3", Password: "secret-3"})
	}
}

func TestBootstrapSettings(t *testing.T) {
	b := newTyped()
	do(t, b, origin, SetBootstrap{Bootstrap{Closed: true, Stays: true, Role: Operator}})
	b.ObserveMachine(origin, []event.Event{event.Boot{At: origin}})
	if _, err := b.Apply(origin, CreateBootstrapAccount{Name: "boot1", Password: "secret-1"}); !errors.Is(err, ErrDisabled) {
		t.Errorf("closed for good = %v, want ErrDisabled", err)
	}
	do(t, b, origin, SetBootstrap{Bootstrap{Role: Operator}})
	do(t, b, origin, CreateBootstrapAccount{Name: "boot1", Password: "secret-1"})
	if a, _ := b.State().Access.Account("3"); a.Role != Operator || !a.Enabled {
		t.Errorf("account = %+v", a)
	}
	do(t, b, origin, SetBootstrap{Bootstrap{Disabled: true}})
	if _, err := b.Apply(origin, CreateBootstrapAccount{Name: "boot2", Password: "secret-2"}); !errors.Is(err, ErrDisabled) {
		t.Errorf("disabled = %v, want ErrDisabled", err)
	}
	var wrong *FieldError
	if _, err := b.Apply(origin, SetBootstrap{Bootstrap{Role: "nobody"}}); !errors.As(err, &wrong) || wrong.Field != FieldRole {
		t.Errorf("a role that is none = %v", err)
	}
	do(t, b, origin, CreateRole{RoleSpec{ID: "host", Privileges: []Privilege{PrivLogin}}})
	do(t, b, origin, SetBootstrap{Bootstrap{Role: "host"}})
	if _, err := b.Apply(origin, RemoveRole{ID: "host"}); !errors.Is(err, ErrInUse) {
		t.Errorf("removing the role of bootstrap accounts = %v, want ErrInUse", err)
	}
}

// They vanish, and so are no administrators to rely on.
func TestBootstrapAccountIsNoLastAdministrator(t *testing.T) {
	b := newTyped()
	do(t, b, origin, CreateBootstrapAccount{Name: "boot1", Password: "secret-1"})
	var wrong *FieldError
	if _, err := b.Apply(origin, RemoveAccount{ID: "1"}); !errors.As(err, &wrong) || wrong.Why != LastAdmin {
		t.Errorf("removing the last other administrator = %v", err)
	}
}
