package conformance

import (
	"context"
	"net/http"
	"slices"
	"strings"
	"time"
)

// fwChecks are the checks of firmware.
var fwChecks = []Check{
	{
		ID: "FW-001", Title: "versions of BMC, BIOS and NIC firmware are listed", Level: ReadOnly, Protocol: Redfish, Step: Prepare,
		Predicts: "HostFirmwareComponents is empty", Remedy: "read versions by hand",
		After: []string{"SYS-001"}, Run: firmwareListed,
	},
	{
		ID: "FW-002", Title: "UpdateService: push URIs, protocols and apply times", Level: ReadOnly, Protocol: Redfish, Step: Prepare,
		Predicts: "firmware cannot be updated", Remedy: "update firmware by hand",
		After: []string{"SYS-001"}, Run: updatesOffered,
	},
	{
		ID: "FW-003", Title: "SimpleUpdate with an unreachable URI fails cleanly", Level: Reversible, Protocol: Redfish, Step: Prepare,
		Predicts: "update tasks hang", Remedy: "reset the BMC when a task hangs",
		After: []string{"FW-002"}, Run: wrongImageFails,
	},
	{
		ID: "FW-004", Title: "the same version is flashed again through a task", Level: Destructive, Protocol: Redfish, Step: Prepare,
		Predicts: "firmware updates fail", Remedy: "update firmware by hand",
		After: []string{"FW-003"}, Needs: []Facility{NeedsFirmware}, Run: sameFlashed,
	},
}

// firmwareListed compares the inventory with what system and manager say of their
// firmware.
func firmwareListed(ctx context.Context, r *Run) Outcome {
	place, err := r.Place(ctx)
	if err != nil {
		return Judge(err)
	}
	_, service, err := r.updateService(ctx)
	if err != nil {
		return Judge(err)
	}
	uri, err := service.At("FirmwareInventory").Link()
	if err != nil {
		return Judge(err)
	}
	members, err := r.Members(ctx, uri)
	if err != nil {
		return Judge(err)
	}
	if len(members) == 0 {
		return Failed("%s is empty", uri)
	}
	var versions, empty []string
	nic := false
	for _, m := range members[:min(len(members), 200)] {
		v, err := r.Page(ctx, m)
		if err != nil {
			return Judge(err)
		}
		version := v.At("Version").TextOr("")
		if version == "" && v.At("Status", "State").TextOr("Enabled") == "Enabled" {
			empty = append(empty, m)
		}
		versions = append(versions, version)
		name := strings.ToLower(m + " " + v.At("Name").TextOr("") + " " + v.At("SoftwareId").TextOr(""))
		nic = nic || strings.Contains(name, "nic") || strings.Contains(name, "network") || strings.Contains(name, "ethernet")
	}
	has := func(version string) bool {
		return version == "" || slices.ContainsFunc(versions, func(v string) bool {
			return v != "" && (strings.Contains(version, v) || strings.Contains(v, version))
		})
	}
	bmc, bios := place.Manager.At("FirmwareVersion").TextOr(""), place.System.At("BiosVersion").TextOr("")
	o := Passed("").With("BMC", "%s", bmc).With("BIOS", "%s", bios).With("components", "%d", len(members))
	var missing []string
	if !has(bmc) {
		missing = append(missing, "the BMC's version "+bmc)
	}
	if !has(bios) {
		missing = append(missing, "the BIOS' version "+bios)
	}
	switch {
	case len(empty) > 0:
		o.Verdict, o.Reason = Fail, "components have no Version: "+strings.Join(empty[:min(len(empty), 5)], ", ")
	case len(missing) > 0:
		o.Verdict, o.Reason = Warn, "the inventory lacks "+strings.Join(missing, " and ")
	case !nic:
		o.Reason = "the inventory has no NIC"
	}
	return o
}

// updateService reads the update service.
func (r *Run) updateService(ctx context.Context) (string, Value, error) {
	root, err := r.Page(ctx, "/redfish/v1/")
	if err != nil {
		return "", Value{}, err
	}
	uri, err := root.At("UpdateService").Link()
	if err != nil {
		return "", Value{}, Findingf("the service root has no link to UpdateService")
	}
	v, err := r.Page(ctx, uri)
	return uri, v, err
}

// updatesOffered looks for the ways to update firmware.
func updatesOffered(ctx context.Context, r *Run) Outcome {
	_, v, err := r.updateService(ctx)
	if err != nil {
		return Judge(err)
	}
	if on, err := v.At("ServiceEnabled").Bool(); err == nil && !on {
		return Failed("the update service is disabled")
	}
	var ways []string
	simple := v.At("Actions", "#UpdateService.SimpleUpdate")
	if _, err := simple.At("target").Text(); err == nil {
		way := "SimpleUpdate"
		if protocols, err := simple.At("TransferProtocol@Redfish.AllowableValues").Texts(); err == nil {
			way += " by " + strings.Join(protocols, ", ")
		}
		ways = append(ways, way)
	}
	for _, name := range []string{"MultipartHttpPushUri", "HttpPushUri"} {
		if uri := v.At(name).TextOr(""); uri != "" {
			ways = append(ways, name)
		}
	}
	if len(ways) == 0 {
		return Failed("the update service has neither SimpleUpdate nor a push URI")
	}
	o := Passed("").With("updates", "%s", strings.Join(ways, "; "))
	if !simple.Exists() {
		o.Verdict, o.Reason = Warn, "the update service has no SimpleUpdate, which Ironic uses"
	}
	return o
}

// deadImage is an address of the BMC itself at which nobody answers.
const deadImage = "http://127.0.0.1:1/labctl-no-such-firmware.bin"

// simpleUpdate returns the URI of the action, which a BMC need not have.
func (r *Run) simpleUpdate(ctx context.Context) (string, error) {
	_, v, err := r.updateService(ctx)
	if err != nil {
		return "", err
	}
	target, err := v.At("Actions", "#UpdateService.SimpleUpdate", "target").Text()
	if err != nil {
		return "", NothingThere("the update service has no SimpleUpdate")
	}
	return target, nil
}

// wrongImageFails updates from an address at which nothing is.
func wrongImageFails(ctx context.Context, r *Run) Outcome {
	target, err := r.simpleUpdate(ctx)
	if err != nil {
		return Judge(err)
	}
	began := r.Now()
	resp, err := r.Change(ctx, Change{Request: Request{Method: http.MethodPost, URI: target, Body: map[string]string{"ImageURI": deadImage, "TransferProtocol": "HTTP"}}})
	if err != nil {
		return Judge(err)
	}
	switch {
	case resp.Status >= 500 && !bytesContain(resp.Body, "MessageId"):
		return Failed("SimpleUpdate from a closed port is refused without a message: %s", resp.Problem())
	case resp.Status >= 400:
		return Passed("").With("error", "%s", resp.Problem())
	case r.bmc.dry != nil:
		return Passed("")
	}
	uri := resp.Header.Get("Location")
	if uri == "" {
		return Failed("SimpleUpdate from a closed port is answered %d without Location", resp.Status)
	}
	late, err := r.lateTask(ctx, resp)
	if err != nil {
		return Judge(err)
	}
	end, err := r.awaitTask(ctx, uri, 10*time.Minute)
	if err != nil {
		return Judge(err)
	}
	took := r.Now().Sub(began).Round(time.Second)
	o := Passed("").With("error", "%s after %v", end.problem, took)
	switch {
	case end.gone:
		o.Verdict, o.Reason = Warn, "the task vanished before its end was seen"
		return o.Quirky("task-purged")
	case end.ok:
		return Failed("SimpleUpdate from a closed port is reported as completed")
	case !end.over:
		return Failed("SimpleUpdate from a closed port: %s", end.problem)
	}
	if end.late || late {
		o.Verdict, o.Reason = Warn, "the first reads of a new task are answered 404"
		o = o.Quirky("task-404-race")
	}
	if slices.Contains(end.states, "New") {
		o = o.Quirky("task-state-new")
	}
	return o
}

// lateTask reads the task that the body of a 202 names, and reports whether it is
// not there at first.
func (r *Run) lateTask(ctx context.Context, resp *Response) (late bool, err error) {
	v, err := resp.JSON()
	if err != nil {
		return false, nil // a body is not required
	}
	task := v.LinkOr("")
	if task == "" {
		return false, nil
	}
	_, err = r.Poll(ctx, time.Second, 10*time.Second, func() (bool, error) {
		resp, err := r.Do(ctx, Request{URI: task})
		if err != nil {
			return false, err
		}
		late = late || resp.Status == http.StatusNotFound
		return resp.Status == http.StatusOK, nil
	})
	return late, err
}

// sameFlashed flashes the firmware that is there already.
func sameFlashed(ctx context.Context, r *Run) Outcome {
	target, err := r.simpleUpdate(ctx)
	if err != nil {
		return Judge(err)
	}
	scheme, _, _ := strings.Cut(r.Config().Firmware, "://")
	resp, err := r.Change(ctx, Change{Level: Destructive, Request: Request{
		Method: http.MethodPost, URI: target, Body: map[string]string{"ImageURI": r.Config().Firmware, "TransferProtocol": strings.ToUpper(scheme)},
	}})
	if err != nil {
		return Judge(err)
	}
	if resp.Status/100 != 2 {
		return Failed("SimpleUpdate: %s", resp.Problem())
	}
	uri := resp.Header.Get("Location")
	if r.bmc.dry != nil || resp.Status != http.StatusAccepted {
		return Passed("")
	}
	if uri == "" {
		return Failed("SimpleUpdate is answered 202 without Location")
	}
	end, err := r.awaitTask(ctx, uri, 30*time.Minute)
	if err != nil {
		return Judge(err)
	}
	if !end.ok {
		return Failed("the task of SimpleUpdate: %s", end.problem)
	}
	return Passed("").With("task", "%s", strings.Join(end.states, " "))
}
