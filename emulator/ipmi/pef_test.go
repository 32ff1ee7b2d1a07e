package ipmi

import (
	"context"
	"encoding/asn1"
	"encoding/binary"
	"fmt"
	"net/netip"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/metalab-dev/metalab/emulator/bmc"
	"github.com/metalab-dev/metalab/emulator/ipmi/wire"
	"github.com/metalab-dev/metalab/emulator/machine"
	"github.com/metalab-dev/metalab/emulator/machine/event"
	"github.com/metalab-dev/metalab/emulator/machine/event/sel"
)

func TestPEFParameters(t *testing.T) {
	h := newHost(t)
	exchanges{{"capabilities", "", Done, "51 2f 14"}}.try(t, h, wire.SensorEvent, 0x10)
	zeros := strings.Repeat(" 00", stringBlock)
	exchanges{
		{"progress", "00 00 00", Done, "11 00"},
		{"control", "01 00 00", Done, "11 00"},
		{"revision alone", "81 00 00", Done, "11"},
		{"actions", "02 00 00", Done, "11 00"},
		{"delay", "03 00 00", Done, "11 3c"},
		{"delay of alerts", "04 00 00", Done, "11 3c"},
		{"number of filters", "05 00 00", Done, "11 14"},
		{"a filter", "06 01 00", Done, "11 01 c0 01 01 08 ff ff 01 ff 01 81 00 00 00 00 00 00 00 00 00 00"},
		{"an empty one", "06 14 00", Done, "11 14 00 00 00 00 00 00 00 00 00 00 00 00 00 00 00 00 00 00 00 00"},
		{"filter 0", "06 00 00", OutOfRange, ""},
		{"filter 21", "06 15 00", OutOfRange, ""},
		{"its first byte", "07 01 00", Done, "11 01 c0"},
		{"number of policies", "08 00 00", Done, "11 10"},
		{"a policy", "09 01 00", Done, "11 01 10 11 00"},
		{"policy 17", "09 11 00", OutOfRange, ""},
		{"GUID", "0a 00 00", Done, "11 00" + zeros},
		{"number of strings", "0b 00 00", Done, "11 08"},
		{"key", "0c 08 00", Done, "11 08 00 00"},
		{"key 9", "0c 09 00", OutOfRange, ""},
		{"string", "0d 08 04", Done, "11 08 04" + zeros},
		{"block 0", "0d 08 00", OutOfRange, ""},
		{"block 5", "0d 08 05", OutOfRange, ""},
		{"group control", "0e 00 00", noParam, ""},
		{"OEM", "60 00 00", noParam, ""},
		{"OEM, revision", "e0 00 00", noParam, ""},
		{"short", "01 00", BadLength, ""},
	}.try(t, h, wire.SensorEvent, 0x13)
	exchanges{
		{"begun", "00 01", Done, ""},
		{"begun twice", "00 01", setAlready, ""},
		{"what is set holds", "00 02", Done, ""},
		{"reserved", "00 03", BadField, ""},
		{"control", "01 0f", Done, ""},
		{"reserved control", "01 10", BadField, ""},
		{"too long", "01 01 01", BadLength, ""},
		{"all actions that there are", "02 3f", Done, ""},
		{"reserved action", "02 40", BadField, ""},
		{"read-only", "05 01", paramReadOnly, ""},
		{"read-only", "08 01", paramReadOnly, ""},
		{"no such parameter", "0e 01", noParam, ""},
		{"revision", "81 01", BadField, ""},
		{"filter", "06 0c 80 3f 22 10 20 00 01 30 01 00 02 00 ff 00 00 ff 00 00 ff 00", Done, ""},
		{"filter 0", "06 00 80 3f 22 10 20 00 01 30 01 00 02 00 ff 00 00 ff 00 00 ff 00", OutOfRange, ""},
		{"short filter", "06 0c 80", BadLength, ""},
		{"nothing of it", "06", BadLength, ""},
		{"reserved type", "06 0c a0 3f 22 10 20 00 01 30 01 00 02 00 ff 00 00 ff 00 00 ff 00", BadField, ""},
		{"off", "07 01 40", Done, ""},
		{"policy", "09 02 28 12 81", Done, ""},
		{"GUID", "0a 01 00 11 22 33 44 55 66 77 88 99 aa bb cc dd ee ff", Done, ""},
		{"key", "0c 02 0c 01", Done, ""},
		{"reserved key", "0c 02 8c 01", BadField, ""},
		{"string", "0d 02 01 61 62 63", Done, ""},
		{"its end", "0d 02 02 64 00", Done, ""},
		{"empty block", "0d 02 02", BadLength, ""},
		{"key 0", "0c 00 01 02", Done, ""},
		{"string 0", "0d 00 01 78 79", Done, ""},
		{"nothing", "", BadLength, ""},
	}.try(t, h, wire.SensorEvent, 0x12)
	want := exchanges{
		{"progress", "00 00 00", Done, "11 01"},
		{"control", "01 00 00", Done, "11 0f"},
		{"actions", "02 00 00", Done, "11 2f"},
		{"filter", "06 0c 00", Done, "11 0c 80 2f 22 10 20 00 01 30 01 00 02 00 ff 00 00 ff 00 00 ff 00"},
		{"off", "06 01 00", Done, "11 01 40 01 01 08 ff ff 01 ff 01 81 00 00 00 00 00 00 00 00 00 00"},
		{"policy", "09 02 00", Done, "11 02 28 12 81"},
		{"GUID", "0a 00 00", Done, "11 01 00 11 22 33 44 55 66 77 88 99 aa bb cc dd ee ff"},
		{"key", "0c 02 00", Done, "11 02 0c 01"},
		{"string", "0d 02 01", Done, "11 02 01 61 62 63" + zeros[9:]},
		{"its end", "0d 02 02", Done, "11 02 02 64" + zeros[3:]},
		{"key 0", "0c 00 00", Done, "11 00 01 02"},
		{"string 0", "0d 00 01", Done, "11 00 01 78 79" + zeros[6:]},
	}
	want.try(t, h, wire.SensorEvent, 0x13)
	// The BMC forgets only what is said to be volatile.
	_, err := h.ApplyBMC(t.Context(), bmc.Restart{Kind: bmc.ForceRestart})
	must(t, err)
	h.pass(time.Hour)
	want[0].want, want[10].want, want[11].want = "11 00", "11 00 00 00", "11 00 01"+zeros
	want.try(t, h, wire.SensorEvent, 0x13)
}

func TestPEFProgressEndsWithTheSystem(t *testing.T) {
	h := newHost(t)
	exchanges{{"begun", "00 01", Done, ""}}.try(t, h, wire.SensorEvent, 0x12)
	h.running(t)
	exchanges{{"complete", "00 00 00", Done, "11 00"}}.try(t, h, wire.SensorEvent, 0x13)
}

func TestPostponeTimer(t *testing.T) {
	h := newHost(t)
	exchanges{{"nobody has armed it", "ff", Done, "00"}, {"armed", "3c", Done, "3c"}}.try(t, h, wire.SensorEvent, 0x11)
	h.hear(event.Note{At: h.now, Kind: event.PowerOn, Subject: systemSubject})
	h.pass(10 * time.Second)
	exchanges{{"it runs", "ff", Done, "32"}}.try(t, h, wire.SensorEvent, 0x11)
	exchanges{{"waits", "", Done, march1 + " 01 00 ff ff ff ff"}}.try(t, h, wire.SensorEvent, 0x15)
	exchanges{{"seen to", "00 01 00", Done, ""}}.try(t, h, wire.SensorEvent, 0x14)
	exchanges{{"it stands", "ff", Done, "3c"}, {"all off", "fe", Done, "fe"}, {"asked", "ff", Done, "fe"}, {"on", "00", Done, "00"}}.try(t, h, wire.SensorEvent, 0x11)
}

func TestLastProcessed(t *testing.T) {
	h := newHost(t)
	exchanges{{"empty", "", Done, "ff ff ff ff ff ff ff ff ff ff"}}.try(t, h, wire.SensorEvent, 0x15)
	for range 3 {
		ask(t, h, wire.Storage, 0x44, unhex(t, aRecord)...)
	}
	exchanges{{"three", "", Done, march1 + " 03 00 ff ff 03 00"}}.try(t, h, wire.SensorEvent, 0x15)
	exchanges{
		{"software", "00 02 00", Done, ""}, {"BMC", "01 01 00", Done, ""}, {"no such record", "00 09 00", NotPresent, ""}, {"reserved", "02 01 00", BadField, ""},
	}.try(t, h, wire.SensorEvent, 0x14)
	exchanges{{"as was said", "", Done, march1 + " 03 00 02 00 01 00"}}.try(t, h, wire.SensorEvent, 0x15)
	ask(t, h, wire.Storage, 0x44, unhex(t, aRecord)...)
	exchanges{{"one more", "", Done, march1 + " 04 00 02 00 04 00"}}.try(t, h, wire.SensorEvent, 0x15)
	_, err := h.ApplyBMC(t.Context(), bmc.ClearLog{Book: bmc.EventLog}) // as Redfish does
	must(t, err)
	exchanges{{"cleared", "", Done, march1 + " ff ff ff ff ff ff"}}.try(t, h, wire.SensorEvent, 0x15)
}

func TestFilters(t *testing.T) {
	e := sel.Event{Generator: 0x0020, Sensor: sel.Temperature, Number: 0x30, Type: sel.Threshold, Data: [3]byte{0x59, 0x5c, 0x5a}}
	for _, tt := range []struct {
		name  string
		at    int // byte of a filter that matches all, counted from 0
		value []byte
		want  bool
	}{
		{"all", 0, []byte{0x80}, true},
		{"off", 0, []byte{0x00}, false},
		{"generator", 4, []byte{0x20, 0x00}, true},
		{"another generator", 4, []byte{0x41}, false},
		{"another channel", 5, []byte{0x10}, false},
		{"sensor type", 6, []byte{0x01, 0x30, 0x01}, true},
		{"another type", 6, []byte{0x02}, false},
		{"another number", 7, []byte{0x31}, false},
		{"deassertion", 8, []byte{0x81}, false},
		{"offset", 9, []byte{0x00, 0x02}, true},
		{"another offset", 9, []byte{0xff, 0xfd}, false},
		{"reading exactly", 14, []byte{0xff, 0xff, 0x5c}, true},
		{"another reading", 14, []byte{0xff, 0xff, 0x5d}, false},
		{"bits of it", 14, []byte{0x0f, 0xff, 0x0c}, true},
		{"one bit of two is set", 14, []byte{0x06, 0xf9, 0x06}, true},
		{"neither bit is set", 14, []byte{0x22, 0xdd, 0x22}, false},
		{"one bit of two is clear", 14, []byte{0x06, 0xf9, 0x00}, true},
		{"high half exactly, any of the low", 14, []byte{0xff, 0xf0, 0x5f}, true},
		{"high half differs", 14, []byte{0xff, 0xf0, 0xaf}, false},
		{"threshold", 17, []byte{0xff, 0xff, 0x5a}, true},
		{"another threshold", 17, []byte{0xff, 0xff, 0x5b}, false},
	} {
		f := filter{0: 0x80, 4: 0xff, 5: 0xff, 6: 0xff, 7: 0xff, 8: 0xff, 9: 0xff, 10: 0xff}
		copy(f[tt.at:], tt.value)
		if got := f.matches(e); got != tt.want {
			t.Errorf("%s: matches = %t, want %t", tt.name, got, tt.want)
		}
	}
}

// watched is a host whose alerts and actions are kept.
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
	var err error
	w.service, err = New(Config{
		Rack: w.host, Alert: func(_ Host, x Trap) { w.traps = append(w.traps, x) },
		Later: func(after time.Duration, do func(context.Context)) {
			w.later = append(w.later, struct {
				after time.Duration
				do    func(context.Context)
			}{after, do})
		},
	})
	must(t, err)
	return w
}

// settle does what was to be done later, and what follows from it.
func (w *watched) settle(t *testing.T) {
	for len(w.later) > 0 {
		next := w.later[0]
		w.later = w.later[1:]
		w.pass(next.after)
		next.do(t.Context())
	}
}

// happens has a note told, as a lab does.
func (w *watched) happens(t *testing.T, n event.Note) {
	t.Helper()
	n.At = w.now
	w.mu.Lock()
	evs := w.bmc.Hear(w.now, []event.Event{n})
	w.changed()
	w.mu.Unlock()
	w.service.Tell(w.host, w.now, evs)
}

func (w *watched) set(t *testing.T, fn wire.NetFn, cmd byte, data string) {
	t.Helper()
	if code, _ := ask(t, w.host, fn, cmd, unhex(t, data)...); code != Done {
		t.Fatalf("%02x/%02x [%s] = %02X", byte(fn), cmd, data, byte(code))
	}
}

var tooHot = event.Note{
	Kind: event.SensorTooHigh, Subject: event.Subject{Part: event.Sensor, ID: "InletTemp"}, Args: []string{"Inlet Temp", "43", "Cel", "42"},
}

func TestEventsAlert(t *testing.T) {
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
	if x.To != netip.MustParseAddr("127.0.0.7") || !x.Awaits || x.Times != 3 || x.Every != 5*time.Second {
		t.Errorf("%+v", x)
	}
	community, specific, fields := parsePET(t, x.Packet)
	is := eventOf(w.Machine(), &tooHot)
	if community != "lab" || specific != 0x010109 {
		t.Errorf("community %q, specific trap %06x", community, specific)
	}
	guid := guid(w.Machine().Identity.UUID)
	local := uint32(w.now.Sub(petEpoch) / time.Second)
	want := append(guid[:], 0, 1)
	want = binary.BigEndian.AppendUint32(want, local)
	want = append(want, 0xff, 0xff, 0x20, 0x20, isCritical, 0x20, is.Number, 0, 0, is.Data[0], is.Data[1], is.Data[2], 0, 0, 0, 0, 0, 0xff)
	want = binary.BigEndian.AppendUint32(want, w.d.IPMI.Manufacturer)
	want = binary.BigEndian.AppendUint16(want, w.d.IPMI.Product)
	want = append(want, 0x80, 0x43, 0x01, 'H', 'o', 't', 0xc1)
	if d := cmp.Diff(want, fields); d != "" {
		t.Errorf("fields (-want +got):\n%s", d)
	}

	// What does not match goes to nobody, nor what ends.
	w.traps = nil
	w.happens(t, event.Note{Kind: event.PowerOn, Subject: systemSubject})
	w.happens(t, event.Note{Kind: event.SensorBetter, Subject: tooHot.Subject, Args: []string{"Inlet Temp", "41", "Cel", "critical", "42"}})
	w.settle(t)
	if len(w.traps) != 0 {
		t.Errorf("%d alerts", len(w.traps))
	}
	// A channel that is mute alerts nobody.
	_, err := w.ApplyBMC(t.Context(), bmc.SetChannel{Channel: bmc.Channel{Mute: true}})
	must(t, err)
	w.happens(t, tooHot)
	w.settle(t)
	if len(w.traps) != 0 {
		t.Errorf("%d alerts on a channel that is mute", len(w.traps))
	}
}

// Who comes next in a policy depends on whether an alert has come.
func TestPoliciesGoOn(t *testing.T) {
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
			told := w.traps
			w.traps = nil
			for _, x := range told {
				x.Told(tt.came)
			}
		}
		if s := strings.Join(got, " "); s != tt.want {
			t.Errorf("rule %s, came %t: alerted %q, want %q", tt.second, tt.came, s, tt.want)
		}
	}
}

// Filters act on the system, in the order of §17.6.
func TestEventsAct(t *testing.T) {
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
		w.pass(30 * time.Second)
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
		if told := tt.acts&tt.enabled != 0; told != (e != nil && e.Record != nil && e.Record[14] == tt.acts&tt.enabled) {
			t.Errorf("actions %02x of %02x: the log tells %+v", tt.acts, tt.enabled, e)
		}
	}
}

// After a start of the system actions and alerts wait, if that is wanted.
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
	// Who switches PEF off meanwhile ends that.
	w.set(t, wire.SensorEvent, 0x12, "01 00")
	w.settle(t)
	if len(w.traps) != 0 || w.Machine().Phase != machine.Running {
		t.Errorf("%d alerts, %s", len(w.traps), w.Machine().Phase)
	}
}

// What software was given time for is acted on when that is over.
func TestUnattendedEventsAlert(t *testing.T) {
	w := watch(t)
	w.set(t, wire.SensorEvent, 0x12, "01 01")
	w.set(t, wire.SensorEvent, 0x12, "02 01")
	w.set(t, wire.SensorEvent, 0x12, "09 01 18 11 00")
	w.set(t, wire.Transport, 0x01, "01 13 01 00 00 7f 00 00 01 00 00 00 00 00 00")
	w.set(t, wire.SensorEvent, 0x11, "05")
	w.happens(t, tooHot)
	if len(w.later) != 0 {
		t.Error("it acts at once")
	}
	w.now = w.now.Add(5 * time.Second)
	evs := w.bmc.Advance(w.now)
	w.changed()
	w.service.Tell(w.host, w.now, evs)
	w.settle(t)
	if len(w.traps) != 1 {
		t.Errorf("%d alerts", len(w.traps))
	}
}

func TestAlertImmediate(t *testing.T) {
	w := watch(t)
	exchanges{
		{"no status", "01 40 00", Done, "00"},
		{"no such destination", "01 05 00", OutOfRange, ""},
		{"no such string", "01 01 89", OutOfRange, ""},
		{"no such channel", "03 01 00", BadField, ""},
		{"reserved", "01 c1 00", BadField, ""},
		{"reserved", "01 11 00", BadField, ""},
		{"half of an event", "01 01 00 20 04", BadLength, ""},
		{"without an address", "01 01 00", Done, ""},
		{"it is lost", "01 40 00", Done, "03"},
		{"forget", "01 80 00", Done, ""},
		{"no status", "01 40 00", Done, "00"},
	}.try(t, w.host, wire.SensorEvent, 0x16)
	w.set(t, wire.Transport, 0x01, "01 13 00 00 00 7f 00 00 09 00 00 00 00 00 00")
	w.set(t, wire.SensorEvent, 0x12, "0d 00 01 54 65 73 74")
	exchanges{
		{"volatile destination and string", "0e 00 80", Done, ""},
		{"under way", "01 40 00", Done, "ff"},
		{"another", "01 00 00", alertUnderWay, ""},
	}.try(t, w.host, wire.SensorEvent, 0x16)
	_, specific, fields := parsePET(t, w.traps[0].Packet)
	if w.traps[0].To.String() != "127.0.0.9" || specific != 0x246f02 || !strings.Contains(string(fields), "Test") {
		t.Errorf("%v, %06x, %q", w.traps[0].To, specific, fields)
	}
	w.traps[0].Told(true)
	exchanges{
		{"it has come", "01 40 00", Done, "01"},
		{"with an event", "01 00 00 41 04 01 30 81 09 0a 0b", Done, ""},
	}.try(t, w.host, wire.SensorEvent, 0x16)
	_, specific, fields = parsePET(t, w.traps[1].Packet)
	if specific != 0x010189 || tohex(fields[24:33]) != "20 21 00 41 30 00 00 09 0a" {
		t.Errorf("%06x, % x", specific, fields)
	}
	if n := w.BMC().Log.Len(); n != 0 {
		t.Errorf("alerts that were asked for are logged: %d entries", n)
	}
}

func TestPETAcknowledge(t *testing.T) {
	h := newHost(t)
	var came []uint16
	h.service.c.Acknowledged = func(_ Host, n uint16) { came = append(came, n) }
	code, out := askAs(t, h, 0, wire.SensorEvent, 0x17, unhex(t, "02 01 00 00 00 00 20 20 30 09 ff ff")...)
	if code != Done || out != nil || len(came) != 1 || came[0] != 0x0102 {
		t.Errorf("%02X [% x], %x", byte(code), out, came)
	}
	if code, _ := askAs(t, h, 0, wire.SensorEvent, 0x17, 1); code != BadLength {
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
