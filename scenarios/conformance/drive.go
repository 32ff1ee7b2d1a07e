package conformance

import (
	"context"
	"net/http"
	"slices"
	"strings"
	"time"
)

// driveErased erases a drive that is in no volume.
func driveErased(ctx context.Context, r *Run) Outcome {
	all, err := r.storages(ctx)
	if err != nil {
		return Judge(err)
	}
	var drives []Value
	for _, s := range all {
		drives = append(drives, s.drives...)
	}
	// An SSD erases itself in seconds, a disk in hours.
	isSSD := func(d Value) bool { return d.At("MediaType").TextOr("") == "SSD" }
	drives = slices.Concat(filtered(drives, isSSD), filtered(drives, func(d Value) bool { return !isSSD(d) }))
	for _, d := range drives {
		target := d.At("Actions", "#Drive.SecureErase", "target").TextOr("")
		if used, _ := d.At("Links", "Volumes").List(); target == "" || len(used) > 0 {
			continue
		}
		if err := r.ensure(ctx, "On"); err != nil { // drives have no power while the server is off
			return Judge(err)
		}
		resp, err := r.Change(ctx, Change{Level: Destructive, Request: Request{Method: http.MethodPost, URI: target, Body: map[string]any{}, Timeout: 2 * time.Minute}})
		if err != nil {
			return Judge(err)
		}
		if resp.Status/100 != 2 {
			return Failed("SecureErase of %s: %s", d.Path(), resp.Problem())
		}
		if uri := taskOf(resp); uri != "" && r.bmc.dry == nil {
			end, err := r.awaitTask(ctx, uri, 20*time.Minute)
			if err != nil {
				return Judge(err)
			}
			if !end.over && !end.gone {
				return Passed("SecureErase of %s runs for more than 20 minutes", d.Path())
			}
			if !end.ok {
				return Failed("the task of SecureErase: %s", end.problem)
			}
		}
		return Passed("").With("drive", "%s", d.Path())
	}
	return Skipped("no free drive has SecureErase")
}

// filtered returns the values that keep returns true for.
func filtered(all []Value, keep func(Value) bool) []Value {
	return slices.DeleteFunc(slices.Clone(all), func(v Value) bool { return !keep(v) })
}

// modeSwitched changes a controller or a drive from RAID to JBOD and back, in a vendor's
// way: DMTF's schemas have none.
func modeSwitched(ctx context.Context, r *Run) Outcome {
	for _, way := range []func(context.Context, *Run) Outcome{dellController, dellDrive} {
		if o := way(ctx, r); o.Verdict != Skip {
			return o
		}
	}
	return Skipped("no controller and no drive has a mode that changes between RAID and JBOD, in a way that the check knows")
}

// dellMode is the mode of a PERC 9 or 10 [V: sushy]; later ones have RAID alone.
var dellMode = []string{"Oem", "Dell", "DellStorageController", "ControllerMode"}

// dellModes are the modes between which dellController changes.
var dellModes = map[string]string{"RAID": "HBA", "HBA": "RAID"}

// dellController changes the mode of a controller with settings over a reset.
func dellController(ctx context.Context, r *Run) Outcome {
	all, err := r.storages(ctx)
	if err != nil {
		return Judge(err)
	}
	for _, s := range all {
		members, err := r.Members(ctx, s.value.At("Controllers").LinkOr("/redfish/v1/"))
		if err != nil || len(members) == 0 {
			continue // STO-001 reads them
		}
		v, err := r.Page(ctx, members[0])
		if err != nil {
			return Judge(err)
		}
		settings := v.At("@Redfish.Settings", "SettingsObject").LinkOr("")
		was := v.At(dellMode...).TextOr("")
		to := dellModes[was]
		if settings == "" || to == "" {
			continue
		}
		for _, mode := range []string{to, was} {
			if o := r.setDellMode(ctx, members[0], settings, mode, was); o.Verdict != Pass {
				return o
			}
		}
		return Passed("").With("controller", "%s", members[0])
	}
	return Skipped("no controller has a mode")
}

// setDellMode sets the mode of a controller and restarts the server.
func (r *Run) setDellMode(ctx context.Context, controller, settings, mode, was string) Outcome {
	body := func(mode string) map[string]any {
		return map[string]any{
			"Oem":                        map[string]any{"Dell": map[string]any{"DellStorageController": map[string]string{"ControllerMode": mode}}},
			"@Redfish.SettingsApplyTime": map[string]string{"ApplyTime": "OnReset"},
		}
	}
	resp, err := r.patch(ctx, Change{
		Level: Destructive, Request: Request{URI: settings, Body: body(mode)},
		Undo: []Undo{{Method: http.MethodPatch, URI: settings, Match: true, Body: jsonBody(body(was))}},
	})
	if err != nil {
		return Judge(err)
	}
	if resp.Status/100 != 2 {
		return Failed("PATCH of ControllerMode to %s: %s", mode, resp.Problem())
	}
	if r.bmc.dry != nil {
		return Passed("")
	}
	if err := r.restart(ctx); err != nil {
		return Judge(err)
	}
	if _, err := r.finishTask(ctx, resp, "ControllerMode"); err != nil {
		return Judge(err)
	}
	now, _, err := r.Get(ctx, controller)
	if err != nil {
		return Judge(err)
	}
	if is := now.At(dellMode...).TextOr(""); is != mode {
		return Failed("ControllerMode is %q after it was set to %s", is, mode)
	}
	return Passed("")
}

// dellDrive converts a free drive to non-RAID and back by DellRaidService [V: sushy].
func dellDrive(ctx context.Context, r *Run) Outcome {
	place, err := r.Place(ctx)
	if err != nil {
		return Judge(err)
	}
	service := place.System.At("Links", "Oem", "Dell", "DellRaidService").LinkOr("")
	if service == "" {
		return Skipped("no service converts drives")
	}
	v, err := r.Page(ctx, service)
	if err != nil {
		return Judge(err)
	}
	s, err := r.spares(ctx)
	if err != nil {
		return Judge(err)
	}
	if err := r.ensure(ctx, "On"); err != nil { // drives have no power while the server is off
		return Judge(err)
	}
	drive, err := r.Page(ctx, s.free[0])
	if err != nil {
		return Judge(err)
	}
	const status = "Oem/Dell/DellPhysicalDisk/RaidStatus"
	body := map[string][]string{"PDArray": {drive.At("Id").TextOr("")}}
	target := func(action string) string { return v.At("Actions", "#DellRaidService."+action, "target").TextOr("") }
	undo := Undo{Method: http.MethodPost, URI: target("ConvertToRAID"), Body: jsonBody(body), State: &State{Resource: s.free[0], Property: status, Value: "Ready"}}
	for _, c := range []struct {
		action, want string
		undo         []Undo
	}{{"ConvertToNonRAID", "NonRAID", []Undo{undo}}, {"ConvertToRAID", "Ready", nil}} {
		if target(c.action) == "" {
			return Skipped("%s has no %s", service, c.action)
		}
		resp, err := r.Change(ctx, Change{Level: Destructive, Request: Request{Method: http.MethodPost, URI: target(c.action), Body: body}, Undo: c.undo})
		if err != nil {
			return Judge(err)
		}
		ok, problem, err := r.taken(ctx, resp)
		if err != nil {
			return Judge(err)
		}
		if !ok {
			return Failed("%s: %s", c.action, problem)
		}
		if r.bmc.dry != nil {
			continue
		}
		now, _, err := r.Get(ctx, s.free[0])
		if err != nil {
			return Judge(err)
		}
		if is := now.At(strings.Split(status, "/")...).TextOr(""); is != c.want {
			return Failed("RaidStatus is %q after %s, not %s", is, c.action, c.want)
		}
	}
	return Passed("").With("drive", "%s", s.free[0])
}
