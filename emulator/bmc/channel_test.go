package bmc

import (
	"encoding/json"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/metalab-dev/metalab/emulator/machine/event"
)

// stored returns a BMC as it is after a restart of the rack.
func stored(t *testing.T, b *BMC) *BMC {
	t.Helper()
	raw, err := json.Marshal(b.State())
	if err != nil {
		t.Fatal(err)
	}
	var st State
	if err := json.Unmarshal(raw, &st); err != nil {
		t.Fatal(err)
	}
	return New(b.spec, b.factory, &st)
}

func TestChannelSurvivesARestartOfTheRack(t *testing.T) {
	b := newBMC()
	key := make([]byte, KGSize)
	key[19] = 0xff
	for _, c := range []Command{
		SetChannel{Channel{Limit: 3, AlertsDisabled: true, AuthTypes: []byte{0, 4, 4, 4, 0}, Suites: make([]byte, 8)}},
		SetKG{key},
		SetParameter{Parameter{Param: 16, Data: []byte{0xff, 0}}},
		SetParameter{Parameter{Param: 18, Set: 2, Data: []byte{1}}},
		SetUser{Account: "9", AccountChange: AccountChange{Name: new("late")}, As: &IPMIUser{Limit: 15}},
		SetUser{Account: "10", AccountChange: AccountChange{Name: new("later"), Enabled: new(true)}},
	} {
		do(t, b, origin, c)
	}
	again := stored(t, b)
	if d := cmp.Diff(b.State().Channel, again.State().Channel); d != "" {
		t.Errorf("channel after a restart (-want +got):\n%s", d)
	}
	v := again.View().Channel
	if v.KG != nil || !v.HasKG || string(again.KG()) != string(key) {
		t.Errorf("key: view [% x], keyed %t, BMC [% x]", v.KG, v.HasKG, again.KG())
	}
	if got := v.User("10"); got.Name != "later" || !got.Enabled {
		t.Errorf("user without an account = %+v", got)
	}
}

func TestChannelSurvivesReset(t *testing.T) {
	b := newBMC()
	do(t, b, origin, SetUser{Account: "9", AccountChange: AccountChange{Name: new("late")}})
	was := b.State()
	shown := *b.View().Channel
	do(t, b, origin, SetUser{Account: "9", AccountChange: AccountChange{Name: new("other")}})
	do(t, b, origin, SetParameter{Parameter{Param: 1, Data: []byte{1}}})
	if got := was.Channel.User("9").Name; got != "late" || len(was.Channel.Parameters) != 0 || shown.User("9").Name != "late" {
		t.Errorf("an older state has changed: %+v", was.Channel)
	}
	b.Restore(was)
	if got := b.View().Channel.User("9").Name; got != "late" {
		t.Errorf("restored: %q", got)
	}
}

func TestResetsOfTheMachineSwitchTheChannel(t *testing.T) {
	for _, reset := range []event.Event{event.Boot{At: origin}, event.Note{At: origin, Kind: event.PowerOff}} {
		b := newBMC()
		net := b.net()
		net.IPMI.On = true
		do(t, b, origin, SetNetwork{net})
		do(t, b, origin, SwitchChannel{On: false})
		if b.net().IPMI.On {
			t.Fatal("switched off, and on")
		}
		b.ObserveMachine(origin, []event.Event{reset})
		if !b.net().IPMI.On || b.State().Channel.OnAfterReset {
			t.Errorf("%T: off for now is on: %t", reset, b.net().IPMI.On)
		}
		do(t, b, origin, SetChannelAfterReset{On: false})
		if !b.net().IPMI.On {
			t.Errorf("%T: off for good is off before a reset", reset)
		}
		b.ObserveMachine(origin, []event.Event{reset})
		if b.net().IPMI.On {
			t.Errorf("%T: off for good is on after a reset", reset)
		}
	}
}
