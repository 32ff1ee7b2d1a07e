package redfish

import (
	"encoding/xml"
	"fmt"
	"testing"

	"github.com/metalab-dev/metalab/emulator/dialect"
	"github.com/metalab-dev/metalab/emulator/dialect/generic"
	"github.com/metalab-dev/metalab/emulator/redfish/resource"
)

// TestOEMSchemaListsPermissionsAndEnumerations reads the CSDL of an OEM type (DSP0266, "Schema
// annotations": OData.Permissions): properties that a client can write are ReadWrite, also
// in an object, and a property that takes certain texts is an enumeration of them.
func TestOEMSchemaListsPermissionsAndEnumerations(t *testing.T) {
	d := generic.Record
	d.Protocol.OEMTypes = []dialect.OEMType{{Namespace: "AcmeSystem", Version: "v1_0_0", Name: "System", Properties: []dialect.OEMProperty{
		{Name: "Mode", Type: dialect.EdmString, Description: "Mode."},
		{Name: "Rate", Type: dialect.EdmInt64, Description: "Rate."},
		{Name: "Serial", Type: dialect.EdmString, Description: "Serial number."},
		{Name: "Card", Type: dialect.EdmObject, Description: "Card.", Properties: []dialect.OEMProperty{
			{Name: "Label", Type: dialect.EdmString, Description: "Label."}, {Name: "Slot", Type: dialect.EdmString, Description: "Slot."},
		}},
	}}}
	d.Presentation.Transforms = []dialect.Transform{{ResourceType: "ComputerSystem", Set: []dialect.PropertyRule{
		{Path: "Oem/Acme", Value: map[string]any{"@odata.type": "#AcmeSystem.v1_0_0.System", "Mode": "Quiet", "Rate": 1, "Serial": "1", "Card": map[string]any{"Label": "", "Slot": "a"}}},
	}}}
	store := []dialect.Effect{{Store: map[string]any{"value": "$"}}}
	d.OEM.WritableProperties = []dialect.WritableProperty{
		{ResourceType: "ComputerSystem", Path: "Oem/Acme/Mode", Effects: []dialect.Effect{
			{When: map[string][]string{"$": {"Quiet"}}, Store: map[string]any{"mode": "$"}}, {When: map[string][]string{"$": {"Fast", "Faster"}}, Store: map[string]any{"mode": "$"}},
		}},
		{ResourceType: "ComputerSystem", Path: "Oem/Acme/Rate", Type: dialect.IntegerParameter, Effects: store},
		{ResourceType: "ComputerSystem", Path: "Oem/Acme/Card/Label", Effects: store},
		{ResourceType: "Chassis", Path: "Oem/Acme/Serial", Effects: store}, // a property of another resource
	}
	s, _ := newVendorHost(t, &d, "generic")
	w := call(t, s, "admin", "GET", resource.SchemaStore+"AcmeSystem_v1.xml", "")
	var doc struct {
		Types []struct {
			Name       string `xml:",attr"`
			Properties []struct {
				Name, Type string `xml:",attr"`
				Annotation []struct {
					EnumMember string `xml:",attr"`
				}
			} `xml:"Property"`
		} `xml:"DataServices>Schema>ComplexType"`
		Enums []struct {
			Name   string `xml:",attr"`
			Member []struct {
				Name string `xml:",attr"`
			}
		} `xml:"DataServices>Schema>EnumType"`
	}
	must(t, xml.Unmarshal(w.Body.Bytes(), &doc))
	got := map[string]string{}
	for _, of := range doc.Types {
		for _, p := range of.Properties {
			got[of.Name+"/"+p.Name] = p.Type + " " + p.Annotation[0].EnumMember
		}
	}
	const read, write = "OData.Permission/Read", "OData.Permission/ReadWrite"
	for at, want := range map[string]string{
		"System/Mode": "AcmeSystem.v1_0_0.Mode " + write, "System/Rate": "Edm.Int64 " + write, "System/Serial": "Edm.String " + read,
		"System/Card": "AcmeSystem.v1_0_0.Card " + read, "Card/Label": "Edm.String " + write, "Card/Slot": "Edm.String " + read,
	} {
		if got[at] != want {
			t.Errorf("%s is %s, want %s", at, got[at], want)
		}
	}
	if is := fmt.Sprint(doc.Enums); is != "[{Mode [{Quiet} {Fast} {Faster}]}]" {
		t.Errorf("enumerations %s", is)
	}
}
