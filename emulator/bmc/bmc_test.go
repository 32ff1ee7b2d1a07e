package bmc

import (
	"encoding/json"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/metalab-dev/metalab/emulator/machine/event"
)

var (
	origin = time.Date(2031, 1, 2, 3, 4, 5, 0, time.UTC)
	spec   = &Spec{
		Slots:          []SlotSpec{{ID: "Cd"}, {ID: "Usb"}},
		Sessions:       2,
		SessionTimeout: time.Minute,
		Network:        Network{HTTPS: Service{On: true}, Media: Service{On: true}, DHCP: true},
	}
	admin = Account{ID: "1", Name: "admin", Password: "secret", Role: Administrator, Enabled: true}
	gone  = Account{ID: "2", Name: "gone", Password: "secret", Role: Operator}
)

func newBMC() *BMC { return New(spec, []Account{admin, gone}, nil) }

func do(t *testing.T, b *BMC, now time.Time, c Command) []Event {
	t.Helper()
	evs, err := b.Apply(now, c)
	if err != nil {
		t.Fatalf("Apply(%+v) = %v", c, err)
	}
	return evs
}

func refused(t *testing.T, b *BMC, now time.Time, c Command, want error) {
	t.Helper()
	before := b.View()
	if evs, err := b.Apply(now, c); !errors.Is(err, want) || len(evs) != 0 {
		t.Errorf("Apply(%+v) = %v, %v, want %v", c, evs, err, want)
	}
	if d := cmp.Diff(before, b.View(), cmp.AllowUnexported(Session{})); d != "" {
		t.Errorf("Apply(%+v) was refused, yet it changed (-before +after):\n%s", c, d)
	}
}

func TestSessions(t *testing.T) {
	b := newBMC()
	if at, ok := b.ClientDeadline(); ok {
		t.Errorf("ClientDeadline() without a session = %v", at)
	}
	evs := do(t, b, origin, OpenSession{Account: admin, Token: "one", From: "10.0.0.1"})
	first := evs[0].(SessionOpened).Session
	if first.ID != "1" || first.User != "admin" || first.Role != Administrator || first.From != "10.0.0.1" || !first.Since.Equal(origin) {
		t.Errorf("session = %+v", first)
	}
	do(t, b, origin.Add(time.Second), OpenSession{Account: admin, Token: "two"})
	refused(t, b, origin.Add(time.Second), OpenSession{Account: admin, Token: "three"}, ErrTooManySessions)

	if s, ok := b.Resume(origin.Add(50*time.Second), "one"); !ok || s.ID != "1" {
		t.Errorf("Resume(one) = %+v, %v", s, ok)
	}
	if at, ok := b.ClientDeadline(); !ok || !at.Equal(origin.Add(61*time.Second)) {
		t.Errorf("ClientDeadline() = %v, %v, want that of the session that nobody used", at, ok)
	}
	b.Advance(origin.Add(61 * time.Second))
	if _, ok := b.Resume(origin.Add(61*time.Second), "two"); ok {
		t.Error("Resume(two) after its time-out = true, want false")
	}
	if s, ok := b.Resume(origin.Add(109*time.Second), "one"); !ok {
		t.Errorf("Resume(one) within its time-out = %+v, %v", s, ok)
	}
	for _, token := range []string{"", "three"} {
		if _, ok := b.Resume(origin.Add(109*time.Second), token); ok {
			t.Errorf("Resume(%q) = true, want false", token)
		}
	}
	do(t, b, origin.Add(2*time.Minute), CloseSession{ID: "1"})
	if _, ok := b.Resume(origin.Add(2*time.Minute), "one"); ok {
		t.Error("Resume(one) after logout = true, want false")
	}
	refused(t, b, origin, CloseSession{ID: "1"}, ErrNotFound)
}

func TestSessionTimeout(t *testing.T) {
	b := newBMC()
	do(t, b, origin, OpenSession{Account: admin, Token: "one"})
	do(t, b, origin, SetSessions{Timeout: time.Hour})
	if _, ok := b.Resume(origin.Add(59*time.Minute), "one"); !ok {
		t.Error("Resume(one) = false, want true within the longer time-out")
	}
	if got := b.View().SessionTimeout; got != time.Hour {
		t.Errorf("View().SessionTimeout = %v, want 1h", got)
	}
}

func TestMedia(t *testing.T) {
	b := newBMC()
	insert := InsertMedia{Slot: "Cd", Image: "http://images/a.iso", WriteProtected: true, User: "u", Password: "p"}
	evs := do(t, b, origin, insert)
	slot := Slot{ID: "Cd", Image: insert.Image, WriteProtected: true, User: "u", Password: "p", Fetch: 1, Since: origin}
	if d := cmp.Diff([]Event{MediaRequested{At: origin, Slot: slot}}, evs); d != "" {
		t.Errorf("events of InsertMedia (-want +got):\n%s", d)
	}
	refused(t, b, origin, insert, ErrInUse)
	evs = do(t, b, origin, MediaFetched{Slot: "Cd", Fetch: 1, Size: 42})
	if d := cmp.Diff([]Event{MediaInserted{At: origin, Slot: "Cd", Image: insert.Image}}, evs); d != "" {
		t.Errorf("events of MediaArrived (-want +got):\n%s", d)
	}
	got := b.View().Slots[0]
	slot.Password, slot.Inserted, slot.Size = "", true, 42
	if got != slot {
		t.Errorf("slot = %+v, want %+v", got, slot)
	}
	evs = do(t, b, origin, EjectMedia{Slot: "Cd"})
	if d := cmp.Diff([]Event{MediaEjected{At: origin, Slot: "Cd", Fetch: 1}}, evs); d != "" {
		t.Errorf("events of EjectMedia (-want +got):\n%s", d)
	}
	if evs := do(t, b, origin, EjectMedia{Slot: "Cd"}); len(evs) != 0 {
		t.Errorf("EjectMedia of an empty slot = %v, want nothing", evs)
	}
	for _, c := range []Command{InsertMedia{Slot: "Tape"}, EjectMedia{Slot: "Tape"}, MediaFetched{Slot: "Tape"}, MediaFetchFailed{Slot: "Tape"}} {
		refused(t, b, origin, c, ErrNotFound)
	}
}

// A fetch that was overtaken by an ejection does not fill the slot, not even
// when the next one is under way.
func TestFetchOvertakenByEjectIsIgnored(t *testing.T) {
	b := newBMC()
	insert := InsertMedia{Slot: "Cd", Image: "http://images/a.iso"}
	do(t, b, origin, insert)
	do(t, b, origin, EjectMedia{Slot: "Cd"})
	refused(t, b, origin, MediaFetched{Slot: "Cd", Fetch: 1, Size: 42}, ErrNotFound)
	do(t, b, origin, insert)
	refused(t, b, origin, MediaFetched{Slot: "Cd", Fetch: 1, Size: 42}, ErrNotFound)
	refused(t, b, origin, MediaFetchFailed{Slot: "Cd", Fetch: 1}, ErrNotFound)
	do(t, b, origin, MediaFetchFailed{Slot: "Cd", Fetch: 2})
	if got := b.View().Slots[0]; got != (Slot{ID: "Cd", Since: got.Since}) {
		t.Errorf("slot after MediaLost = %+v, want it empty", got)
	}
}

func TestStateSurvivesJSON(t *testing.T) {
	b := newBMC()
	do(t, b, origin, InsertMedia{Slot: "Cd", Image: "http://images/a.iso", User: "u", Password: "p"})
	do(t, b, origin, MediaFetched{Slot: "Cd", Fetch: 1, Size: 42})
	do(t, b, origin, InsertMedia{Slot: "Usb", Image: "http://images/b.img"})
	do(t, b, origin, SetSessions{Timeout: time.Hour})
	raw, err := json.Marshal(b.State())
	if err != nil {
		t.Fatal(err)
	}
	var st State
	if err := json.Unmarshal(raw, &st); err != nil {
		t.Fatal(err)
	}
	again := New(spec, nil, &st)
	if d := cmp.Diff(b.View(), again.View()); d != "" {
		t.Errorf("view of the restored BMC (-want +got):\n%s", d)
	}
	if !again.Login(Credentials{Name: "admin", Password: "secret", To: ForRedfish}).OK {
		t.Error("the restored BMC does not know its account")
	}
	do(t, again, origin, MediaFetchFailed{Slot: "Usb", Fetch: 2})
}

// A BMC whose kind got a further slot has it after a restart.
func TestNewSlotOfTheSpec(t *testing.T) {
	st := newBMC().State()
	wider := *spec
	wider.Slots = append(wider.Slots[:2:2], SlotSpec{ID: "Floppy"})
	if got := New(&wider, nil, &st).View().Slots; len(got) != 3 || got[2].ID != "Floppy" {
		t.Errorf("slots = %+v, want the new one too", got)
	}
}

func TestViewsAreImmutableAndHideSecrets(t *testing.T) {
	b := newBMC()
	do(t, b, origin, InsertMedia{Slot: "Cd", Image: "http://images/a.iso", Password: "secret"})
	do(t, b, origin, OpenSession{Account: admin, Token: "token"})
	v := b.View()
	before := fmt.Sprintf("%+v %+v %+v", v.Accounts, v.Slots, v.Sessions)
	raw, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	for _, a := range v.Accounts {
		if a.Password != "" {
			t.Errorf("the view shows %s's password", a.Name)
		}
	}
	if v.Slots[0].Password != "" {
		t.Errorf("the view shows the image's password: %s", raw)
	}
	do(t, b, origin, EjectMedia{Slot: "Cd"})
	do(t, b, origin, CloseSession{ID: "1"})
	if got := fmt.Sprintf("%+v %+v %+v", v.Accounts, v.Slots, v.Sessions); got != before {
		t.Errorf("an old view changed:\n%s\n%s", before, got)
	}
}

func TestSessionUseIsSharedByCopies(t *testing.T) {
	b := newBMC()
	do(t, b, origin, OpenSession{Account: admin, Token: "one"})
	s, _ := b.Resume(origin, "one")
	if !s.Use(origin.Add(50*time.Second)) || !s.Use(origin.Add(40*time.Second)) {
		t.Error("a session cannot be used within its time-out")
	}
	if at := b.SessionsDue(); !at.Equal(origin.Add(110 * time.Second)) {
		t.Errorf("the session ends at %v, want a minute after its last use", at)
	}
	b.Advance(origin.Add(100 * time.Second))
	if n := len(b.View().Sessions); n != 1 {
		t.Errorf("%d sessions, want the one that was used", n)
	}
	if s.Use(origin.Add(110 * time.Second)) {
		t.Error("a session can be used when it has ended")
	}
}

func TestEjectMediaAfterBoots(t *testing.T) {
	b := newBMC()
	boot := func(n int) []Event {
		at := origin.Add(time.Duration(n) * time.Hour)
		return b.ObserveMachine(at, []event.Event{event.Boot{At: at}})
	}
	insert := func() {
		evs := do(t, b, origin, InsertMedia{Slot: "Cd", Image: "http://images/a.iso"})
		do(t, b, origin, MediaFetched{Slot: "Cd", Fetch: evs[0].(MediaRequested).Slot.Fetch, Size: 1})
	}
	do(t, b, origin, EjectMediaAfterBoots{Slot: "Cd", Boots: 2}) // before there is an image
	insert()
	boot(1)
	if s := b.View().Slots[0]; !s.Inserted || s.EjectAfterBoots != 1 {
		t.Errorf("after one start: %+v", s)
	}
	b = New(spec, []Account{admin, gone}, new(b.State())) // as after a restart of the rack
	evs := boot(2)
	if s := b.View().Slots[0]; s.Image != "" || s.EjectAfterBoots != 0 || len(evs) != 1 {
		t.Errorf("after two: %+v, events %v", s, evs)
	}
	insert()
	do(t, b, origin, EjectMediaAfterBoots{Slot: "Cd", Boots: 1})
	do(t, b, origin, EjectMediaAfterBoots{Slot: "Cd"})
	if boot(3); !b.View().Slots[0].Inserted {
		t.Error("it went though it was said that it stays")
	}
	refused(t, b, origin, EjectMediaAfterBoots{Slot: "Tape", Boots: 1}, ErrNotFound)
}
