package redfish

import (
	"net/url"
	"slices"
	"strings"

	"github.com/metalab-dev/metalab/emulator/bmc"
	"github.com/metalab-dev/metalab/emulator/redfish/odata"
	"github.com/metalab-dev/metalab/emulator/redfish/resource"
)

// streamQuery reads the query of a stream: $filter and includeoriginofcondition
// (DSP0266, "Server-sent events").
func streamQuery(raw string) (f *odata.Filter, whole bool, err error) {
	q, err := odata.Support{Filter: true}.Parse(raw)
	if err != nil {
		return nil, false, err
	}
	for pair := range strings.SplitSeq(raw, "&") {
		name, value, _ := strings.Cut(pair, "=")
		if name, _ = url.QueryUnescape(name); name != "includeoriginofcondition" {
			continue
		}
		if whole = value == "" || value == "true"; !whole && value != "false" {
			return nil, false, &odata.Error{Parameter: name, Value: value, Why: odata.Type, Detail: "takes true or false"}
		}
	}
	return q.Filter, whole, nil
}

// filters are the properties that the filter of a stream can name, and what of
// a subscription they stand for.
var filters = map[string]struct {
	list  func(s *bmc.Subscription) *[]string
	not   func(s *bmc.Subscription) *[]string // of ne; nil: there is none
	takes func(value string, types []string) bool
}{
	"RegistryPrefix": {
		func(s *bmc.Subscription) *[]string { return &s.Filter.Registries },
		func(s *bmc.Subscription) *[]string { return &s.Filter.NotRegistries },
		func(v string, _ []string) bool { return slices.Contains(resource.RegistryPrefixes(resource.View{}), v) },
	},
	"MessageId": {
		func(s *bmc.Subscription) *[]string { return &s.Filter.Messages },
		func(s *bmc.Subscription) *[]string { return &s.Filter.NotMessages },
		func(v string, _ []string) bool { return resource.IsMessage(v) },
	},
	"ResourceType": {
		list:  func(s *bmc.Subscription) *[]string { return &s.Filter.Types },
		takes: func(v string, types []string) bool { return slices.Contains(types, v) },
	},
	"EventType": {
		list: func(s *bmc.Subscription) *[]string { return &s.Filter.Kinds },
		takes: func(v string, _ []string) bool {
			return slices.Contains(append(resource.EventTypes, resource.ReportFormat), v)
		},
	},
	"OriginResource": {
		list:  func(s *bmc.Subscription) *[]string { return &s.Filter.Origins },
		takes: func(v string, _ []string) bool { return resource.IsResource(v) },
	},
	"MetricReportDefinition": {
		list:  func(s *bmc.Subscription) *[]string { return &s.Filter.Reports },
		takes: func(v string, _ []string) bool { return resource.IsResource(v) },
	},
}

// narrow makes a filter that of a subscription. It takes what can be told of a
// subscription: for each property a list of values, one of which must be there
// (DSP0266 joins the values of a property by or, and properties by and).
func narrow(s *bmc.Subscription, f *odata.Filter, tree *resource.Tree) error {
	if f == nil {
		return nil
	}
	bad := func(w odata.Why, detail string) error {
		return &odata.Error{Parameter: "$filter", Value: f.String(), Why: w, Detail: detail}
	}
	groups, ok := f.Groups()
	if !ok {
		return bad(odata.Form, "joins values of one property by or, and properties by and")
	}
	types := resource.ResourceTypes(resource.View{Tree: tree})
	seen := map[string]bool{}
	for _, g := range groups {
		name, op := g[0].Property, g[0].Operator
		for _, c := range g {
			if c.Property != name || c.Operator != op {
				return bad(odata.Form, "joins different properties by or")
			}
			if err := narrowBy(s, c, types, bad); err != nil {
				return err
			}
		}
		switch {
		case op == "ne" && len(g) > 1: // is always true
			return bad(odata.Form, "joins exclusions by or")
		case name == "EventFormatType" && len(g) > 1:
			return bad(odata.Form, "wants a stream to have two formats")
		case op == "eq" && seen[name]:
			return bad(odata.Form, "wants "+name+" to have two values at once")
		}
		seen[name] = seen[name] || op == "eq"
	}
	return nil
}

// narrowBy narrows a subscription by one comparison.
func narrowBy(s *bmc.Subscription, c odata.Comparison, types []string, bad func(odata.Why, string) error) error {
	if c.Property == "SubordinateResources" {
		on, ok := c.Value.(bool)
		if !ok || c.Operator != "eq" {
			return bad(odata.Type, "SubordinateResources takes true or false")
		}
		s.Filter.Subordinate = on
		return nil
	}
	text, isText := c.Value.(string)
	if c.Property == "EventFormatType" {
		if c.Operator != "eq" || text != resource.EventFormat && text != resource.ReportFormat {
			return bad(odata.Form, "EventFormatType takes Event or MetricReport")
		}
		s.Reports = text == resource.ReportFormat
		return nil
	}
	p, known := filters[c.Property]
	list := p.list
	if c.Operator == "ne" {
		list = p.not
	}
	switch {
	case !known:
		return bad(odata.Form, "events are not filtered by "+c.Property)
	case !isText:
		return bad(odata.Type, c.Property+" is text")
	case list == nil || c.Operator != "eq" && c.Operator != "ne":
		return bad(odata.Form, c.Property+" does not take "+c.Operator)
	case !p.takes(text, types):
		return bad(odata.Form, c.Property+" has no value "+text)
	}
	*list(s) = append(*list(s), text)
	return nil
}
