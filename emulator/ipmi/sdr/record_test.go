package sdr

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestRecords(t *testing.T) {
	nominal := byte(22)
	key := Key{Owner: 0x20, Number: 1, Entity: Entity{0x37, 1}, Type: 1, Reading: ThresholdReading, Name: "Inlet Temp"}
	for name, tt := range map[string]struct{ got, want []byte }{
		"full": {
			Full{
				Key: key, Unit: 1, Factors: Factors{M: 1, Signed: true}, Nominal: &nominal, Hysteresis: 2, NegativeHysteresis: 3,
				Thresholds: Thresholds{Has: 1<<LowCaution | 1<<LowCritical | 1<<Caution | 1<<Critical, At: [6]byte{5, 0, 0, 38, 42, 0}},
			}.Append(nil, 0x0102),
			[]byte{
				0x02, 0x01, 0x51, 0x01, 53, 0x20, 0, 1, 0x37, 1, 0x7b, 0x68, 0x01, 0x01,
				0x85, 0x32, 0x85, 0x32, 0x1b, 0x1b, 0x80, 1, 0, 0, 1, 0, 0, 0, 0, 0, 1, 22, 0, 0, 0x7f, 0x80,
				0, 42, 38, 0, 0, 5, 2, 3, 0, 0, 0, 0xca, 'I', 'n', 'l', 'e', 't', ' ', 'T', 'e', 'm', 'p',
			},
		},
		"full without thresholds": {
			Full{Key: Key{Owner: 0x20, Number: 9, Entity: Entity{0x0a, 2}, Type: 0x0b, Reading: 1, Name: "W"}, Unit: 6, Direction: 1, Factors: Factors{M: 300, Exp: -2}}.Append(nil, 2),
			[]byte{
				2, 0, 0x51, 0x01, 45, 0x20, 0, 9, 0x0a, 2, 0x41, 0x43, 0x0b, 0x01, 0, 0, 0, 0, 0, 0, 0, 6, 0, 0,
				0x2c, 0x40, 0, 0, 1, 0xe0, 0, 0, 0, 0, 0xff, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xc2, 'W', ' ',
			},
		},
		"compact": {
			Compact{Key: Key{Owner: 0x20, Number: 0x30, Entity: Entity{0x0a, 1}, Type: 8, Reading: SpecificReading, Name: "PSU 1 Status"}, Asserts: 0x0b, Deasserts: 0x0a, States: 0x0b}.Append(nil, 3),
			[]byte{
				3, 0, 0x51, 0x02, 39, 0x20, 0, 0x30, 0x0a, 1, 0x03, 0x42, 8, 0x6f, 0x0b, 0, 0x0a, 0, 0x0b, 0, 0xc0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0,
				0xcc, 'P', 'S', 'U', ' ', '1', ' ', 'S', 't', 'a', 't', 'u', 's',
			},
		},
		"event-only": {
			EventOnly{Key{Owner: 0x20, Number: 0x7f, Entity: Entity{0x07, 1}, Type: 0x13, Reading: SpecificReading, Name: "NMI"}}.Append(nil, 6),
			[]byte{6, 0, 0x51, 0x03, 15, 0x20, 0, 0x7f, 0x07, 1, 0x13, 0x6f, 1, 0, 0, 0, 0xc3, 'N', 'M', 'I'},
		},
		"FRU": {
			FRU{Owner: 0x20, ID: 3, Entity: Entity{0x20, 4}, Name: "A name that is too long"}.Append(nil, 4),
			append([]byte{4, 0, 0x51, 0x11, 27, 0x20, 3, 0x80, 0, 0, 0x10, 0, 0x20, 4, 0, 0xd0}, "A name that is t"...),
		},
		"controller": {
			Controller{Address: 0x2c, Global: 0, Devices: 0x20, Entity: Entity{0x2e, 1}, Name: "ME"}.Append(nil, 5),
			[]byte{5, 0, 0x51, 0x12, 13, 0x2c, 0, 0, 0x20, 0, 0, 0, 0x2e, 1, 0, 0xc2, 'M', 'E'},
		},
	} {
		if d := cmp.Diff(tt.want, tt.got); d != "" {
			t.Errorf("%s (-want +got):\n%s", name, d)
		}
	}
}

// Append adds a record after the bytes that the buffer has already; the length
// in its header counts that record alone.
func TestAppendKeepsEarlierRecords(t *testing.T) {
	one := Controller{Address: 0x20, Name: "BMC"}
	all := one.Append(one.Append(nil, 1), 2)
	if half := len(all) / 2; all[4] != all[half+4] || all[half] != 2 || int(all[4]) != half-HeaderSize {
		t.Errorf("% x", all)
	}
}

func TestEventsOfThresholds(t *testing.T) {
	for i, want := range []uint16{1 << 0, 1 << 2, 1 << 4, 1 << 7, 1 << 9, 1 << 11} {
		if got := Event(i); got != want {
			t.Errorf("threshold %d: event %#x, want %#x", i, got, want)
		}
	}
}

func TestDiscreteRecords(t *testing.T) {
	full := Full{
		Key: Key{Owner: 0x20, Number: 1, Entity: Entity{0x37, 1}, Type: 1, Reading: ThresholdReading, Name: "Inlet"}, Unit: 1, Factors: Factors{M: 1},
		Thresholds: Thresholds{Has: 1<<Caution | 1<<Critical, At: [6]byte{0, 0, 0, 38, 42, 0}},
	}.Append(nil, 1)
	was := append([]byte(nil), full...)
	got := AsDiscrete(full)
	want := append([]byte(nil), full...)
	want[11], want[13] = 0x60, 0x07
	clear(want[14:20])
	if d := cmp.Diff(want, got); d != "" {
		t.Errorf("full (-want +got):\n%s", d)
	}
	if d := cmp.Diff(was, full); d != "" {
		t.Errorf("the record that others share has changed:\n%s", d)
	}
	compact := Compact{Key: Key{Owner: 0x20, Number: 2, Name: "PSU"}}.Append(nil, 2)
	if d := cmp.Diff(compact, AsDiscrete(compact)); d != "" {
		t.Errorf("compact (-want +got):\n%s", d)
	}
}

func TestForeignRecords(t *testing.T) {
	compact := Compact{Key: Key{Owner: 0x20, Number: 2, Name: "PSU"}}.Append(nil, 2)
	want := append([]byte(nil), compact...)
	want[5] = 0x24
	if d := cmp.Diff(want, AsForeign(compact)); d != "" {
		t.Errorf("compact (-want +got):\n%s", d)
	}
	if compact[5] != 0x20 {
		t.Error("the record that others share has changed")
	}
	fru := FRU{Owner: 0x20, Name: "FRU"}.Append(nil, 3)
	if d := cmp.Diff(fru, AsForeign(fru)); d != "" {
		t.Errorf("FRU (-want +got):\n%s", d)
	}
}
