package redfish

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/metalab-dev/metalab/emulator/bmc"
	"github.com/metalab-dev/metalab/emulator/machine"
	"github.com/metalab-dev/metalab/emulator/machine/event"
	"github.com/metalab-dev/metalab/emulator/redfish/resource"
)

func TestForeignSELRecordsAreDecoded(t *testing.T) {
	h := newHost(t)
	s := newService(t, h)
	for _, r := range [][]byte{
		{2: 0x02, 7: 0x41, 8: 0x10, 9: 4, 10: 0x01, 11: 0x30, 12: 0x01, 13: 0x59, 14: 0x5c, 15: 0x5a},
		{2: 0x02, 7: 0x20, 9: 4, 10: 0x08, 11: 0x31, 12: 0xef, 13: 0x01, 14: 0xff, 15: 0xff},
		{2: 0x02, 7: 0x20, 9: 4, 10: 0xc1, 11: 0x32, 12: 0x70, 13: 0x0e, 14: 0xff, 15: 0xff},
		{2: 0xe5, 3: 0xaa, 15: 0xbb},
	} {
		_, err := h.ApplyBMC(t.Context(), bmc.AddSELRecord{Record: r, Severity: event.Warning, Subject: event.Subject{Part: event.System}})
		must(t, err)
	}
	for i, want := range []resource.Object{
		{
			"EntryType": "SEL", "Severity": "Warning", "SensorType": "Temperature", "EntryCode": "Upper Critical - going high", "SensorNumber": 48.0,
			"GeneratorId": "0x1041", "MessageId": "0x595C5A", "Message": "00 00 02 00 00 00 00 41 10 04 01 30 01 59 5C 5A",
		},
		{"EntryType": "SEL", "SensorType": "Power Supply / Converter", "EntryCode": "Deassert", "OemLogEntryCode": nil},
		{"EntryType": "SEL", "SensorType": "OEM", "OemSensorType": "C1h", "EntryCode": "OEM", "OemLogEntryCode": "70h/Eh"},
		{"EntryType": "Oem", "OemRecordFormat": "IPMI SEL record of type E5h", "SensorType": nil, "MessageId": nil},
	} {
		body, _ := get(t, s, selURI+"/Entries/"+string(rune('1'+i)))
		for name, value := range want {
			if d := cmp.Diff(value, body[name]); d != "" {
				t.Errorf("entry %d, %s (-want +got):\n%s", i+1, name, d)
			}
		}
	}
	if _, err := openBundle(); err == nil {
		walk(t, s, newSchemas(t))
	}
}

func TestLogServiceDisabled(t *testing.T) {
	h := newHost(t)
	s := newService(t, h)
	if w := call(t, s, "operator", "PATCH", selURI, `{"ServiceEnabled":false}`); w.Code != 200 {
		t.Fatalf("%s", shape("PATCH", selURI, "", w))
	}
	must(t, h.Apply(t.Context(), machine.Reset{Kind: machine.ResetOn}))
	if body, _ := get(t, s, selURI); body["ServiceEnabled"] != false || h.BMC().Log.Len() != 0 {
		t.Errorf("%v, %d entries", body, h.BMC().Log.Len())
	}
	if w := call(t, s, "admin", "PATCH", auditLog, `{"ServiceEnabled":false}`); w.Code != 405 {
		t.Errorf("%s", shape("PATCH", auditLog, "", w))
	}
}
