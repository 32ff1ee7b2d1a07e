package conformance

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"time"
)

// mgrChecks are the checks of the manager.
var mgrChecks = []Check{
	{
		ID: "MGR-001", Title: "the BMC is back in time after a reset", Level: Disruptive, Protocol: Redfish, Step: Day2,
		Predicts: "the node is lost", Remedy: "raise the client's time-out",
		After: []string{"SYS-003"}, Run: managerReset,
	},
	{
		ID: "MGR-002", Title: "NetworkProtocol shows IPMI, SSH, KVM and HTTP", Level: ReadOnly, Protocol: Redfish, Step: Day2,
		Predicts: "hardening is not visible", Remedy: "read the settings by hand",
		After: []string{"SYS-003"}, Run: protocolsShown,
	},
}

// managerLimit is how long a BMC may take to restart.
const managerLimit = 10 * time.Minute

// managerReset restarts the BMC and waits for it.
func managerReset(ctx context.Context, r *Run) Outcome {
	place, err := r.Place(ctx)
	if err != nil {
		return Judge(err)
	}
	action := place.Manager.At("Actions", "#Manager.Reset")
	target, err := action.At("target").Text()
	if err != nil {
		return Skipped("the manager has no Reset")
	}
	kind := "ForceRestart"
	if types, err := r.resetTypes(ctx, action); err == nil && !slices.Contains(types, kind) && len(types) > 0 {
		kind = types[0]
	}
	_, token, loginErr := r.login(ctx) // a session that the restart may end
	resp, err := r.Change(ctx, Change{Level: Disruptive, Request: Request{Method: http.MethodPost, URI: target, Body: map[string]string{"ResetType": kind}}})
	if err != nil {
		return Judge(err)
	}
	if resp.Status/100 != 2 {
		return Failed("Manager.Reset: %s", resp.Problem())
	}
	if r.bmc.dry != nil {
		return Passed("")
	}
	began := r.Now()
	away := false
	// It may answer for a while before it goes.
	if _, err = r.Poll(ctx, time.Second, time.Minute, func() (bool, error) {
		away = !r.alive(ctx)
		return away, ctx.Err()
	}); err != nil {
		return Judge(err)
	}
	back, err := r.Poll(ctx, powerInterval, managerLimit, func() (bool, error) { return r.alive(ctx), ctx.Err() })
	if err != nil {
		return Judge(err)
	}
	if !back {
		return Failed("the BMC has not answered for %v after its reset", managerLimit)
	}
	o := Passed("").With("back after", "%v", r.Now().Sub(began).Round(time.Second))
	if loginErr == nil {
		resp, err := r.withToken(ctx, token)
		if err == nil {
			o = o.With("sessions", "%s", map[bool]string{true: "stay", false: "end"}[resp.Status == http.StatusOK])
		}
	}
	r.bmc.session = nil // the run logs in again
	if !away {
		o.Verdict, o.Reason = Warn, "the BMC answered all the time: the reset may not have happened"
	}
	// The resources may need longer than the service.
	ready, err := r.Poll(ctx, powerInterval, managerLimit, func() (bool, error) {
		resp, err := r.Do(ctx, Request{URI: place.SystemURI})
		if err != nil && errors.As(err, new(*Finding)) {
			err = nil
		}
		return resp != nil && resp.Status == http.StatusOK, err
	})
	if err != nil {
		return Judge(err)
	}
	if !ready {
		return Failed("%v after its reset the BMC does not show the system", managerLimit)
	}
	return o
}

// alive reports whether the service root is answered.
func (r *Run) alive(ctx context.Context) bool {
	resp, err := r.Do(ctx, Request{URI: "/redfish/v1/", Auth: Anonymous, Timeout: 5 * time.Second})
	return err == nil && resp.Status == http.StatusOK
}

// protocolsShown reads the states of the manager's protocols.
func protocolsShown(ctx context.Context, r *Run) Outcome {
	place, err := r.Place(ctx)
	if err != nil {
		return Judge(err)
	}
	link := place.Manager.At("NetworkProtocol")
	if !link.Exists() {
		return Failed("the manager has no NetworkProtocol")
	}
	uri, err := link.Link()
	if err != nil {
		return Judge(err)
	}
	v, err := r.Page(ctx, uri)
	if err != nil {
		return Judge(err)
	}
	var on, open []string
	shown := 0
	for _, name := range []string{"HTTPS", "HTTP", "IPMI", "SSH", "KVMIP", "VirtualMedia", "SNMP", "Telnet", "SSDP", "NTP"} {
		p := v.At(name)
		if p.Null() {
			continue
		}
		enabled, err := p.At("ProtocolEnabled").Bool()
		if err != nil {
			return Judge(err)
		}
		shown++
		if enabled {
			on = append(on, name)
			if name == "Telnet" || name == "HTTP" {
				open = append(open, name)
			}
		}
	}
	o := Passed("").With("protocols", "%s", strings.Join(on, " "))
	switch {
	case shown == 0:
		return Failed("%s shows no protocol", uri)
	case len(open) > 0:
		o.Verdict, o.Reason = Warn, fmt.Sprintf("%s is enabled: it sends credentials in clear text", strings.Join(open, " and "))
	}
	return o
}
