package redfish

import (
	"context"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/metalab-dev/metalab/emulator/bmc"
	"github.com/metalab-dev/metalab/emulator/machine"
	"github.com/metalab-dev/metalab/emulator/machine/firmware"
	"github.com/metalab-dev/metalab/emulator/redfish/message"
)

const updateService = "/redfish/v1/UpdateService"

// updateRows are the update service, which takes images by fetching them or by
// having them pushed (push.go).
func updateRows() []resource {
	return []resource{
		{uri: updateService, schema: "UpdateService.v1_17_0", shows: PartUpdates,
			read: updates, patch: &updatePatch, actions: updateActions},
		{uri: multipartPush, needs: ofComponents, shows: PartUpdates, link: "-", upload: &upload{multipartUpload, updateParameters}},
		{uri: plainPush, needs: ofComponents, shows: PartUpdates, link: "-", upload: &upload{kind: plainUpload}},
	}
}

func updates(v view) object {
	u := v.b.Updates
	push := object{"ApplyTime": string(pushTime(u).Apply)}
	if w := u.Push; !w.Start.IsZero() {
		push[windowStart], push[windowLength] = w.Start.UTC().Format(time.RFC3339), int64(w.Length/time.Second)
	}
	state := "Enabled"
	if u.Disabled {
		state = "Disabled"
	}
	return object{
		"Name": "Update Service", "Description": "Installs firmware.", "ServiceEnabled": !u.Disabled, "Status": status(state),
		"MultipartHttpPushUri": multipartPush, "HttpPushUri": plainPush, "MaxImageSizeBytes": v.d.MaxImageBytes,
		"HttpPushUriOptions":     object{"ForceUpdate": u.Force, "HttpPushUriApplyTime": push},
		"HttpPushUriOptionsBusy": u.Reserved, "HttpPushUriTargets": append([]string{}, u.Targets...), "HttpPushUriTargetsBusy": u.Aimed,
		"SupportedUpdateImageFormats": []string{"VendorDefined"}, "VerifyRemoteServerCertificate": !u.Unverified,
		"@Redfish.OperationApplyTimeSupport": timeSupport(),
	}
}

// pushTime is when images that are pushed without saying are applied.
func pushTime(u *bmc.Updates) firmware.When {
	w := u.Push
	if w.Apply == "" {
		w.Apply = firmware.Immediate
	}
	return w
}

var updatePatch = patch{
	inputs: []input{
		{name: "ServiceEnabled", kind: boolean},
		{name: "VerifyRemoteServerCertificate", kind: boolean},
		{name: "HttpPushUriOptionsBusy", kind: boolean},
		{name: "HttpPushUriTargetsBusy", kind: boolean},
		{name: "HttpPushUriTargets", kind: array, of: []input{{kind: text}}},
		{name: "HttpPushUriOptions", kind: group, of: []input{
			{name: "ForceUpdate", kind: boolean},
			{name: "HttpPushUriApplyTime", kind: group, of: applyTimeInputs(updateTimes)},
		}},
	},
	apply: func(ctx context.Context, c operation) (reply, error) {
		u := *c.view.b.Updates
		u.Disabled = !value(c.set, "ServiceEnabled", !u.Disabled)
		u.Unverified = !value(c.set, "VerifyRemoteServerCertificate", !u.Unverified)
		u.Reserved = value(c.set, "HttpPushUriOptionsBusy", u.Reserved)
		u.Aimed = value(c.set, "HttpPushUriTargetsBusy", u.Aimed)
		u.Force = value(c.set, "HttpPushUriOptions/ForceUpdate", u.Force)
		if targets, ok := c.set["HttpPushUriTargets"].([]any); ok {
			u.Targets = nil
			for _, t := range targets {
				uri := t.(string)
				if _, known := c.targets()[uri]; !known {
					m := message.PropertyValueNotInList.With(uri, "HttpPushUriTargets").About("#/HttpPushUriTargets")
					return reply{}, decline(http.StatusBadRequest, m)
				}
				u.Targets = append(u.Targets, uri)
			}
		}
		const under = "HttpPushUriOptions/HttpPushUriApplyTime"
		if _, ok := c.set[under+"/ApplyTime"]; ok {
			when, err := applyAt(c.set, under+"/ApplyTime", under, c.host.Now())
			if err != nil {
				return reply{}, err
			}
			u.Push = when
		}
		_, err := c.host.ApplyBMC(ctx, bmc.SetUpdates{Updates: u})
		return reply{}, err
	},
}

// What a client says of when an operation shall take effect (DSP0266,
// "Operation apply time").
const (
	operationTime   = "@Redfish.OperationApplyTime"
	operationWindow = "@Redfish.MaintenanceWindow"
)

func updateTimes(view) []string { return texts(firmware.UpdateTimes) }

// operationInputs are a client's wish of when an update shall happen.
var operationInputs = []input{
	{name: operationTime, kind: text, values: updateTimes},
	{name: operationWindow, kind: group, of: windowInputs},
}

// timeSupport tells which apply times there are.
func timeSupport() object {
	return object{"@odata.type": "#Settings.v1_4_0.OperationApplyTimeSupport", "SupportedValues": texts(firmware.UpdateTimes)}
}

// supportedTimes is what an action shows of the times that it takes.
func supportedTimes(view) object {
	return object{"@Redfish.OperationApplyTimeSupport": timeSupport()}
}

const simpleUpdateAction = "UpdateService.SimpleUpdate"

var updateActions = []action{
	{
		name: simpleUpdateAction,
		inputs: append([]input{
			{name: "ImageURI", kind: text, required: true, max: 2048},
			{name: "TransferProtocol", kind: text, values: oneOf(imageSchemes...)},
			{name: "Targets", kind: array, of: []input{{kind: text}}},
			{name: "ExcludeTargets", kind: array, of: []input{{kind: text}}},
			{name: "Username", kind: text},
			{name: "Password", kind: text, secret: true},
			{name: "ForceUpdate", kind: boolean},
			{name: "Stage", kind: boolean},
		}, operationInputs...),
		beside: supportedTimes,
		apply:  simpleUpdate,
	},
	{
		name: "UpdateService.StartUpdate",
		apply: func(ctx context.Context, c operation) (reply, error) {
			if err := c.takesUpdates(); err != nil {
				return reply{}, err
			}
			return reply{}, c.host.Apply(ctx, machine.Firmware{Command: firmware.StartUpdates{}})
		},
	},
}

// takesUpdates refuses an update while the service is disabled.
func (c operation) takesUpdates() error {
	if c.host.BMC().Updates.Disabled {
		return decline(http.StatusServiceUnavailable, message.ServiceDisabled.With(updateService))
	}
	return nil
}

// simpleUpdate fetches an image and installs it. What can be seen at once to be
// wrong is refused at once; the rest is told by the task.
func simpleUpdate(ctx context.Context, c operation) (reply, error) {
	if err := c.takesUpdates(); err != nil {
		return reply{}, err
	}
	uri := value(c.set, "ImageURI", "")
	if !strings.Contains(uri, "://") { // DSP2046, SimpleUpdate.TransferProtocol
		uri = strings.ToLower(value(c.set, "TransferProtocol", "HTTP")) + "://" + uri
	}
	if !isImage(uri) {
		m := message.ActionParameterValueFormatError.With(withoutPassword(uri), "ImageURI", simpleUpdateAction)
		return reply{}, decline(http.StatusBadRequest, m.About("#/ImageURI"))
	}
	stage, err := c.stage(simpleUpdateAction, c.set)
	if err != nil {
		return reply{}, err
	}
	j, err := c.host.FetchUpdate(ctx, c.job("Update with "+imageName(uri)), ImageSource{
		URL: uri, User: value(c.set, "Username", ""), Password: value(c.set, "Password", ""),
		Unverified: c.host.BMC().Updates.Unverified, Most: c.view.d.MaxImageBytes,
	}, stage)
	return reply{job: j.ID}, err
}

// imageName is the last segment of an image's address.
func imageName(uri string) string {
	u, err := url.Parse(uri)
	if err != nil {
		return "an image"
	}
	return u.Path[strings.LastIndexByte(u.Path, '/')+1:]
}

// stage is the update that a request asks for.
func (c operation) stage(action string, set values) (firmware.Stage, error) {
	when, err := applyAt(set, operationTime, operationWindow, c.host.Now())
	if err != nil {
		return firmware.Stage{}, err
	}
	s := firmware.Stage{Force: value(set, "ForceUpdate", false), Keep: value(set, "Stage", false), When: when}
	for _, of := range []struct {
		name string
		to   *[]string
	}{{"Targets", &s.Only}, {"ExcludeTargets", &s.Not}} {
		uris, _ := set[of.name].([]any)
		for _, x := range uris {
			uri, _ := x.(string)
			ids, known := c.targets()[uri]
			if !known {
				m := message.ActionParameterValueNotInList.With(uri, of.name, action).About("#/" + of.name)
				return firmware.Stage{}, decline(http.StatusBadRequest, m)
			}
			for _, id := range ids {
				if !slices.Contains(*of.to, id) {
					*of.to = append(*of.to, id)
				}
			}
		}
	}
	if len(s.Only) > 0 {
		s.Not = nil // DSP2046, SimpleUpdate.ExcludeTargets
	}
	return s, nil
}

// targets are the components that each address stands for that an update can
// be aimed at: their own, those of the devices that they are of, that of the
// system for all but the BMC, and that of the inventory for all (DSP2046,
// SimpleUpdate.Targets).
func (c operation) targets() map[string][]string {
	at, out := look(c.host), map[string][]string{}
	for _, x := range at.m.Components() {
		v := c.view.tree.find(&url.URL{Path: firmwareURI(x.ID)}).view(at)
		for _, uri := range append(v.related(x.Subject), firmwareURI(x.ID), firmwareInventory, v.system()) {
			if !slices.Contains(out[uri], x.ID) && (x.Kind != firmware.KindBMC || uri != v.system()) {
				out[uri] = append(out[uri], x.ID)
			}
		}
	}
	return out
}

// knownTargets refuses addresses that stand for none of some components.
func (c operation) knownTargets(action string, uris []any, components []string) error {
	for _, x := range uris {
		uri, _ := x.(string)
		fits := slices.ContainsFunc(c.targets()[uri], func(id string) bool { return slices.Contains(components, id) })
		if !fits {
			return decline(http.StatusBadRequest, message.ActionParameterValueNotInList.With(uri, "Targets", action).About("#/Targets"))
		}
	}
	return nil
}

// The addresses to which images are pushed. They are no resources (DSP2046,
// UpdateService.MultipartHttpPushUri).
const (
	multipartPush = updateService + "/MultipartUpload"
	plainPush     = updateService + "/Upload"
)

// updateParameters are what a client says of an image that it pushes (DSP2046,
// UpdateService.UpdateParameters).
var updateParameters = append([]input{
	{name: "Targets", kind: array, of: []input{{kind: text}}},
	{name: "ExcludeTargets", kind: array, of: []input{{kind: text}}},
	{name: "ForceUpdate", kind: boolean},
	{name: "Stage", kind: boolean},
	{name: "Oem", kind: free},
}, operationInputs...)
