package template_test

import (
	"testing"

	"github.com/metalab-dev/metalab/emulator/dialect/template"
)

func TestTemplateHasNoVendor(t *testing.T) {
	r := template.Record()
	for name, value := range map[string]string{"Name": r.Name, "Vendor": r.Vendor, "Product": r.Product, "ManagerModel": r.ManagerModel} {
		if value != "" {
			t.Errorf("%s = %q, want none", name, value)
		}
	}
	if !r.Presentation.IsStandard() || !r.OEM.IsEmpty() || len(r.Protocol.OEMTypes)+len(r.Protocol.Messages) > 0 {
		t.Error("the template has a presentation, OEM, types or messages")
	}
	if i := r.IPMI; i.Manufacturer != 0 || i.Product != 0 || len(i.OEMCommands)+len(i.OEMSystemInfo) > 0 {
		t.Errorf("IPMI = %+v, want no manufacturer and no OEM commands", i)
	}
}

// A dialect that changes a list of its record changes no other dialect's.
func TestRecordsShareNoLists(t *testing.T) {
	changed := template.Record()
	changed.BMC.Slots[0].ID, changed.BMC.Accounts.Types[0].Type = "x", "x"
	changed.ResetTypes[0], changed.BootTargets[0], changed.IPMI.CipherSuites[0] = "x", "x", 0
	is := template.Record()
	for name, of := range map[string]bool{
		"slots": is.BMC.Slots[0].ID == "x", "account types": is.BMC.Accounts.Types[0].Type == "x", "reset types": is.ResetTypes[0] == "x",
		"boot targets": is.BootTargets[0] == "x", "cipher suites": is.IPMI.CipherSuites[0] == 0,
	} {
		if of {
			t.Errorf("two records share their %s", name)
		}
	}
}
