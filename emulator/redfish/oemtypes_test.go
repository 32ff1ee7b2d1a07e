package redfish

import (
	"encoding/xml"
	"strings"
	"testing"

	"github.com/metalab-dev/metalab/emulator/dialect"
	"github.com/metalab-dev/metalab/emulator/redfish/resource"
)

func TestOEMTypesHaveSchemas(t *testing.T) {
	acme := dialect.OEMType{Namespace: "AcmeSystem", Version: "v1_2_0", Name: "System", Properties: []dialect.OEMProperty{
		{Name: "Lamp", Type: dialect.EdmBoolean, Description: `Whether the "lamp" is <on>.`}, {Name: "Names", Type: dialect.EdmStrings},
	}}
	s := newService(t, hostOf(t, func(p *dialect.Protocol) { p.OEMTypes = []dialect.OEMType{acme} }))
	metadata := call(t, s, "", "GET", "/redfish/v1/$metadata", "").Body.String()
	uri := resource.SchemaStore + "AcmeSystem_v1.xml"
	for _, want := range []string{`Uri="` + uri + `"`, `Namespace="AcmeSystem"`, `Namespace="AcmeSystem.v1_2_0"`} {
		if !strings.Contains(metadata, want) {
			t.Errorf("$metadata lacks %s:\n%s", want, metadata)
		}
	}
	w := call(t, s, "reader", "GET", uri, "")
	var doc struct {
		Schemas []struct {
			Namespace string `xml:",attr"`
			Types     []struct {
				Name, BaseType string `xml:",attr"`
				Properties     []struct {
					Name, Type  string `xml:",attr"`
					Annotations []struct {
						Term, String string `xml:",attr"`
					} `xml:"Annotation"`
				} `xml:"Property"`
			} `xml:"ComplexType"`
		} `xml:"DataServices>Schema"`
	}
	must(t, xml.Unmarshal(w.Body.Bytes(), &doc))
	if w.Code != 200 || len(doc.Schemas) != 2 || doc.Schemas[1].Namespace+"."+doc.Schemas[1].Types[0].Name != "AcmeSystem.v1_2_0.System" {
		t.Fatalf("%s", shape("GET", uri, "", w))
	}
	of := doc.Schemas[1].Types[0]
	if of.BaseType != "AcmeSystem.System" || len(of.Properties) != 2 || of.Properties[0].Type != "Edm.Boolean" || of.Properties[0].Annotations[1].String != acme.Properties[0].Description {
		t.Errorf("type %+v", of)
	}
	if w := call(t, newService(t, newHost(t)), "admin", "GET", uri, ""); w.Code != 404 {
		t.Errorf("of a vendor without it: %s", shape("GET", uri, "", w))
	}
}

func TestInvalidOEMTypesAreRejected(t *testing.T) {
	for _, broken := range []dialect.OEMType{
		{Namespace: "Acme.System", Version: "v1_0_0", Name: "System"}, {Namespace: "Acme", Version: "1.0", Name: "System"},
		{Namespace: "Acme", Version: "v1_0_0", Name: "System", Properties: []dialect.OEMProperty{{Name: "A", Type: "String"}}},
	} {
		h := newHost(t)
		h.d.Protocol.OEMTypes = []dialect.OEMType{broken}
		if err := h.d.Validate(); err == nil || !strings.Contains(err.Error(), "protocol.oemTypes") {
			t.Errorf("%+v: %v", broken, err)
		}
	}
}
