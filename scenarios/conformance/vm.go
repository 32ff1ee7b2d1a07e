package conformance

import (
	"context"
	"fmt"
	"net/http"
	"slices"
	"strings"
)

// vmChecks are the checks of virtual media.
var vmChecks = []Check{
	{
		ID: "VM-001", Title: "virtual media with a CD or DVD slot are found", Level: ReadOnly, Protocol: Redfish, Step: Boot,
		Predicts: "no virtual media", Remedy: "use PXE",
		After: []string{"SYS-001"}, Run: slotsFound,
	},
	{
		ID: "VM-002", Title: "the licence for virtual media is there", Level: ReadOnly, Protocol: Redfish, Step: Boot,
		Predicts: "403 in a late step", Remedy: "buy the licence",
		After: []string{"VM-001"}, Run: mediaLicensed,
	},
	{
		ID: "VM-003", Title: "an ISO by HTTP is inserted; which payload works", Level: Reversible, Protocol: Redfish, Step: Boot,
		Predicts: "400 on InsertMedia", Remedy: "use a client with a workaround for this payload",
		After: []string{"VM-001", "VM-002"}, Needs: []Facility{NeedsMedia}, Run: plainInserted,
	},
	{
		ID: "VM-004", Title: "an ISO by HTTPS with a private authority is inserted", Level: Reversible, Protocol: Redfish, Step: Boot,
		Predicts: "the BMC rejects the image server's certificate", Remedy: "install the authority in the BMC, or serve images by HTTP",
		After: []string{"VM-003"}, Needs: []Facility{NeedsMedia}, Run: secureInserted,
	},
	{
		ID: "VM-005", Title: "the BMC fetches the ISO", Level: Reversible, Protocol: Redfish, Step: Boot,
		Predicts: "200 without a mounted image", Remedy: "check the route from the BMC to the image server",
		After: []string{"VM-003"}, Needs: []Facility{NeedsMedia}, Run: imageFetched,
	},
	{
		ID: "VM-006", Title: "Inserted, Image and ConnectedVia show the image", Level: Reversible, Protocol: Redfish, Step: Boot,
		Predicts: "clients skip the insertion", Remedy: "let the client eject first",
		After: []string{"VM-003"}, Needs: []Facility{NeedsMedia}, Run: mediaShown,
	},
	{
		ID: "VM-007", Title: "a second insertion is refused or replaces the image", Level: Reversible, Protocol: Redfish, Step: Boot,
		Predicts: "a stale image boots", Remedy: "let the client eject first",
		After: []string{"VM-003"}, Needs: []Facility{NeedsMedia}, Run: secondInserted,
	},
	{
		ID: "VM-008", Title: "EjectMedia works with and without a body, and clears the state in time", Level: Reversible, Protocol: Redfish, Step: Provision,
		Predicts: "ejecting fails with 400 or 415", Remedy: "let the client send {}",
		After: []string{"VM-003"}, Needs: []Facility{NeedsMedia}, Run: mediaEjected,
	},
	{
		ID: "VM-009", Title: "an unreachable URL is an error in time", Level: Reversible, Protocol: Redfish, Step: Boot,
		Predicts: "clients hang silently", Remedy: "watch for the agent in place of the BMC",
		After: []string{"VM-003"}, Needs: []Facility{NeedsMedia}, Run: unreachableRefused,
	},
	{
		ID: "VM-010", Title: "long URLs, queries and names without .iso work", Level: Reversible, Protocol: Redfish, Step: Boot,
		Predicts: "the URLs of Ironic are refused", Remedy: "shorten the image URLs",
		After: []string{"VM-003"}, Needs: []Facility{NeedsMedia}, Run: longURLsTaken,
	},
	{
		ID: "VM-011", Title: "our image boots from virtual media and phones home", Level: Disruptive, Protocol: Redfish, Step: Boot,
		Predicts: "the agent does not start", Remedy: "the reasons of the checks before say why",
		After: []string{"VM-005", "BOOT-002", "PWR-003"}, Needs: []Facility{NeedsBootMedia}, Run: mediaBoots,
	},
	{
		ID: "VM-012", Title: "Cd or UsbCd or an OEM device boots the image", Level: Disruptive, Protocol: Redfish, Step: Boot,
		Predicts: "the server boots its physical drive", Remedy: "let the client use the target that works",
		After: []string{"VM-011"}, Needs: []Facility{NeedsBootMedia}, Run: mediaTargetTrue,
	},
	{
		ID: "VM-013", Title: "media stays or is ejected after one reset", Level: Disruptive, Protocol: Redfish, Step: Provision,
		Predicts: "the image boots again, or is gone too early", Remedy: "let the client insert before each boot",
		After: []string{"VM-011"}, Needs: []Facility{NeedsBootMedia}, Run: mediaAfterReset,
	},
	{
		ID: "VM-014", Title: "two slots at once: an ISO and a config drive", Level: Reversible, Protocol: Redfish, Step: Provision,
		Predicts: "no config drive by virtual media", Remedy: "put the configuration on the disk",
		After: []string{"VM-003"}, Needs: []Facility{NeedsMedia}, Run: twoInserted,
	},
}

// slot is a slot of virtual media.
type slot struct {
	uri   string
	value Value
	media []string
}

// optical reports whether the slot takes CDs or DVDs.
func (s slot) optical() bool {
	return slices.Contains(s.media, "CD") || slices.Contains(s.media, "DVD")
}

// insertable reports whether the slot has the action InsertMedia, or takes an
// image by PATCH.
func (s slot) insertable() bool {
	return s.value.At("Actions", "#VirtualMedia.InsertMedia").Exists()
}

// slots returns the slots of virtual media: the system's, else the manager's.
func (r *Run) slots(ctx context.Context) ([]slot, error) {
	place, err := r.Place(ctx)
	if err != nil {
		return nil, err
	}
	for _, v := range []Value{place.System.At("VirtualMedia"), place.Manager.At("VirtualMedia")} {
		uri, err := v.Link()
		if err != nil {
			continue
		}
		members, err := r.Members(ctx, uri)
		if err != nil {
			return nil, err
		}
		var all []slot
		for _, m := range members[:min(len(members), 16)] {
			page, err := r.Page(ctx, m)
			if err != nil {
				return nil, err
			}
			media, _ := page.At("MediaTypes").Texts() // absent: unknown media
			all = append(all, slot{m, page, media})
		}
		if len(all) > 0 {
			return all, nil
		}
	}
	return nil, nil
}

// slotsFound looks for a slot of CDs.
func slotsFound(ctx context.Context, r *Run) Outcome {
	all, err := r.slots(ctx)
	if err != nil {
		return Judge(err)
	}
	var cds, dead []string
	for _, s := range all {
		switch {
		case s.optical() && s.insertable():
			cds = append(cds, s.uri)
		case !s.insertable():
			dead = append(dead, s.uri)
		}
	}
	o := Passed("").With("slots", "%s", strings.Join(cds, " "))
	switch {
	case len(all) == 0:
		return Failed("neither the system nor the manager has virtual media")
	case len(cds) == 0 && slices.ContainsFunc(all, slot.optical):
		return Warned("no slot has InsertMedia: a PATCH or an action of the vendor inserts media")
	case len(cds) == 0:
		return Failed("none of %d slots takes CDs or DVDs", len(all))
	case len(dead) > 0 && slices.Index(uris(all), dead[0]) < slices.Index(uris(all), cds[0]):
		o.Verdict, o.Reason = Warn, "the first slots have no InsertMedia: "+strings.Join(dead, ", ")
		o.Quirks = []Quirk{{Name: "vmedia-dead-slots", Values: map[string]string{"n": fmt.Sprint(len(dead))}}}
	}
	return o
}

func uris(all []slot) []string {
	var out []string
	for _, s := range all {
		out = append(out, s.uri)
	}
	return out
}

// mediaLicensed looks for a licence's refusal: of the slots, or named by the BMC's
// licences.
func mediaLicensed(ctx context.Context, r *Run) Outcome {
	all, err := r.slots(ctx)
	if err != nil {
		return Judge(err)
	}
	for _, s := range all {
		if state := s.value.At("Status", "State").TextOr("Enabled"); s.optical() && (state == "Disabled" || state == "UnavailableOffline") {
			return Failed("%s is %s", s.uri, state)
		}
	}
	if !r.Level().Allows(Reversible) {
		return Passed("a write shows more: use --level reversible")
	}
	for _, s := range all {
		target := s.value.At("Actions", "#VirtualMedia.EjectMedia", "target").TextOr("")
		if inserted, err := s.value.At("Inserted").Bool(); target == "" || !s.optical() || err != nil || inserted {
			continue
		}
		// A slot without media: the request changes nothing. The licence is
		// checked before the parameters.
		resp, err := r.Change(ctx, Change{Request: Request{Method: http.MethodPost, URI: s.insert(), Body: map[string]any{}}})
		if err != nil {
			return Judge(err)
		}
		if resp.Status == http.StatusForbidden {
			return Failed("InsertMedia: %s", resp.Problem()).Quirky("license-denied")
		}
	}
	return Passed("")
}
