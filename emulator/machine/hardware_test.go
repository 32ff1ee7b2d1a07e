package machine

import (
	"errors"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/metalab-dev/metalab/emulator/machine/event"
	"github.com/metalab-dev/metalab/emulator/machine/storage"
)

func TestSetLink(t *testing.T) {
	m := newMachine(t)
	for _, tt := range []struct {
		nic  string
		up   bool
		want []event.Kind
		down []string
	}{
		{"2", false, []event.Kind{event.LinkDown}, []string{"2"}}, {"2", false, nil, []string{"2"}},
		{"1", false, []event.Kind{event.LinkDown}, []string{"1", "2"}}, {"2", true, []event.Kind{event.LinkUp}, []string{"1"}},
	} {
		evs, err := m.Apply(origin, SetLink{NIC: tt.nic, Up: tt.up})
		if err != nil || !slices.Equal(notes(evs), tt.want) || !slices.Equal(m.View().Cabling.Down, tt.down) {
			t.Errorf("SetLink(%s, %t) = %v, %v; down are %v", tt.nic, tt.up, notes(evs), err, m.View().Cabling.Down)
		}
	}
	if _, err := m.Apply(origin, SetLink{NIC: "9"}); !errors.Is(err, ErrUnknown) {
		t.Errorf("SetLink(9) = %v, want %v", err, ErrUnknown)
	}
}

func TestFunctionsOfCards(t *testing.T) {
	p := &Profile{
		NICs: []NICModel{{ID: "1", PCIAddress: "0000:3b:00.0"}, {ID: "2", PCIAddress: "0000:3b:00.1"}, {ID: "3"}},
		Cards: []Card{
			{ID: "a", NICs: []string{"2", "1"}}, {ID: "b", PCIVendor: "0x1000", PCIDevice: "0x0014", PCIAddress: "0000:65:00.0", Storage: "1"},
		},
	}
	want := []PCIFunction{{ID: "0", PCIAddress: "0000:3b:00.1", NIC: "2"}, {ID: "1", PCIAddress: "0000:3b:00.0", NIC: "1"}}
	if d := cmp.Diff(want, p.Functions(p.Cards[0])); d != "" {
		t.Errorf("functions of a network card (-want +got):\n%s", d)
	}
	want = []PCIFunction{{ID: "0", PCIVendor: "0x1000", PCIDevice: "0x0014", PCIAddress: "0000:65:00.0"}}
	if d := cmp.Diff(want, p.Functions(p.Cards[1])); d != "" {
		t.Errorf("functions of a controller (-want +got):\n%s", d)
	}
	if c, ok := p.CardOf("1"); !ok || c.ID != "a" {
		t.Errorf("CardOf(1) = %s, %t", c.ID, ok)
	}
	if c, ok := p.CardOf("3"); ok {
		t.Errorf("CardOf(3) = %s, which is on no card", c.ID)
	}
	c := &storage.Controller{ControllerModel: &storage.ControllerModel{ID: "1"}}
	for proto, want := range map[storage.Protocol]string{
		storage.SATA: "PciRoot(0x65)/Pci(0x0,0x0)/Sata(0x3,0xFFFF,0x0)",
		storage.SAS:  "PciRoot(0x65)/Pci(0x0,0x0)/SAS(0x3AB,0x0,0x0,NoTopology,0,0,0x0)",
		storage.NVMe: "PciRoot(0x83)/Pci(0x0,0x0)/NVMe(0x1,3A)",
	} {
		wwn := map[storage.Protocol]string{storage.SAS: "3ab", storage.NVMe: "3a"}[proto]
		d := &storage.DriveView{Model: &storage.Model{Protocol: proto}, Bay: 3, WWN: wwn}
		if got := p.drivePath(c, d); got != want {
			t.Errorf("path of a %s drive = %s, want %s", proto, got, want)
		}
	}
}
