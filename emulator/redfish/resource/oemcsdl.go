package resource

import (
	"bytes"
	"encoding/xml"
	"fmt"

	"github.com/metalab-dev/metalab/emulator/dialect"
)

// oemSchemaFile returns the name of the CSDL file of an OEM type in the schema store.
func oemSchemaFile(t dialect.OEMType) string { return t.Namespace + "_v1.xml" }

// schemaFiles returns the names of the files in the schema store: the user's files and
// those of the vendor's OEM types.
func (v View) schemaFiles() []string {
	return append(v.Tree.Library.Names(), Map(v.Dialect.Protocol.OEMTypes, oemSchemaFile)...)
}

// CSDL returns the schema of an OEM type (DSP0266, "OEM extension"; OData CSDL 4.0).
func CSDL(t dialect.OEMType) []byte {
	var b bytes.Buffer
	b.WriteString(xml.Header)
	text := func(s string) string {
		var e bytes.Buffer
		_ = xml.EscapeText(&e, []byte(s)) // a buffer never fails
		return e.String()
	}
	fmt.Fprintf(&b, `<edmx:Edmx xmlns:edmx="http://docs.oasis-open.org/odata/ns/edmx" Version="4.0">
  <edmx:Reference Uri="%[1]sResource_v1.xml">
    <edmx:Include Namespace="Resource"/>
  </edmx:Reference>
  <edmx:Reference Uri="http://docs.oasis-open.org/odata/odata/v4.0/errata03/csd01/complete/vocabularies/Org.OData.Core.V1.xml">
    <edmx:Include Namespace="Org.OData.Core.V1" Alias="OData"/>
  </edmx:Reference>
  <edmx:DataServices>
    <Schema xmlns="http://docs.oasis-open.org/odata/ns/edm" Namespace="%[2]s">
      <ComplexType Name="%[3]s" BaseType="Resource.OemObject" Abstract="true"/>
    </Schema>
    <Schema xmlns="http://docs.oasis-open.org/odata/ns/edm" Namespace="%[2]s.%[4]s">
`, schemaBaseURL(""), t.Namespace, t.Name, t.Version)
	var declare func(name, base string, properties []dialect.OEMProperty)
	declare = func(name, base string, properties []dialect.OEMProperty) {
		fmt.Fprintf(&b, "      <ComplexType Name=\"%s\"%s>\n", name, base)
		for _, p := range properties {
			element, of := "Property", string(p.Type)
			switch p.Type {
			case dialect.EdmLink:
				element = "NavigationProperty"
			case dialect.EdmObject:
				of = t.Namespace + "." + t.Version + "." + p.Name
			}
			fmt.Fprintf(&b, `        <%[1]s Name="%[2]s" Type="%[3]s">
          <Annotation Term="OData.Permissions" EnumMember="OData.Permission/Read"/>
          <Annotation Term="OData.Description" String="%[4]s"/>
        </%[1]s>
`, element, p.Name, of, text(p.Description))
		}
		b.WriteString("      </ComplexType>\n")
		for _, p := range properties {
			if p.Type == dialect.EdmObject {
				declare(p.Name, "", p.Properties)
			}
		}
	}
	declare(t.Name, fmt.Sprintf(" BaseType=\"%s.%s\"", t.Namespace, t.Name), t.Properties)
	b.WriteString("    </Schema>\n  </edmx:DataServices>\n</edmx:Edmx>\n")
	return b.Bytes()
}
