package conformance

import (
	"context"
	"strings"
	"time"
)

// licChecks are the checks of licences.
var licChecks = []Check{
	{
		ID: "LIC-001", Title: "licences and what they allow", Level: ReadOnly, Protocol: Redfish, Step: Boot,
		Predicts: "403 in a late step", Remedy: "buy the licence",
		After: []string{"SYS-003"}, Run: licencesListed,
	},
}

// licencesListed reads the licences of the BMC.
func licencesListed(ctx context.Context, r *Run) Outcome {
	place, err := r.Place(ctx)
	if err != nil {
		return Judge(err)
	}
	uri, err := place.Root.At("LicenseService").Link()
	if err != nil {
		if text := place.Manager.At("Oem", "Hpe", "License", "LicenseString").TextOr(""); text != "" {
			return Passed("").With("licences", "%s", text)
		}
		return Skipped("the BMC has no LicenseService")
	}
	service, err := r.Page(ctx, uri)
	if err != nil {
		return Judge(err)
	}
	collection, err := service.At("Licenses").Link()
	if err != nil {
		return Judge(err)
	}
	members, err := r.Members(ctx, collection)
	if err != nil {
		return Judge(err)
	}
	if len(members) == 0 {
		return Warned("the BMC has no licence")
	}
	var names []string
	for _, m := range members[:min(len(members), 32)] {
		v, err := r.Page(ctx, m)
		if err != nil {
			return Judge(err)
		}
		name := v.At("Name").TextOr(m)
		if text := v.At("ExpirationDate").TextOr(""); text != "" {
			end, err := time.Parse(time.RFC3339, text)
			if err != nil {
				return Failed("%s is %q, not a date-time", v.At("ExpirationDate").Path(), text)
			}
			if end.Before(r.Now()) {
				return Failed("the licence %s has expired on %s", name, end.UTC().Format(time.DateOnly))
			}
		}
		if state := v.At("Status", "State").TextOr("Enabled"); state == "Disabled" || state == "UnavailableOffline" {
			return Warned("the licence %s is %s", name, state)
		}
		names = append(names, name)
	}
	return Passed("").With("licences", "%s", strings.Join(names, "; "))
}
