package resource

import (
	"bytes"
	"encoding/xml"
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/metalab-dev/metalab/emulator/dialect"
)

// oemSchemaFile returns the name of the CSDL file of an OEM type in the schema store.
func oemSchemaFile(t dialect.OEMType) string { return t.Namespace + "_v1.xml" }

// schemaFiles returns the names of the files in the schema store: the user's files and
// those of the vendor's OEM types.
func (v View) schemaFiles() []string {
	return append(v.Tree.Library.Names(), Map(v.Dialect.Protocol.OEMTypes, oemSchemaFile)...)
}

// writableOEM returns the paths of an OEM type's properties that clients can write, with
// the values that each takes; nil is any value.
func writableOEM(d *dialect.Record, t dialect.OEMType) map[string][]string {
	writable, of := map[string][]string{}, "#"+t.Namespace+"."+t.Version+"."+t.Name
	for _, transform := range d.Presentation.Transforms {
		for _, rule := range transform.Set {
			object, _ := rule.Value.(map[string]any)
			if object["@odata.type"] != of {
				continue
			}
			for _, w := range d.OEM.WritableProperties {
				if name, ok := strings.CutPrefix(w.Path, rule.Path+"/"); ok && w.ResourceType == transform.ResourceType {
					writable[name] = acceptedValues(w.Effects)
				}
			}
		}
	}
	return writable
}

// acceptedValues returns the values that have an effect; nil when all values have one.
func acceptedValues(effects []dialect.Effect) []string {
	var all []string
	for _, e := range effects {
		values := append(append([]string{}, e.When["$"]...), e.When[""]...)
		if len(values) == 0 {
			return nil
		}
		if e.Reject == nil {
			all = append(all, values...)
		}
	}
	return all
}

// enumMember is a name that a member of an enumeration can have (CSDL 4.0, §17.2).
var enumMember = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]*$`)

// CSDL returns the schema of an OEM type (DSP0266, "OEM extension"; OData CSDL 4.0): what
// clients can write, and the values of enumerations, follow from the record's writable
// properties.
func CSDL(d *dialect.Record, t dialect.OEMType) []byte {
	writable := writableOEM(d, t)
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
	var declare func(name, base, at string, properties []dialect.OEMProperty)
	declare = func(name, base, at string, properties []dialect.OEMProperty) {
		var enums []string
		fmt.Fprintf(&b, "      <ComplexType Name=\"%s\"%s>\n", name, base)
		for _, p := range properties {
			element, of, permission := "Property", string(p.Type), "Read"
			values, write := writable[at+p.Name]
			if write {
				permission = "ReadWrite"
			}
			isEnum := p.Type == dialect.EdmString && len(values) > 0 && !slices.ContainsFunc(values, func(v string) bool { return !enumMember.MatchString(v) })
			switch {
			case p.Type == dialect.EdmLink:
				element = "NavigationProperty"
			case p.Type == dialect.EdmObject || isEnum:
				of = t.Namespace + "." + t.Version + "." + p.Name
			}
			if isEnum {
				enums = append(enums, p.Name)
			}
			fmt.Fprintf(&b, `        <%[1]s Name="%[2]s" Type="%[3]s">
          <Annotation Term="OData.Permissions" EnumMember="OData.Permission/%[5]s"/>
          <Annotation Term="OData.Description" String="%[4]s"/>
        </%[1]s>
`, element, p.Name, of, text(p.Description), permission)
		}
		b.WriteString("      </ComplexType>\n")
		for _, name := range enums {
			fmt.Fprintf(&b, "      <EnumType Name=\"%s\">\n", name)
			for _, v := range writable[at+name] {
				fmt.Fprintf(&b, "        <Member Name=\"%s\"/>\n", v)
			}
			b.WriteString("      </EnumType>\n")
		}
		for _, p := range properties {
			if p.Type == dialect.EdmObject {
				declare(p.Name, "", at+p.Name+"/", p.Properties)
			}
		}
	}
	declare(t.Name, fmt.Sprintf(" BaseType=\"%s.%s\"", t.Namespace, t.Name), "", t.Properties)
	b.WriteString("    </Schema>\n  </edmx:DataServices>\n</edmx:Edmx>\n")
	return b.Bytes()
}
