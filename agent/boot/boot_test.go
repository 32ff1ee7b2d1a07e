package boot

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestIndexFindsAndOrdersDrivers(t *testing.T) {
	x := Index{
		"virtio_net":   {Needs: []string{"net_failover", "virtio"}, Aliases: []string{"virtio:d00000001v*"}},
		"net_failover": {Needs: []string{"failover", "virtio_net"}}, // a cycle does no harm
		"virtio_pci":   {Needs: []string{"virtio", "built_in"}, Aliases: []string{"pci:v00001AF4d*sv*sd*bc*sc*i*"}},
		"failover":     {}, "virtio": {},
		"odd": {Aliases: []string{"pci:v[", "usb:v1"}},
	}
	for device, want := range map[string][]string{
		"virtio:d00000001v00001AF4":                             {"virtio_net"},
		"pci:v00001AF4d00001000sv00001AF4sd00000001bc02sc00i00": {"virtio_pci"},
		"usb:v1": {"odd"},
		"usb:v2": nil,
	} {
		if d := cmp.Diff(want, x.For(device)); d != "" {
			t.Errorf("For(%s) (-want +got):\n%s", device, d)
		}
	}
	for name, want := range map[string][]string{
		"virtio-net": {"failover", "net_failover", "virtio", "virtio_net"},
		"virtio_pci": {"virtio", "virtio_pci"},
		"built_in":   nil,
	} {
		if d := cmp.Diff(want, x.Order(name)); d != "" {
			t.Errorf("Order(%s) (-want +got):\n%s", name, d)
		}
	}
}
