package redfish

import (
	"strings"
	"testing"

	"github.com/metalab-dev/metalab/emulator/machine"
)

// Every part has a distinct serial number, the same in each resource that shows it.
func TestSerialNumbersAreUnique(t *testing.T) {
	s := newService(t, newHost(t))
	kinds := map[string]string{} // serial number → type of the part
	count := map[string]int{}    // type → number of parts
	for _, uri := range walk(t, s, nil) {
		body, _ := get(t, s, uri)
		serial, _ := body["SerialNumber"].(string)
		if serial == "" {
			continue
		}
		kind, _, _ := strings.Cut(strings.TrimPrefix(body["@odata.type"].(string), "#"), ".")
		if kind == "Certificate" { // its serial number is that of the issuer
			continue
		}
		count[kind]++
		// The system and its chassis are the same enclosure; a network adapter and a
		// controller are PCIe devices as well.
		same := map[string]string{"ComputerSystem": "box", "Chassis": "box", "NetworkAdapter": "PCIeDevice"}
		if k, ok := same[kind]; ok {
			kind = k
		}
		if kind != "PCIeDevice" && kind != "box" {
			kind = uri
		}
		if other, ok := kinds[serial]; ok && other != kind {
			t.Errorf("%s has the serial number of %s", uri, other)
		}
		kinds[serial] = kind
	}
	p := newHost(t).Machine().Profile
	for kind, want := range map[string]int{"Processor": p.Processors.Sockets, "Memory": p.Memory.Modules, "PCIeDevice": len(p.Cards), "TrustedComponent": 2, "NetworkAdapter": 1} {
		if count[kind] != want {
			t.Errorf("%d parts are a %s, want %d", count[kind], kind, want)
		}
	}
}

func TestMemorySummaryEqualsSumOfModules(t *testing.T) {
	s := newService(t, newHost(t))
	all, _ := get(t, s, sys+"/Memory")
	sum := 0.0
	seen := map[any]bool{}
	for _, m := range all["Members"].([]any) {
		body, _ := get(t, s, m.(map[string]any)["@odata.id"].(string))
		sum += body["CapacityMiB"].(float64)
		if at := pluck(t, body, "DeviceLocator"); seen[at] {
			t.Errorf("two modules are at %v", at)
		} else {
			seen[at] = true
		}
	}
	system, _ := get(t, s, sys)
	if got := pluck(t, system, "MemorySummary/TotalSystemMemoryGiB"); got != sum/1024 {
		t.Errorf("the system has %v GiB, its modules %v MiB", got, sum)
	}
}

func TestUnpluggedCableShowsLinkDown(t *testing.T) {
	h := newHost(t)
	s := newService(t, h)
	nic, port := sys+"/EthernetInterfaces/2", "/redfish/v1/Chassis/1/NetworkAdapters/1/Ports/2"
	_, before := get(t, s, nic)
	must(t, h.Apply(t.Context(), machine.SetLink{NIC: "2"}))
	for _, uri := range []string{nic, port} {
		if got, _ := get(t, s, uri); got["LinkStatus"] != "LinkDown" {
			t.Errorf("%s: LinkStatus = %v", uri, got["LinkStatus"])
		}
	}
	if got, _ := get(t, s, sys+"/EthernetInterfaces/1"); got["LinkStatus"] != "LinkUp" {
		t.Errorf("the other NIC: %v", got["LinkStatus"])
	}
	must(t, h.Apply(t.Context(), machine.SetLink{NIC: "2", Up: true}))
	if _, after := get(t, s, nic); after != before {
		t.Error("plugged in again, it differs from before")
	}
}
