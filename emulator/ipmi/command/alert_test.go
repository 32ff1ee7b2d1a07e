package command

import (
	"context"
	"encoding/asn1"
	"encoding/binary"
	"fmt"
	"log/slog"
	"net/netip"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/metalab-dev/metalab/emulator/bmc"
	"github.com/metalab-dev/metalab/emulator/ipmi/wire"
	"github.com/metalab-dev/metalab/emulator/machine"
	"github.com/metalab-dev/metalab/emulator/machine/event"
)

// watched is a host whose traps and scheduled actions a test can see.
type watched struct {
	*host
	traps []Trap
	later []struct {
		after time.Duration
		do    func(context.Context)
	}
}

func watch(t *testing.T) *watched {
	t.Helper()
	w := &watched{host: newHost(t)}
	w.state.Alerts = &Alerter{
		Log: slog.New(slog.DiscardHandler), SendTrap: func(_ Host, x Trap) { w.traps = append(w.traps, x) },
		AfterFunc: func(after time.Duration, do func(context.Context)) {
			w.later = append(w.later, struct {
				after time.Duration
				do    func(context.Context)
			}{after, do})
		},
	}
	return w
}

// settle runs the scheduled functions, and those that they schedule.
func (w *watched) settle(t *testing.T) {
	for len(w.later) > 0 {
		next := w.later[0]
		w.later = w.later[1:]
		w.advance(next.after)
		next.do(t.Context())
	}
}

// happens logs a note and passes it to the event filters, as a rack does.
func (w *watched) happens(t *testing.T, n event.Note) {
	t.Helper()
	n.At = w.now
	w.mu.Lock()
	evs := w.bmc.ObserveMachine(w.now, []event.Event{n})
	w.changed()
	w.mu.Unlock()
	w.state.Alerts.FilterEvents(w.host, w.now, evs)
}

func (w *watched) set(t *testing.T, fn wire.NetFn, cmd byte, data string) {
	t.Helper()
	if code, _ := ask(t, w.host, fn, cmd, unhex(t, data)...); code != Completed {
		t.Fatalf("%02x/%02x [%s] = %02X", byte(fn), cmd, data, byte(code))
	}
}

var tooHot = event.Note{
	Kind: event.SensorTooHigh, Subject: event.Subject{Part: event.Sensor, ID: "InletTemp"}, Args: []string{"Inlet Temp", "43", "Cel", "42"},
}

// TestMatchingEventsSendTraps shows statement I45.
func TestMatchingEventsSendTraps(t *testing.T) {
	w := watch(t)
	w.happens(t, tooHot)
	if len(w.later) != 0 {
		t.Fatal("PEF acts though it is off")
	}
	w.set(t, wire.SensorEvent, 0x12, "01 01")             // PEF
	w.set(t, wire.SensorEvent, 0x12, "02 01")             // alerts
	w.set(t, wire.SensorEvent, 0x12, "09 01 18 11 83")    // policy 1: destination 1, with a string of set 3
	w.set(t, wire.SensorEvent, 0x12, "0c 02 02 03")       // which is string 2 for filter 2
	w.set(t, wire.SensorEvent, 0x12, "0d 02 01 48 6f 74") // "Hot"
	w.set(t, wire.Transport, 0x01, "01 10 6c 61 62 00 00 00 00 00 00 00 00 00 00 00 00 00 00 00")
	w.set(t, wire.Transport, 0x01, "01 12 01 80 04 02")
	w.set(t, wire.Transport, 0x01, "01 13 01 00 00 7f 00 00 07 00 00 00 00 00 00")
	w.happens(t, tooHot)
	w.settle(t)
	if len(w.traps) != 1 {
		t.Fatalf("%d alerts", len(w.traps))
	}
	x := w.traps[0]
	if x.To != netip.MustParseAddr("127.0.0.7") || !x.Acknowledged || x.Attempts != 3 || x.Interval != 5*time.Second {
		t.Errorf("%+v", x)
	}
	community, specific, fields := parsePET(t, x.Packet)
	is := selEvent(w.Machine(), &tooHot)
	if community != "lab" || specific != 0x010109 {
		t.Errorf("community %q, specific trap %06x", community, specific)
	}
	guid := guid(w.Machine().Identity.UUID)
	local := uint32(w.now.Sub(petEpoch) / time.Second)
	want := append(guid[:], 0, 1)
	want = binary.BigEndian.AppendUint32(want, local)
	want = append(want, 0xff, 0xff, 0x20, 0x20, severityCritical, 0x20, is.Number, 0, 0, is.Data[0], is.Data[1], is.Data[2], 0, 0, 0, 0, 0, 0xff)
	want = binary.BigEndian.AppendUint32(want, w.d.IPMI.Manufacturer)
	want = binary.BigEndian.AppendUint16(want, w.d.IPMI.Product)
	want = append(want, 0x80, 0x43, 0x01, 'H', 'o', 't', 0xc1)
	if d := cmp.Diff(want, fields); d != "" {
		t.Errorf("fields (-want +got):\n%s", d)
	}

	// An event that matches no filter sends no alert, nor does a deassertion.
	w.traps = nil
	w.happens(t, event.Note{Kind: event.PowerOn, Subject: systemSubject})
	w.happens(t, event.Note{Kind: event.SensorBetter, Subject: tooHot.Subject, Args: []string{"Inlet Temp", "41", "Cel", "critical", "42"}})
	w.settle(t)
	if len(w.traps) != 0 {
		t.Errorf("%d alerts", len(w.traps))
	}
	// A channel whose alerting is disabled sends no alert.
	_, err := w.ApplyBMC(t.Context(), bmc.SetChannel{Channel: bmc.Channel{AlertsDisabled: true}})
	must(t, err)
	w.happens(t, tooHot)
	w.settle(t)
	if len(w.traps) != 0 {
		t.Errorf("%d alerts on a channel whose alerting is disabled", len(w.traps))
	}
}

// The severity of a trap is that of the filter: of several with one policy the
// worst, and of several policies that of the lowest number (§17.7). A filter whose
// severity is unspecified leaves it to the log entry.
func TestTrapHasTheSeverityOfTheFilterOrTheEntry(t *testing.T) {
	filters := func(policyAndSeverity ...byte) (all []string) {
		for i := 0; i < len(policyAndSeverity); i += 2 {
			all = append(all, fmt.Sprintf("06 %02x 80 01 %02x %02x ff ff ff ff ff ff ff 00 00 00 00 00 00 00 00 00", 0x0f+i/2, policyAndSeverity[i], policyAndSeverity[i+1]))
		}
		return all
	}
	for _, tt := range []struct {
		name    string
		filters []string
		kind    event.Kind
		want    byte
	}{
		{"OK", filters(1, severityUnspecified), event.PowerOn, severityOK},
		{"Warning", filters(1, severityUnspecified), event.LinkDown, severityNonCritical},
		{"Critical", filters(1, severityUnspecified), event.BootFailed, severityCritical},
		{"the filter's", filters(1, severityInformation), event.BootFailed, severityInformation},
		{"the worse of two", filters(1, severityNonCritical, 1, severityCritical), event.PowerOn, severityCritical},
		{"the worse of two, in the other order", filters(1, severityCritical, 1, severityNonCritical), event.PowerOn, severityCritical},
		{"the lower policy's", filters(2, severityCritical, 1, severityNonCritical), event.PowerOn, severityNonCritical},
		{"the lower policy's, in the other order", filters(1, severityNonCritical, 2, severityCritical), event.PowerOn, severityNonCritical},
	} {
		t.Run(tt.name, func(t *testing.T) {
			w := watch(t)
			w.set(t, wire.SensorEvent, 0x12, "01 01")          // PEF
			w.set(t, wire.SensorEvent, 0x12, "02 01")          // alerts
			w.set(t, wire.SensorEvent, 0x12, "09 01 18 11 00") // policy 1 alerts destination 1
			w.set(t, wire.SensorEvent, 0x12, "09 02 28 11 00") // and so does policy 2
			w.set(t, wire.Transport, 0x01, "01 13 01 00 00 7f 00 00 07 00 00 00 00 00 00")
			for _, f := range tt.filters {
				w.set(t, wire.SensorEvent, 0x12, f)
			}
			w.happens(t, event.Note{Kind: tt.kind, Subject: systemSubject, Args: []string{"1", "NIC.1"}})
			w.settle(t)
			if len(w.traps) != 1 {
				t.Fatalf("%d alerts, want 1", len(w.traps))
			}
			const severityField = 26 // after GUID, sequence number, time, UTC offset and two sources (table 17-7)
			if _, _, fields := parsePET(t, w.traps[0].Packet); fields[severityField] != tt.want {
				t.Errorf("severity %02x, want %02x", fields[severityField], tt.want)
			}
		})
	}
}

// The next entry of a policy depends on whether the last alert was delivered
// (table 17-4) (statement I45).
func TestAlertPolicyContinuesWithTheNextEntry(t *testing.T) {
	for _, tt := range []struct {
		second string // rule of the second entry
		came   bool
		want   string // last bytes of the addresses that were alerted
	}{{"18", true, "1 2 3"}, {"18", false, "1 2 3"}, {"19", true, "1 3"}, {"19", false, "1 2 3"}, {"1a", true, "1"}, {"1a", false, "1 2 3"}, {"10", true, "1 3"}} {
		w := watch(t)
		w.set(t, wire.SensorEvent, 0x12, "01 01")
		w.set(t, wire.SensorEvent, 0x12, "02 01")
		for n := 1; n <= 3; n++ {
			rule := map[int]string{1: "18", 2: tt.second, 3: "18"}[n]
			w.set(t, wire.SensorEvent, 0x12, fmt.Sprintf("09 %02x %s %02x 00", n, rule, 0x10|n))
			w.set(t, wire.Transport, 0x01, fmt.Sprintf("01 13 %02x 00 00 7f 00 00 %02x 00 00 00 00 00 00", n, n))
		}
		w.happens(t, tooHot)
		var got []string
		for len(w.later) > 0 {
			w.settle(t)
			for _, x := range w.traps {
				got = append(got, fmt.Sprint(x.To.As4()[3]))
			}
			sent := w.traps
			w.traps = nil
			for _, x := range sent {
				x.Done(tt.came)
			}
		}
		if s := strings.Join(got, " "); s != tt.want {
			t.Errorf("rule %s, came %t: alerted %q, want %q", tt.second, tt.came, s, tt.want)
		}
	}
}

// Filter actions reset the system, in the priority of §17.6 (statement I45).
func TestFilterActions(t *testing.T) {
	for _, tt := range []struct {
		acts, enabled byte
		phase         machine.Phase
		cause         machine.ResetCause
	}{
		{actPowerOff | actReset | actCycle, actions, machine.Off, ""},
		{actReset, actions, machine.POST, ""},
		{actInterrupt, actions, machine.Crashed, ""},
		{actPowerOff, actions &^ actPowerOff, machine.Running, ""},
	} {
		w := watch(t)
		w.running(t)
		w.set(t, wire.SensorEvent, 0x12, "01 03")
		w.set(t, wire.SensorEvent, 0x12, fmt.Sprintf("02 %02x", tt.enabled))
		w.set(t, wire.SensorEvent, 0x12, fmt.Sprintf("06 0f 80 %02x 00 00 ff ff 01 ff ff ff ff 00 00 00 00 00 00 00 00 00", tt.acts))
		w.set(t, wire.SensorEvent, 0x12, "07 02 40") // else it would alert
		boots := w.Machine().Boots
		w.happens(t, tooHot)
		w.settle(t)
		w.advance(30 * time.Second)
		switch v := w.Machine(); {
		case tt.phase == machine.POST:
			if v.Boots != boots+1 {
				t.Errorf("actions %02x: %s, boot %d", tt.acts, v.Phase, v.Boots)
			}
		case v.Phase != tt.phase:
			t.Errorf("actions %02x: %s, want %s", tt.acts, v.Phase, tt.phase)
		}
		e, ok := w.BMC().Log.After(0)
		for is := e; ok; is, ok = w.BMC().Log.After(is.ID) {
			e = is
			if is.Record != nil {
				break
			}
		}
		if acts := tt.acts&tt.enabled != 0; acts != (e != nil && e.Record != nil && e.Record[14] == tt.acts&tt.enabled) {
			t.Errorf("actions %02x of %02x: the log has %+v", tt.acts, tt.enabled, e)
		}
	}
}

// After a start of the system, actions and alerts wait for the startup delays
// when they are enabled (§17.4).
func TestActionsAreDelayed(t *testing.T) {
	w := watch(t)
	w.running(t)
	started := w.Machine().Reset.At
	w.set(t, wire.SensorEvent, 0x12, "01 0d")
	w.set(t, wire.SensorEvent, 0x12, "02 3f")
	w.set(t, wire.SensorEvent, 0x12, "03 ff")
	w.set(t, wire.SensorEvent, 0x12, "04 0a")
	w.set(t, wire.SensorEvent, 0x12, "06 0f 80 03 01 00 ff ff 01 ff ff ff ff 00 00 00 00 00 00 00 00 00")
	w.now = started.Add(5 * time.Second)
	w.happens(t, tooHot)
	if len(w.later) != 2 || w.later[0].after != 250*time.Second || w.later[1].after != 5*time.Second {
		t.Errorf("%+v", w.later)
	}
	// Disabling PEF cancels the actions and alerts that wait.
	w.set(t, wire.SensorEvent, 0x12, "01 00")
	w.settle(t)
	if len(w.traps) != 0 || w.Machine().Phase != machine.Running {
		t.Errorf("%d alerts, %s", len(w.traps), w.Machine().Phase)
	}
}

// Events that software has not processed are filtered when the postpone timer
// expires (§30.2) (statement I45).
func TestPostponedEventsAlertAfterTheTimer(t *testing.T) {
	w := watch(t)
	w.set(t, wire.SensorEvent, 0x12, "01 01")
	w.set(t, wire.SensorEvent, 0x12, "02 01")
	w.set(t, wire.SensorEvent, 0x12, "09 01 18 11 00")
	w.set(t, wire.Transport, 0x01, "01 13 01 00 00 7f 00 00 01 00 00 00 00 00 00")
	w.set(t, wire.SensorEvent, 0x11, "05")
	w.happens(t, tooHot)
	if len(w.later) != 0 {
		t.Error("PEF acts before the postpone timer expires")
	}
	w.now = w.now.Add(5 * time.Second)
	evs := w.bmc.Advance(w.now)
	w.changed()
	w.state.Alerts.FilterEvents(w.host, w.now, evs)
	w.settle(t)
	if len(w.traps) != 1 {
		t.Errorf("%d alerts", len(w.traps))
	}
}

// TestAlertImmediate shows statement I46.
func TestAlertImmediate(t *testing.T) {
	w := watch(t)
	exchanges{
		{"no status", "01 40 00", Completed, "00"},
		{"no such destination", "01 05 00", ParameterOutOfRange, ""},
		{"no such string", "01 01 89", ParameterOutOfRange, ""},
		{"no such channel", "03 01 00", InvalidDataField, ""},
		{"reserved", "01 c1 00", InvalidDataField, ""},
		{"reserved", "01 11 00", InvalidDataField, ""},
		{"half of an event", "01 01 00 20 04", DataLengthInvalid, ""},
		{"without an address", "01 01 00", Completed, ""},
		{"it is lost", "01 40 00", Completed, "03"},
		{"forget", "01 80 00", Completed, ""},
		{"no status", "01 40 00", Completed, "00"},
	}.try(t, w.host, wire.SensorEvent, 0x16)
	w.set(t, wire.Transport, 0x01, "01 13 00 00 00 7f 00 00 09 00 00 00 00 00 00")
	w.set(t, wire.SensorEvent, 0x12, "0d 00 01 54 65 73 74")
	exchanges{
		{"volatile destination and string", "0e 00 80", Completed, ""},
		{"under way", "01 40 00", Completed, "ff"},
		{"another", "01 00 00", alertAlreadyInProgress, ""},
	}.try(t, w.host, wire.SensorEvent, 0x16)
	_, specific, fields := parsePET(t, w.traps[0].Packet)
	if w.traps[0].To.String() != "127.0.0.9" || specific != 0x246f02 || !strings.Contains(string(fields), "Test") {
		t.Errorf("%v, %06x, %q", w.traps[0].To, specific, fields)
	}
	w.traps[0].Done(true)
	exchanges{
		{"it has come", "01 40 00", Completed, "01"},
		{"with an event", "01 00 00 41 04 01 30 81 09 0a 0b", Completed, ""},
	}.try(t, w.host, wire.SensorEvent, 0x16)
	_, specific, fields = parsePET(t, w.traps[1].Packet)
	if specific != 0x010189 || tohex(fields[24:33]) != "20 21 00 41 30 00 00 09 0a" {
		t.Errorf("%06x, % x", specific, fields)
	}
	if n := w.BMC().Log.Len(); n != 0 {
		t.Errorf("alerts that were asked for are logged: %d entries", n)
	}
}

// TestPETAcknowledge shows statement I46.
func TestPETAcknowledge(t *testing.T) {
	h := newHost(t)
	var came []uint16
	h.state.Alerts.Acknowledged = func(_ Host, n uint16) { came = append(came, n) }
	code, out := askAs(t, h, 0, wire.SensorEvent, 0x17, unhex(t, "02 01 00 00 00 00 20 20 30 09 ff ff")...)
	if code != Completed || out != nil || len(came) != 1 || came[0] != 0x0102 {
		t.Errorf("%02X [% x], %x", byte(code), out, came)
	}
	if code, _ := askAs(t, h, 0, wire.SensorEvent, 0x17, 1); code != DataLengthInvalid {
		t.Errorf("short: %02X", byte(code))
	}
}

// parsePET reads a trap as RFC 1157 has it, with another reader of ASN.1 than
// ours.
func parsePET(t *testing.T, b []byte) (community string, specific int, fields []byte) {
	t.Helper()
	var m struct {
		Version   int
		Community []byte
		Trap      asn1.RawValue
	}
	rest, err := asn1.Unmarshal(b, &m)
	must(t, err)
	if len(rest) != 0 || m.Version != 0 || m.Trap.Class != asn1.ClassContextSpecific || m.Trap.Tag != 4 {
		t.Fatalf("% x: no trap of SNMPv1", b)
	}
	var enterprise asn1.ObjectIdentifier
	var agent, ticks asn1.RawValue
	var generic int
	var bindings []struct {
		Name  asn1.ObjectIdentifier
		Value []byte
	}
	body := m.Trap.Bytes
	for _, into := range []any{&enterprise, &agent, &generic, &specific, &ticks, &bindings} {
		body, err = asn1.Unmarshal(body, into)
		must(t, err)
	}
	const pet = "1.3.6.1.4.1.3183.1.1"
	if enterprise.String() != pet || generic != 6 || len(agent.Bytes) != 4 || len(body) != 0 || len(bindings) != 1 || bindings[0].Name.String() != pet+".1" {
		t.Fatalf("% x: enterprise %v, generic %d, agent % x, bindings %+v", b, enterprise, generic, agent.Bytes, bindings)
	}
	return string(m.Community), specific, bindings[0].Value
}
