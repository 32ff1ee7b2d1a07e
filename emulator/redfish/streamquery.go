package redfish

import (
	"net/url"
	"slices"
	"strings"

	"github.com/metalab-dev/metalab/emulator/bmc"
	"github.com/metalab-dev/metalab/emulator/redfish/odata"
	"github.com/metalab-dev/metalab/emulator/redfish/resource"
)

// streamQuery parses the query parameters of a stream: $filter and
// includeoriginofcondition (DSP0266, "Server-sent events").
func streamQuery(raw string) (f *odata.Filter, includeOrigin bool, err error) {
	q, err := odata.Support{Filter: true}.Parse(raw)
	if err != nil {
		return nil, false, err
	}
	for pair := range strings.SplitSeq(raw, "&") {
		name, value, _ := strings.Cut(pair, "=")
		if name, _ = url.QueryUnescape(name); name != "includeoriginofcondition" {
			continue
		}
		if includeOrigin = value == "" || value == "true"; !includeOrigin && value != "false" {
			return nil, false, &odata.Error{Parameter: name, Value: value, Why: odata.Type, Detail: "takes true or false"}
		}
	}
	return q.Filter, includeOrigin, nil
}

// streamFilters maps the properties that the $filter of a stream can name to the lists
// of a subscription's filter.
var streamFilters = map[string]struct {
	list     func(s *bmc.Subscription) *[]string // for eq
	excluded func(s *bmc.Subscription) *[]string // for ne; nil: ne is not supported
	valid    func(value string, types []string) bool
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
		valid: func(v string, types []string) bool { return slices.Contains(types, v) },
	},
	"EventType": {
		list: func(s *bmc.Subscription) *[]string { return &s.Filter.Kinds },
		valid: func(v string, _ []string) bool {
			return slices.Contains(append(resource.EventTypes, resource.ReportFormat), v)
		},
	},
	"OriginResource": {
		list:  func(s *bmc.Subscription) *[]string { return &s.Filter.Origins },
		valid: func(v string, _ []string) bool { return resource.IsResource(v) },
	},
	"MetricReportDefinition": {
		list:  func(s *bmc.Subscription) *[]string { return &s.Filter.Reports },
		valid: func(v string, _ []string) bool { return resource.IsResource(v) },
	},
}

// applyFilter converts a $filter to the filter of a subscription. It supports what a
// subscription can express: for each property a list of values, one of which must
// match (DSP0266 joins the values of a property by or, and properties by and).
func applyFilter(s *bmc.Subscription, f *odata.Filter, tree *resource.Tree) error {
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
	types := resource.EventResourceTypes(resource.View{Tree: tree})
	seen := map[string]bool{}
	for _, g := range groups {
		name, op := g[0].Property, g[0].Operator
		for _, c := range g {
			if c.Property != name || c.Operator != op {
				return bad(odata.Form, "joins different properties by or")
			}
			if err := applyComparison(s, c, types, bad); err != nil {
				return err
			}
		}
		switch {
		case op == "ne" && len(g) > 1: // such a condition is always true
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

// applyComparison adds one comparison to the filter of a subscription.
func applyComparison(s *bmc.Subscription, c odata.Comparison, types []string, bad func(odata.Why, string) error) error {
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
	p, known := streamFilters[c.Property]
	list := p.list
	if c.Operator == "ne" {
		list = p.excluded
	}
	switch {
	case !known:
		return bad(odata.Form, "events are not filtered by "+c.Property)
	case !isText:
		return bad(odata.Type, c.Property+" is text")
	case list == nil || c.Operator != "eq" && c.Operator != "ne":
		return bad(odata.Form, c.Property+" does not take "+c.Operator)
	case !p.valid(text, types):
		return bad(odata.Form, c.Property+" has no value "+text)
	}
	*list(s) = append(*list(s), text)
	return nil
}
