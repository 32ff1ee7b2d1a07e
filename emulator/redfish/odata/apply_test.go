package odata

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// world is a small service: bodies by URI. %s stands for nothing.
var world = map[string]string{
	"/s":     `{"@odata.id":"/s","@odata.type":"#SystemCollection.SystemCollection","Name":"All","Members@odata.count":3,"Members":[{"@odata.id":"/s/1"},{"@odata.id":"/s/2"},{"@odata.id":"/s/3"}]}`,
	"/s/1":   `{"@odata.id":"/s/1","@odata.type":"#System.v1_0_0.System","@odata.etag":"\"a\"","Id":"1","Name":"one","UUID":"u1","Status":{"State":"Enabled","Health":"OK"},"Logs":{"@odata.id":"/s/1/l"},"@Redfish.Settings":{"SettingsObject":{"@odata.id":"/s/1/p"}},"Links":{"Chassis":[{"@odata.id":"/c/1"}],"Oem":{"X":{"@odata.id":"/c/1"}}},"Boot":{"Target":"Pxe","Target@Redfish.AllowableValues":["Pxe"],"Gone":null}}`,
	"/s/1/l": `{"@odata.id":"/s/1/l","@odata.type":"#LogCollection.LogCollection","Members@odata.count":2,"Members":[{"@odata.id":"/s/1/l/1"},{"@odata.id":"/s/1/l/2"}]}`,
	"/s/1/p": `{"@odata.id":"/s/1/p","@odata.type":"#System.v1_0_0.System","Id":"p"}`,
	"/s/2":   `{"@odata.id":"/s/2","@odata.type":"#System.v1_0_0.System","Id":"2","UUID":"u2","Status":{"State":"Disabled"},"Links":{"Chassis":[{"@odata.id":"/c/1"}]}}`,
	"/s/3":   `{"@odata.id":"/s/3","@odata.type":"#System.v1_0_0.System","Id":"3","UUID":"u3","Status":{"State":"Enabled"}}`,
	"/c":     `{"@odata.id":"/c","@odata.type":"#ChassisCollection.ChassisCollection","Members@odata.count":1,"Members":[{"@odata.id":"/c/1"}]}`,
	"/c/1":   `{"@odata.id":"/c/1","@odata.type":"#Chassis.v1_0_0.Chassis","Fan":{"@odata.id":"/t#/Fans/1"},"None":{"@odata.id":"/t#/Fans/7"},"Links":{"Systems":[{"@odata.id":"/s/1"}]}}`,
	"/t":     `{"@odata.id":"/t","@odata.type":"#Thermal.v1_0_0.Thermal","Fans":[{"@odata.id":"/t#/Fans/0","MemberId":"0"},{"@odata.id":"/t#/Fans/1","MemberId":"1","RPM":7}]}`,
	"/n":     `{"@odata.id":"/n","@odata.type":"#Sensor.v1_0_0.Sensor","Id":"n","Reading":20.5,"Reading@X.y":1,"ReadingUnits":"Cel","Status":{"State":"Enabled"}}`,
	"/ns":    `{"@odata.id":"/ns","@odata.type":"#SensorCollection.SensorCollection","Members@odata.count":1,"Members":[{"@odata.id":"/n"}]}`,
	"/whole": `{"@odata.id":"/whole","@odata.type":"#XCollection.XCollection","Members@odata.count":1,"Members":[{"@odata.id":"/whole/1","@odata.type":"#X.X","Id":"1","Status":{"State":"Enabled"}}]}`,
	"/empty": `{"@odata.id":"/empty","@odata.type":"#XCollection.XCollection","Members@odata.count":0,"Members":[]}`,
}

// source serves the world. /secret cannot be read.
func source(t testing.TB, shown map[string]Object) Source {
	return Source{
		Excerpts: map[string][]string{"Sensor": {"Reading"}},
		Get: func(uri string) (Object, bool) {
			if _, ok := world[uri]; !ok {
				return nil, false
			}
			if shown[uri] == nil {
				shown[uri] = decode(t, world[uri])
			}
			return shown[uri], true
		},
	}
}

// TestQueryResults shows statements A11, A12, A13 and A14.
func TestQueryResults(t *testing.T) {
	const head = `"@odata.id":"%s","@odata.type":"%s"`
	system := func(n string) string { return fmt.Sprintf(head, "/s/"+n, "#System.v1_0_0.System") }
	all := func(rest string) string {
		return `{"@odata.id":"/s","@odata.type":"#SystemCollection.SystemCollection","Name":"All",` + rest + `}`
	}
	for _, tt := range []struct {
		at, query string
		page      int
		want      string
	}{
		{at: "/s", query: "", want: world["/s"]},
		{at: "/s", query: "$top=3", want: world["/s"]},
		{at: "/s", query: "$top=1", want: all(`"Members@odata.count":3,"Members":[{"@odata.id":"/s/1"}],"Members@odata.nextLink":"/s?$top=1&$skip=1"`)},
		{at: "/s", query: "$top=1&$skip=2", want: all(`"Members@odata.count":3,"Members":[{"@odata.id":"/s/3"}]`)},
		{at: "/s", query: "$skip=3", want: all(`"Members@odata.count":3,"Members":[]`)},
		{at: "/s", query: "$skip=99999999999999999999&$top=99999999999999999999", want: all(`"Members@odata.count":3,"Members":[]`)},
		{at: "/s", query: "$top=0", want: all(`"Members@odata.count":3,"Members":[]`)},
		{at: "/s", page: 2, query: "", want: all(`"Members@odata.count":3,"Members":[{"@odata.id":"/s/1"},{"@odata.id":"/s/2"}],"Members@odata.nextLink":"/s?$skip=2"`)},
		{at: "/s", page: 2, query: "$skip=2", want: all(`"Members@odata.count":3,"Members":[{"@odata.id":"/s/3"}]`)},
		{at: "/s", page: 1, query: "$filter=Status/State%20eq%20'Enabled'", want: all(`"Members@odata.count":2,"Members":[{"@odata.id":"/s/1"}],"Members@odata.nextLink":"/s?$filter=Status/State%20eq%20'Enabled'&$skip=1"`)},
		{at: "/s", query: "$filter=Status/State%20eq%20'Enabled'&$skip=1", want: all(`"Members@odata.count":2,"Members":[{"@odata.id":"/s/3"}]`)},
		{at: "/s", query: "$filter=Id%20eq%20'9'", want: all(`"Members@odata.count":0,"Members":[]`)},
		{at: "/empty", query: "$filter=Id%20eq%20'9'&$expand=*", want: world["/empty"]},

		{at: "/s", query: "only", want: world["/s"]},
		{at: "/s", page: 2, query: "only", want: all(`"Members@odata.count":3,"Members":[{"@odata.id":"/s/1"},{"@odata.id":"/s/2"}],"Members@odata.nextLink":"/s?$skip=2"`)},
		{at: "/c", query: "only", want: world["/c/1"]},
		{at: "/empty", query: "only", want: world["/empty"]},
		{at: "/whole", query: "only", want: `{"@odata.id":"/whole/1","@odata.type":"#X.X","Id":"1","Status":{"State":"Enabled"}}`},
		{at: "/whole", query: "$filter=Status/State%20eq%20'Enabled'", want: world["/whole"]},
		{at: "/whole", query: "$filter=Status/State%20ne%20'Enabled'&$expand=.", want: `{"@odata.id":"/whole","@odata.type":"#XCollection.XCollection","Members@odata.count":0,"Members":[]}`},

		{at: "/s/1", query: "$select=Name,Status/State", want: `{` + system("1") + `,"@odata.etag":"\"a\"","Name":"one","Status":{"State":"Enabled"}}`},
		{at: "/s/1", query: "$select=Status,Status/State,Nothing,Name/Below", want: `{` + system("1") + `,"@odata.etag":"\"a\"","Status":{"State":"Enabled","Health":"OK"}}`},
		{at: "/s/1", query: "$select=Boot/Gone,Boot/Target", want: `{` + system("1") + `,"@odata.etag":"\"a\"","Boot":{"Target":"Pxe","Gone":null}}`},
		{at: "/s/1", query: "$select=Boot/Gone,Boot/Target,Boot/Target@Redfish.AllowableValues", want: `{` + system("1") + `,"@odata.etag":"\"a\"","Boot":{"Target":"Pxe","Target@Redfish.AllowableValues":["Pxe"],"Gone":null}}`},
		{at: "/s/1", query: "$select=Boot", want: `{` + system("1") + `,"@odata.etag":"\"a\"","Boot":{"Target":"Pxe","Target@Redfish.AllowableValues":["Pxe"],"Gone":null}}`},
		{at: "/s/1", query: "$select=@odata.id,*", want: world["/s/1"]},
		{at: "/s", query: "$select=Name", want: `{"@odata.id":"/s","@odata.type":"#SystemCollection.SystemCollection","Name":"All"}`},
		{at: "/s", query: "$select=Members", want: `{"@odata.id":"/s","@odata.type":"#SystemCollection.SystemCollection","Members@odata.count":3,"Members":[{"@odata.id":"/s/1"},{"@odata.id":"/s/2"},{"@odata.id":"/s/3"}]}`},
		{at: "/s", query: "$select=UUID&$expand=.($levels=1)&$skip=1", want: `{"@odata.id":"/s","@odata.type":"#SystemCollection.SystemCollection","Members@odata.count":3,"Members":[{` + system("2") + `,"UUID":"u2"},{` + system("3") + `,"UUID":"u3"}]}`},
		{at: "/s", query: "$select=Members/UUID&$expand=.&$skip=2", want: `{"@odata.id":"/s","@odata.type":"#SystemCollection.SystemCollection","Members@odata.count":3,"Members":[{` + system("3") + `,"UUID":"u3"}]}`},
		{at: "/s", query: "$select=Members&$expand=.&$skip=2", want: `{"@odata.id":"/s","@odata.type":"#SystemCollection.SystemCollection","Members@odata.count":3,"Members":[` + world["/s/3"] + `]}`},

		{at: "/s", query: "$expand=.", want: strings.NewReplacer(`{"@odata.id":"/s/1"}`, world["/s/1"], `{"@odata.id":"/s/2"}`, world["/s/2"], `{"@odata.id":"/s/3"}`, world["/s/3"]).Replace(world["/s"])},
		{at: "/s", query: "$expand=~", want: world["/s"]},
		{at: "/s/1", query: "$expand=.", want: strings.NewReplacer(`{"@odata.id":"/s/1/l"}`, world["/s/1/l"], `{"@odata.id":"/s/1/p"}`, world["/s/1/p"]).Replace(world["/s/1"])},
		{at: "/s/1", query: "$expand=~", want: strings.NewReplacer(`{"@odata.id":"/c/1"}`, world["/c/1"]).Replace(world["/s/1"])},
		{at: "/s/2", query: "$expand=*", want: strings.NewReplacer(`{"@odata.id":"/c/1"}`, world["/c/1"]).Replace(world["/s/2"])},
		{at: "/s/2", query: "$expand=~($levels=2)", want: strings.NewReplacer(`{"@odata.id":"/c/1"}`, strings.ReplaceAll(world["/c/1"], `{"@odata.id":"/s/1"}`, world["/s/1"])).Replace(world["/s/2"])},
		// A resource does not show itself again, and a link that leads nowhere stays.
		{at: "/c/1", query: "$expand=~($levels=2)", want: strings.ReplaceAll(world["/c/1"], `{"@odata.id":"/s/1"}`, world["/s/1"])},
		{at: "/c/1", query: "$expand=.", want: strings.ReplaceAll(world["/c/1"], `{"@odata.id":"/t#/Fans/1"}`, `{"@odata.id":"/t#/Fans/1","MemberId":"1","RPM":7}`)},
		{at: "/s/1/l", query: "$expand=.", want: world["/s/1/l"]},
		{at: "/s/1", page: 1, query: "$select=Logs&$expand=.", want: `{` + system("1") + `,"@odata.etag":"\"a\"","Logs":{"@odata.id":"/s/1/l","@odata.type":"#LogCollection.LogCollection","Members@odata.count":2,"Members":[{"@odata.id":"/s/1/l/1"}],"Members@odata.nextLink":"/s/1/l?$skip=1"},"@Redfish.Settings":{"SettingsObject":{` + fmt.Sprintf(head, "/s/1/p", "#System.v1_0_0.System") + `}}}`},

		{at: "/n", query: "excerpt", want: `{` + fmt.Sprintf(head, "/n", "#Sensor.v1_0_0.Sensor") + `,"Reading":20.5,"Reading@X.y":1}`},
		{at: "/n", query: "excerpt&$select=Status", want: `{` + fmt.Sprintf(head, "/n", "#Sensor.v1_0_0.Sensor") + `}`},
		{at: "/s/2", query: "excerpt", want: world["/s/2"]},
		{at: "/ns", query: "excerpt&$expand=*", want: strings.ReplaceAll(world["/ns"], `{"@odata.id":"/n"}`, `{`+fmt.Sprintf(head, "/n", "#Sensor.v1_0_0.Sensor")+`,"Reading":20.5,"Reading@X.y":1}`)},
	} {
		t.Run(tt.at+"?"+tt.query, func(t *testing.T) {
			shown := map[string]Object{}
			from := source(t, shown)
			from.Page = tt.page
			o, _ := from.Get(tt.at)
			q, err := Everything.Parse(tt.query)
			if err != nil {
				t.Fatal(err)
			}
			got, err := q.Apply(o, from)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(decode(t, tt.want), got); diff != "" {
				t.Errorf("answer (-want +got):\n%s", diff)
			}
			for uri, o := range shown {
				if diff := cmp.Diff(decode(t, world[uri]), o); diff != "" {
					t.Errorf("%s was changed (-before +after):\n%s", uri, diff)
				}
			}
		})
	}
}

func TestQueriesThatDoNotApplyAreRejected(t *testing.T) {
	for _, tt := range []struct {
		at, query string
		most      int
		parameter string
		why       Why
	}{
		{at: "/s/1", query: "$top=1", parameter: "$top", why: Resource},
		{at: "/s/1", query: "$select=Id&$skip=1", parameter: "$skip", why: Resource},
		{at: "/s/1", query: "$filter=Id%20eq%20'1'", parameter: "$filter", why: Resource},
		{at: "/s/1", query: "only", parameter: "only", why: Resource},
		{at: "/s", query: "$filter=Id%20eq%201", parameter: "$filter", why: Type},
		{at: "/s", most: 2, query: "$expand=.", parameter: "$expand", why: Size},
	} {
		from := source(t, map[string]Object{})
		from.Most = tt.most
		o, _ := from.Get(tt.at)
		q, err := Everything.Parse(tt.query)
		if err != nil {
			t.Fatal(err)
		}
		_, err = q.Apply(o, from)
		var e *Error
		if !errors.As(err, &e) || e.Parameter != tt.parameter || e.Why != tt.why {
			t.Errorf("%s?%s: %v, want %s %s", tt.at, tt.query, err, tt.parameter, tt.why)
		}
	}
}

func TestUnreadableMembersDoNotMatch(t *testing.T) {
	from := source(t, map[string]Object{})
	get := from.Get
	from.Get = func(uri string) (Object, bool) {
		if uri == "/s/2" {
			return nil, false
		}
		return get(uri)
	}
	o, _ := get("/s")
	q, _ := Everything.Parse("$filter=Status/State%20ne%20'Enabled'")
	got, err := q.Apply(o, from)
	if err != nil || got["Members@odata.count"] != json.Number("0") {
		t.Errorf("Apply = %v, %v", got, err)
	}
}

func FuzzQuery(f *testing.F) {
	for _, q := range []string{
		"$top=1&$skip=1", "$filter=Status/State%20eq%20'Enabled'%20and%20not%20(Id%20lt%20'2')", "$expand=*($levels=3)&$select=Id,Members/Name",
		"only", "excerpt&$expand=.", "$filter=A%20eq%202026-03-01T11:00:00Z%20or%20null%20ne%20B/C", "$filter=''''", "$select=%2f&%zz=%zz",
	} {
		f.Add(q)
	}
	f.Fuzz(func(t *testing.T, query string) {
		q, err := Everything.Parse(query)
		if err != nil {
			var e *Error
			if !errors.As(err, &e) || e.Parameter == "" || e.Why == "" {
				t.Fatalf("Parse(%q) = %v", query, err)
			}
			return
		}
		for _, at := range []string{"/s", "/s/1", "/c/1", "/empty"} {
			from := source(t, map[string]Object{})
			from.Page = 2
			o, _ := from.Get(at)
			got, err := q.Apply(o, from)
			if err != nil {
				continue
			}
			next, ok := got["Members@odata.nextLink"].(string)
			if !ok {
				continue
			}
			// The service accepts the next links that it returns.
			_, rest, _ := strings.Cut(next, "?")
			again, err := Everything.Parse(rest)
			if err != nil {
				t.Fatalf("%s?%s: next link %s: %v", at, query, next, err)
			}
			if again.Skip <= q.Skip && q.Top > 0 {
				t.Fatalf("%s?%s: next link %s leads back", at, query, next)
			}
		}
	})
}
