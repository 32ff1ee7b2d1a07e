package conformance

import (
	"context"
	"net/http"
	"slices"
	"strings"
)

// sbChecks are the checks of secure boot.
var sbChecks = []Check{
	{
		ID: "SB-001", Title: "the state of secure boot is readable", Level: ReadOnly, Protocol: Redfish, Step: Boot,
		Predicts: "automatic secure boot fails", Remedy: "set secure boot in the BIOS",
		After: []string{"SYS-001"}, Run: secureBootShown,
	},
	{
		ID: "SB-002", Title: "secure boot is enabled and disabled over a reset", Level: Disruptive, Protocol: Redfish, Step: Boot,
		Predicts: "automatic secure boot fails", Remedy: "set secure boot in the BIOS",
		After: []string{"SB-001", "PWR-003"}, Run: secureBootSwitched,
	},
	{
		ID: "SB-003", Title: "keys are reset; databases are listed", Level: Destructive, Protocol: Redfish, Step: Boot,
		Predicts: "keys cannot be managed", Remedy: "manage keys in the BIOS",
		After: []string{"SB-001"}, Run: keysReset,
	},
}

// secureBoot reads the secure boot of the system.
func (r *Run) secureBoot(ctx context.Context) (string, Value, error) {
	place, err := r.Place(ctx)
	if err != nil {
		return "", Value{}, err
	}
	link := place.System.At("SecureBoot")
	if !link.Exists() {
		return "", Value{}, NothingThere("the system has no SecureBoot")
	}
	uri, err := link.Link()
	if err != nil {
		return "", Value{}, err
	}
	v, err := r.Page(ctx, uri)
	return uri, v, err
}

// secureBootShown reads the state of secure boot.
func secureBootShown(ctx context.Context, r *Run) Outcome {
	_, v, err := r.secureBoot(ctx)
	if err != nil {
		return Judge(err)
	}
	on, err := v.At("SecureBootEnable").Bool()
	if err != nil {
		return Judge(err)
	}
	current := v.At("SecureBootCurrentBoot")
	if state, err := current.Text(); err != nil || !slices.Contains([]string{"Enabled", "Disabled"}, state) {
		return Failed("%s is %s, not Enabled or Disabled", current.Path(), abbreviate(current.Raw()))
	}
	return Passed("").With("secure boot", "%v, %s", on, v.At("SecureBootMode").TextOr("mode unknown"))
}

// secureBootSwitched changes secure boot over a restart, and back over another.
func secureBootSwitched(ctx context.Context, r *Run) Outcome {
	uri, v, err := r.secureBoot(ctx)
	if err != nil {
		return Judge(err)
	}
	was, err := v.At("SecureBootEnable").Bool()
	if err != nil {
		return Judge(err)
	}
	if mode := v.At("SecureBootMode").TextOr(""); mode == "SetupMode" {
		return Skipped("secure boot is in SetupMode: no platform key")
	}
	state := map[bool]string{true: "Enabled", false: "Disabled"}
	for i, to := range []bool{!was, was} {
		c := Change{Level: Disruptive, Request: Request{URI: uri, Body: map[string]bool{"SecureBootEnable": to}}}
		if i == 0 {
			c.Undo = []Undo{{Method: http.MethodPatch, URI: uri, Match: true, Body: jsonBody(map[string]bool{"SecureBootEnable": was})}}
		}
		resp, err := r.patch(ctx, c)
		if err != nil {
			return Judge(err)
		}
		if resp.Status/100 != 2 {
			o := Failed("PATCH of SecureBootEnable: %s", resp.Problem())
			if resp.Status == http.StatusForbidden {
				o = o.Quirky("license-denied")
			}
			return o
		}
		if err := r.restart(ctx); err != nil {
			return Judge(err)
		}
		if r.bmc.dry != nil {
			continue
		}
		now, _, err := r.Get(ctx, uri)
		if err != nil {
			return Judge(err)
		}
		if current := now.At("SecureBootCurrentBoot").TextOr(""); current != state[to] {
			return Failed("SecureBootCurrentBoot is %q after a restart with SecureBootEnable %v", current, to)
		}
	}
	return Passed("")
}

// keysReset lists the databases and resets the keys to their defaults.
func keysReset(ctx context.Context, r *Run) Outcome {
	_, v, err := r.secureBoot(ctx)
	if err != nil {
		return Judge(err)
	}
	o := Passed("")
	if uri, err := v.At("SecureBootDatabases").Link(); err == nil {
		members, err := r.Members(ctx, uri)
		if err != nil {
			return Judge(err)
		}
		var ids []string
		for _, m := range members[:min(len(members), 16)] {
			db, err := r.Page(ctx, m)
			if err != nil {
				return Judge(err)
			}
			ids = append(ids, db.At("DatabaseId").TextOr(db.At("Id").TextOr(m)))
		}
		o = o.With("databases", "%s", strings.Join(ids, " "))
	}
	target := v.At("Actions", "#SecureBoot.ResetKeys", "target").TextOr("")
	if target == "" {
		return Skipped("secure boot has no ResetKeys")
	}
	resp, err := r.Change(ctx, Change{Level: Destructive, Request: Request{Method: http.MethodPost, URI: target, Body: map[string]string{"ResetKeysType": "ResetAllKeysToDefault"}}})
	if err != nil {
		return Judge(err)
	}
	if resp.Status/100 != 2 {
		return Failed("ResetKeys: %s", resp.Problem())
	}
	return o
}
