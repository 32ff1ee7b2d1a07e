package conformance

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"slices"
	"time"
)

// onceConsumed boots twice with an override for one boot.
func onceConsumed(ctx context.Context, r *Run) Outcome {
	if err := r.ensure(ctx, "Off"); err != nil {
		return Judge(err)
	}
	w, err := r.bootWriter(ctx)
	if err != nil {
		return Judge(err)
	}
	want := override{target: "Hdd", enabled: "Once"}
	if err := w.write(ctx, want); err != nil {
		return Judge(err)
	}
	if err := r.restart(ctx); err != nil {
		return Judge(err)
	}
	var now override
	gone, err := r.Poll(ctx, powerInterval, time.Minute, func() (bool, error) {
		now, err = w.boot(ctx)
		return now.enabled == "Disabled" || now.target == "None", err
	})
	if err != nil {
		return Judge(err)
	}
	if !gone && r.bmc.dry == nil {
		return Failed("the boot override is %s after the boot that it was for", now)
	}
	return Passed("")
}

// pxeHeard boots from the network and listens for DHCP.
func pxeHeard(ctx context.Context, r *Run) Outcome {
	known, err := r.nics(ctx)
	if err != nil {
		return Judge(err)
	}
	var macs []net.HardwareAddr
	for _, n := range known {
		if mac, err := net.ParseMAC(n.mac); err == nil {
			macs = append(macs, mac)
		}
	}
	if len(macs) == 0 {
		return Failed("the system shows no MAC address")
	}
	if err := r.ensure(ctx, "Off"); err != nil {
		return Judge(err)
	}
	w, err := r.bootWriter(ctx)
	if err != nil {
		return Judge(err)
	}
	if err := w.write(ctx, override{target: "Pxe", enabled: "Once"}); err != nil {
		return Judge(err)
	}
	if _, _, err := r.resetTo(ctx, "On", "On"); err != nil {
		return Judge(err)
	}
	if r.bmc.dry != nil {
		return Passed("")
	}
	limit := longest(ctx, postLimit)
	timed, cancel := r.within(ctx, limit)
	defer cancel()
	mac, err := r.Config().DHCP.Discover(timed, macs)
	if err != nil {
		if timed.Err() != nil && ctx.Err() == nil {
			return Failed("no DHCP DISCOVER of %v in %v", macs, limit)
		}
		return Judge(err)
	}
	return Passed("").With("DISCOVER of", "%s", mac)
}

// httpBooted sets an address for UEFI HTTP boot and waits for the request.
func httpBooted(ctx context.Context, r *Run) Outcome {
	place, err := r.Place(ctx)
	if err != nil {
		return Judge(err)
	}
	boot := place.System.At("Boot")
	targets, err := boot.At(bootTarget + "@Redfish.AllowableValues").Texts()
	if err != nil || !slices.Contains(targets, "UefiHttp") || !boot.At("HttpBootUri").Exists() {
		return Skipped("the boot override has no UefiHttp with HttpBootUri")
	}
	const name = "uefi-http-boot.efi"
	url, err := r.Config().Media.URL("http", name)
	if err != nil {
		return Judge(err)
	}
	if err := r.ensure(ctx, "Off"); err != nil {
		return Judge(err)
	}
	w, err := r.bootWriter(ctx)
	if err != nil {
		return Judge(err)
	}
	before := boot.At("HttpBootUri").Raw()
	resp, err := r.patch(ctx, Change{
		Request: Request{URI: w.uri, Body: map[string]any{"Boot": map[string]any{
			"HttpBootUri": url, bootTarget: "UefiHttp", bootEnabled: "Once",
		}}},
		Undo: append([]Undo{{Method: http.MethodPatch, URI: w.uri, Match: true, Body: jsonBody(map[string]any{"Boot": map[string]any{"HttpBootUri": before}})}}, w.undo...),
	})
	if err != nil {
		return Judge(err)
	}
	if resp.Status/100 != 2 {
		return Failed("PATCH of HttpBootUri: %s", resp.Problem())
	}
	if _, _, err := r.resetTo(ctx, "On", "On"); err != nil {
		return Judge(err)
	}
	limit := longest(ctx, postLimit)
	heard, err := r.Poll(ctx, powerInterval, limit, func() (bool, error) { return len(r.Config().Media.Requests(name)) > 0, nil })
	if err != nil {
		return Judge(err)
	}
	if !heard && r.bmc.dry == nil {
		return Failed("HttpBootUri is accepted, and nobody has fetched it in %v", limit)
	}
	return Passed("")
}

// overrideDuringPOST writes while the system starts.
func overrideDuringPOST(ctx context.Context, r *Run) Outcome {
	if err := r.ensure(ctx, "Off"); err != nil {
		return Judge(err)
	}
	if _, _, err := r.resetTo(ctx, "On", "On"); err != nil {
		return Judge(err)
	}
	w, err := r.bootWriter(ctx)
	if err != nil {
		return Judge(err)
	}
	send := override{"Pxe", "Once", w.mode}
	ok, problem, err := w.accepts(ctx, send)
	if err != nil {
		return Judge(err)
	}
	if ok {
		if err := w.shows(ctx, override{target: "Pxe", enabled: "Once"}); err != nil {
			return Judge(fmt.Errorf("during POST: %w", err))
		}
		return Passed("it is accepted during POST")
	}
	if _, err := r.awaitPOST(ctx); err != nil {
		return Judge(err)
	}
	if ok, later, err := w.accepts(ctx, send); err != nil {
		return Judge(err)
	} else if !ok {
		return Failed("an override is refused during POST (%s) and after it (%s)", problem, later)
	}
	return Warned("an override during POST is refused: %s", problem).Quirky("post-rejects-changes")
}
