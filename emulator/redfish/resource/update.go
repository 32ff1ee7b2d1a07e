package resource

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

const UpdateService = "/redfish/v1/UpdateService"

// updateRows are the update service, which takes images by fetching them or by
// having them pushed (imagepush.go of the service).
func updateRows() []Row {
	return []Row{
		{URI: UpdateService, Schema: "UpdateService.v1_17_0", DependsOn: PartUpdates,
			Read: updates, Patch: &updatePatch, Actions: updateActions},
		{URI: MultipartPush, Privileges: ofComponents, DependsOn: PartUpdates, Link: "-", Upload: &upload{MultipartUpload, UpdateParameters}},
		{URI: PlainPush, Privileges: ofComponents, DependsOn: PartUpdates, Link: "-", Upload: &upload{Kind: PlainUpload}},
	}
}

func updates(v View) Object {
	u := v.BMC.Updates
	push := Object{"ApplyTime": string(PushTime(u).Apply)}
	if w := u.Push; !w.Start.IsZero() {
		push[windowStart], push[windowLength] = w.Start.UTC().Format(time.RFC3339), int64(w.Length/time.Second)
	}
	state := "Enabled"
	if u.Disabled {
		state = "Disabled"
	}
	return Object{
		"Name": "Update Service", "Description": "Installs firmware.", "ServiceEnabled": !u.Disabled, "Status": status(state),
		"MultipartHttpPushUri": MultipartPush, "HttpPushUri": PlainPush, "MaxImageSizeBytes": v.Dialect.MaxImageBytes,
		"HttpPushUriOptions":     Object{"ForceUpdate": u.Force, "HttpPushUriApplyTime": push},
		"HttpPushUriOptionsBusy": u.Reserved, "HttpPushUriTargets": append([]string{}, u.Targets...), "HttpPushUriTargetsBusy": u.Aimed,
		"SupportedUpdateImageFormats": []string{"VendorDefined"}, "VerifyRemoteServerCertificate": !u.Unverified,
		"@Redfish.OperationApplyTimeSupport": timeSupport(),
	}
}

// PushTime is when images that are pushed without saying are applied.
func PushTime(u *bmc.Updates) firmware.When {
	w := u.Push
	if w.Apply == "" {
		w.Apply = firmware.Immediate
	}
	return w
}

var updatePatch = Patch{
	Inputs: []Input{
		{Name: "ServiceEnabled", Kind: Boolean},
		{Name: "VerifyRemoteServerCertificate", Kind: Boolean},
		{Name: "HttpPushUriOptionsBusy", Kind: Boolean},
		{Name: "HttpPushUriTargetsBusy", Kind: Boolean},
		{Name: "HttpPushUriTargets", Kind: Array, Of: []Input{{Kind: Text}}},
		{Name: "HttpPushUriOptions", Kind: Group, Of: []Input{
			{Name: "ForceUpdate", Kind: Boolean},
			{Name: "HttpPushUriApplyTime", Kind: Group, Of: applyTimeInputs(updateTimes)},
		}},
	},
	Apply: func(ctx context.Context, c Call) (Result, error) {
		u := *c.View.BMC.Updates
		u.Disabled = !Value(c.Values, "ServiceEnabled", !u.Disabled)
		u.Unverified = !Value(c.Values, "VerifyRemoteServerCertificate", !u.Unverified)
		u.Reserved = Value(c.Values, "HttpPushUriOptionsBusy", u.Reserved)
		u.Aimed = Value(c.Values, "HttpPushUriTargetsBusy", u.Aimed)
		u.Force = Value(c.Values, "HttpPushUriOptions/ForceUpdate", u.Force)
		if targets, ok := c.Values["HttpPushUriTargets"].([]any); ok {
			u.Targets = nil
			for _, t := range targets {
				uri := t.(string)
				if _, known := c.targets()[uri]; !known {
					m := message.PropertyValueNotInList.With(uri, "HttpPushUriTargets").About("#/HttpPushUriTargets")
					return Result{}, Decline(http.StatusBadRequest, m)
				}
				u.Targets = append(u.Targets, uri)
			}
		}
		const under = "HttpPushUriOptions/HttpPushUriApplyTime"
		if _, ok := c.Values[under+"/ApplyTime"]; ok {
			when, err := applyAt(c.Values, under+"/ApplyTime", under, c.Host.Now())
			if err != nil {
				return Result{}, err
			}
			u.Push = when
		}
		_, err := c.Host.ApplyBMC(ctx, bmc.SetUpdates{Updates: u})
		return Result{}, err
	},
}

// What a client says of when an operation shall take effect (DSP0266,
// "Operation apply time").
const (
	OperationApplyTime = "@Redfish.OperationApplyTime"
	operationWindow    = "@Redfish.MaintenanceWindow"
)

func updateTimes(View) []string { return Texts(firmware.UpdateTimes) }

// operationInputs are a client's wish of when an update shall happen.
var operationInputs = []Input{
	{Name: OperationApplyTime, Kind: Text, Allowed: updateTimes},
	{Name: operationWindow, Kind: Group, Of: windowInputs},
}

// timeSupport tells which apply times there are.
func timeSupport() Object {
	return Object{"@odata.type": "#Settings.v1_4_0.OperationApplyTimeSupport", "SupportedValues": Texts(firmware.UpdateTimes)}
}

// supportedTimes is what an action shows of the times that it takes.
func supportedTimes(View) Object {
	return Object{"@Redfish.OperationApplyTimeSupport": timeSupport()}
}

const SimpleUpdateAction = "UpdateService.SimpleUpdate"

var updateActions = []Action{
	{
		Name: SimpleUpdateAction,
		Inputs: append([]Input{
			{Name: "ImageURI", Kind: Text, Required: true, Max: 2048},
			{Name: "TransferProtocol", Kind: Text, Allowed: OneOf(imageSchemes...)},
			{Name: "Targets", Kind: Array, Of: []Input{{Kind: Text}}},
			{Name: "ExcludeTargets", Kind: Array, Of: []Input{{Kind: Text}}},
			{Name: "Username", Kind: Text},
			{Name: "Password", Kind: Text, Secret: true},
			{Name: "ForceUpdate", Kind: Boolean},
			{Name: "Stage", Kind: Boolean},
		}, operationInputs...),
		beside: supportedTimes,
		Apply:  simpleUpdate,
	},
	{
		Name: "UpdateService.StartUpdate",
		Apply: func(ctx context.Context, c Call) (Result, error) {
			if err := c.TakesUpdates(); err != nil {
				return Result{}, err
			}
			return Result{}, c.Host.Apply(ctx, machine.Firmware{Command: firmware.StartUpdates{}})
		},
	},
}

// TakesUpdates refuses an update while the service is disabled.
func (c Call) TakesUpdates() error {
	if c.Host.BMC().Updates.Disabled {
		return Decline(http.StatusServiceUnavailable, message.ServiceDisabled.With(UpdateService))
	}
	return nil
}

// simpleUpdate fetches an image and installs it. What can be seen at once to be
// wrong is refused at once; the rest is told by the task.
func simpleUpdate(ctx context.Context, c Call) (Result, error) {
	if err := c.TakesUpdates(); err != nil {
		return Result{}, err
	}
	uri := Value(c.Values, "ImageURI", "")
	if !strings.Contains(uri, "://") { // DSP2046, SimpleUpdate.TransferProtocol
		uri = strings.ToLower(Value(c.Values, "TransferProtocol", "HTTP")) + "://" + uri
	}
	if !isImage(uri) {
		m := message.ActionParameterValueFormatError.With(withoutPassword(uri), "ImageURI", SimpleUpdateAction)
		return Result{}, Decline(http.StatusBadRequest, m.About("#/ImageURI"))
	}
	stage, err := c.Stage(SimpleUpdateAction, c.Values)
	if err != nil {
		return Result{}, err
	}
	j, err := c.Host.FetchUpdate(ctx, c.job("Update with "+imageName(uri)), ImageSource{
		URL: uri, User: Value(c.Values, "Username", ""), Password: Value(c.Values, "Password", ""),
		Unverified: c.Host.BMC().Updates.Unverified, Most: c.View.Dialect.MaxImageBytes,
	}, stage)
	return Result{Task: j.ID}, err
}

// imageName is the last segment of an image's address.
func imageName(uri string) string {
	u, err := url.Parse(uri)
	if err != nil {
		return "an image"
	}
	return u.Path[strings.LastIndexByte(u.Path, '/')+1:]
}

// Stage is the update that a request asks for.
func (c Call) Stage(action string, set Values) (firmware.Stage, error) {
	when, err := applyAt(set, OperationApplyTime, operationWindow, c.Host.Now())
	if err != nil {
		return firmware.Stage{}, err
	}
	s := firmware.Stage{Force: Value(set, "ForceUpdate", false), Keep: Value(set, "Stage", false), When: when}
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
				return firmware.Stage{}, Decline(http.StatusBadRequest, m)
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
func (c Call) targets() map[string][]string {
	at, out := TakeSnapshot(c.Host), map[string][]string{}
	for _, x := range at.Machine.Components() {
		v := c.View.Tree.Find(&url.URL{Path: FirmwareURI(x.ID)}).View(at)
		for _, uri := range append(v.related(x.Subject), FirmwareURI(x.ID), FirmwareInventory, v.system()) {
			if !slices.Contains(out[uri], x.ID) && (x.Kind != firmware.KindBMC || uri != v.system()) {
				out[uri] = append(out[uri], x.ID)
			}
		}
	}
	return out
}

// knownTargets refuses addresses that stand for none of some components.
func (c Call) knownTargets(action string, uris []any, components []string) error {
	for _, x := range uris {
		uri, _ := x.(string)
		fits := slices.ContainsFunc(c.targets()[uri], func(id string) bool { return slices.Contains(components, id) })
		if !fits {
			return Decline(http.StatusBadRequest, message.ActionParameterValueNotInList.With(uri, "Targets", action).About("#/Targets"))
		}
	}
	return nil
}

// The addresses to which images are pushed. They are no resources (DSP2046,
// UpdateService.MultipartHttpPushUri).
const (
	MultipartPush = UpdateService + "/MultipartUpload"
	PlainPush     = UpdateService + "/Upload"
)

// UpdateParameters are what a client says of an image that it pushes (DSP2046,
// UpdateService.UpdateParameters).
var UpdateParameters = append([]Input{
	{Name: "Targets", Kind: Array, Of: []Input{{Kind: Text}}},
	{Name: "ExcludeTargets", Kind: Array, Of: []Input{{Kind: Text}}},
	{Name: "ForceUpdate", Kind: Boolean},
	{Name: "Stage", Kind: Boolean},
	{Name: "Oem", Kind: Free},
}, operationInputs...)
