package resource

import (
	"bytes"
	"encoding/xml"
	"fmt"
	"maps"
	"net/url"
	"slices"
	"strings"

	"github.com/metalab-dev/metalab/emulator/dialect"
)

// rootRows returns the rows of the ServiceRoot and of the protocol's documents (DSP0266,
// "Redfish-defined URIs").
func rootRows() []Row {
	return []Row{
		{URI: "/redfish", Unauthenticated: true, Raw: versions},
		{URI: "/redfish/v1/odata", Unauthenticated: true, DependsOn: partIdentity, Raw: serviceDocument},
		{URI: "/redfish/v1/$metadata", Unauthenticated: true, Raw: metadata},
		{URI: "/redfish/v1/openapi.yaml", Unauthenticated: true, Raw: openAPI},
		{URI: "/redfish/v1", Schema: "ServiceRoot.v1_20_0", Unauthenticated: true, DependsOn: partIdentity, Read: serviceRoot},
	}
}

// versions returns the document at /redfish, whose content DSP0266 prescribes literally
// ("Protocol version").
func versions(View) (MediaType, []byte) {
	return JSON, []byte(`{"v1":"/redfish/v1/"}`)
}

func serviceRoot(v View) Object {
	return Object{
		"@odata.id": "/redfish/v1/", "Id": "RootService", "Name": "Root Service",
		"RedfishVersion": v.Dialect.RedfishVersion, "UUID": v.serviceUUID(), "Product": v.Dialect.Product, "Vendor": v.Dialect.Vendor,
		"Links": Object{
			"Sessions":                Ref("/redfish/v1/SessionService/Sessions"),
			"ManagerProvidingService": Ref(v.manager()),
		},
		"ProtocolFeaturesSupported": protocolFeatures(v.Dialect),
	}
}

// serviceDocument lists the ServiceRoot and the resources that it links to (DSP0266, "OData
// service document").
func serviceDocument(v View) (MediaType, []byte) {
	entry := func(name, uri string) Object { return Object{"name": name, "kind": "Singleton", "url": uri} }
	entries := []Object{entry("Service", "/redfish/v1/")}
	m := v.Tree.Find(&url.URL{Path: "/redfish/v1"})
	v.URI = m.URI
	root := m.Object(v)
	for _, name := range slices.Sorted(maps.Keys(root)) {
		if link, ok := root[name].(Object); ok && len(link) == 1 && link["@odata.id"] != nil {
			entries = append(entries, entry(name, link["@odata.id"].(string)))
		}
	}
	entries = append(entries, entry("Sessions", "/redfish/v1/SessionService/Sessions"))
	return JSON, Encode(Object{"@odata.context": "/redfish/v1/$metadata", "value": entries})
}

// metadata returns the OData metadata document. It refers to the published schema of every
// type that the service serves (DSP0266, "OData $metadata").
func metadata(v View) (MediaType, []byte) {
	var b bytes.Buffer
	b.WriteString(xml.Header)
	b.WriteString(`<edmx:Edmx xmlns:edmx="http://docs.oasis-open.org/odata/ns/edmx" Version="4.0">` + "\n")
	refer := func(schema string, more ...string) {
		name := TypeName(schema)
		fmt.Fprintf(&b, "  <edmx:Reference Uri=\"%s%s_v1.xml\">\n", schemaBaseURL(schema), name)
		for _, n := range append(slices.Compact([]string{name, schema}), more...) {
			fmt.Fprintf(&b, "    <edmx:Include Namespace=\"%s\"/>\n", n)
		}
		b.WriteString("  </edmx:Reference>\n")
	}
	for _, schema := range v.Tree.Schemas {
		if strings.HasPrefix(schema, "ServiceRoot.") {
			refer(schema, "ServiceRoot.v1_0_0") // the schema that has the entity container
			continue
		}
		refer(schema)
	}
	for _, t := range v.Dialect.Protocol.OEMTypes {
		fmt.Fprintf(&b, "  <edmx:Reference Uri=\"%s%s\">\n    <edmx:Include Namespace=\"%[3]s\"/>\n    <edmx:Include Namespace=\"%[3]s.%[4]s\"/>\n  </edmx:Reference>\n",
			SchemaStore, oemSchemaFile(t), t.Namespace, t.Version)
	}
	refer("Message.v1_3_0") // types of annotations
	refer("Settings.v1_4_0")
	refer(capabilitiesSchema)
	refer("Resource.v1_23_0")
	b.WriteString(`  <edmx:Reference Uri="http://redfish.dmtf.org/schemas/v1/RedfishExtensions_v1.xml">
    <edmx:Include Namespace="RedfishExtensions.v1_0_0" Alias="Redfish"/>
  </edmx:Reference>
  <edmx:DataServices>
    <Schema xmlns="http://docs.oasis-open.org/odata/ns/edm" Namespace="Service">
      <EntityContainer Name="Service" Extends="ServiceRoot.v1_0_0.ServiceContainer"/>
    </Schema>
  </edmx:DataServices>
</edmx:Edmx>
`)
	return XML, b.Bytes()
}

// protocolFeatures returns ServiceRoot.ProtocolFeaturesSupported: the query parameters that
// the service answers, unless the dialect states others.
func protocolFeatures(d *dialect.Record) Object {
	q := d.Protocol.Queries
	if d.Protocol.AdvertisedQueries != nil {
		q = *d.Protocol.AdvertisedQueries
	}
	expand := Object{"ExpandAll": q.ExpandAll, "Links": q.ExpandLinks, "NoLinks": q.ExpandRest, "Levels": q.MaxLevels > 0}
	if q.MaxLevels > 0 {
		expand["MaxLevels"] = q.MaxLevels
	}
	o := Object{
		"ExcerptQuery": q.Excerpt, "FilterQuery": q.Filter, "OnlyMemberQuery": q.Only, "SelectQuery": q.Select,
		"TopSkipQuery": q.TopSkip, "ExpandQuery": expand, "IncludeOriginOfConditionQuery": false,
		"DeepOperations": Object{"DeepPATCH": false, "DeepPOST": false}, "MultipleHTTPRequests": true,
	}
	if q.Filter {
		o["FilterQueryComparisonOperations"], o["FilterQueryCompoundOperations"] = true, true
	}
	return o
}
