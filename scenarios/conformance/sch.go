package conformance

import (
	"context"
	"fmt"
	"net"
	"regexp"
	"slices"
	"strings"
	"time"
)

// schChecks are the checks of schemas and interoperability profiles.
var schChecks = []Check{
	{
		ID: "SCH-001", Title: "resources that provisioning reads are valid by their schema", Level: ReadOnly, Protocol: Redfish, Step: Inspect,
		Predicts: "clients cannot decode resources", Remedy: "update the firmware, or use a client that tolerates the property",
		After: []string{"SYS-001"}, Needs: []Facility{NeedsSchemas}, Run: schemasHold,
	},
	{
		ID: "SCH-002", Title: "the profile of OpenStack Ironic holds", Level: ReadOnly, Protocol: Redfish, Step: Register,
		Predicts: "metal3 misses a resource or property", Remedy: "update the firmware; the reason names what is missing",
		After: []string{"SYS-001"}, Needs: []Facility{NeedsSchemas}, Run: ironicHolds,
	},
	{
		ID: "SCH-003", Title: "the baseline profile of OCP servers, or that of --interop-profile, holds", Level: ReadOnly, Protocol: Redfish, Step: Day2,
		Predicts: "procurement's requirements are not met", Remedy: "ask the vendor",
		After: []string{"SYS-001"}, Needs: []Facility{NeedsProfile}, Run: profileHolds,
	},
	{
		ID: "SCH-004", Title: "date-times are valid; MAC addresses and UUIDs are not empty", Level: ReadOnly, Protocol: Redfish, Step: Inspect,
		Predicts: "strict parsers fail", Remedy: "update the firmware",
		After: []string{"SYS-001"}, Run: valuesWellFormed,
	},
}

// times are the properties of date-time in the resources that provisioning reads.
var times = []string{"DateTime", "Created", "ReleaseDate", "LastResetTime", "LastStateTime", "StartTime", "EndTime", "ProductionDate", "InstallDate", "Modified"}

var uuidForm = regexp.MustCompile(`^(?i:[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12})$`)

// valuesWellFormed looks at the texts that strict clients parse.
func valuesWellFormed(ctx context.Context, r *Run) Outcome {
	place, err := r.Place(ctx)
	if err != nil {
		return Judge(err)
	}
	pages := []Value{place.System, place.Manager, place.Chassis}
	collections := []string{place.System.At("EthernetInterfaces").LinkOr("")}
	if uri, err := place.Root.At("UpdateService").Link(); err == nil {
		v, err := r.Page(ctx, uri)
		if err != nil {
			return Judge(err)
		}
		collections = append(collections, v.At("FirmwareInventory").LinkOr(""))
	}
	for _, uri := range collections {
		if uri == "" {
			continue
		}
		members, err := r.Members(ctx, uri)
		if o := Judge(err); o.Verdict == Broken {
			return o
		} else if err != nil {
			continue // ROOT-007 and the group of the collection report it
		}
		members = members[:min(len(members), 30)]
		r.readAhead(ctx, members)
		for _, m := range members {
			v, err := r.Page(ctx, m)
			if o := Judge(err); o.Verdict == Broken {
				return o
			} else if err != nil {
				continue
			}
			pages = append(pages, v)
		}
	}
	var dates, others []string
	for _, v := range pages {
		d, o := malformed(v)
		dates, others = append(dates, d...), append(others, o...)
	}
	all := slices.Concat(dates, others)
	if len(all) == 0 {
		return Passed("")
	}
	o := Failed("%s", strings.Join(all[:min(len(all), 5)], "; "))
	if strings.Contains(strings.Join(dates, "\n"), "0000-00-00") {
		o = o.Quirky("dates-bad")
	}
	return o
}

// malformed returns the date-times, and the MAC addresses and UUIDs, of a resource
// that parsers reject.
func malformed(v Value) (dates, others []string) {
	names, err := v.Names()
	if err != nil {
		return nil, nil
	}
	slices.Sort(names)
	for _, n := range names {
		p := v.At(n)
		text, isText := p.Raw().(string)
		switch {
		case slices.Contains(times, n) && isText && text != "":
			if _, err := time.Parse(time.RFC3339, text); err != nil {
				dates = append(dates, fmt.Sprintf("%s is %q, not a date-time", p.Path(), text))
			}
		case n == "MACAddress" || n == "PermanentMACAddress":
			if _, err := net.ParseMAC(text); err != nil && !p.Null() {
				others = append(others, fmt.Sprintf("%s is %s, not a MAC address", p.Path(), abbreviate(p.Raw())))
			}
		case n == "UUID":
			if !uuidForm.MatchString(text) && !p.Null() {
				others = append(others, fmt.Sprintf("%s is %s, not a UUID", p.Path(), abbreviate(p.Raw())))
			}
		}
	}
	return dates, others
}
