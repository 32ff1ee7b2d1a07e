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

// UpdateService is the URI of the UpdateService.
const UpdateService = "/redfish/v1/UpdateService"

// updateRows returns the rows of the UpdateService, which downloads images or receives them
// as uploads.
func updateRows() []Row {
	return []Row{
		{URI: UpdateService, Schema: "UpdateService.v1_17_0", DependsOn: partUpdates,
			Read: updateService, Patch: &updatePatch, Actions: updateActions},
		{URI: MultipartPush, Privileges: componentPrivileges, DependsOn: partUpdates, Link: "-", Upload: &upload{MultipartUpload, UpdateParameters}},
		{URI: PlainPush, Privileges: componentPrivileges, DependsOn: partUpdates, Link: "-", Upload: &upload{Kind: PlainUpload}},
	}
}

func updateService(v View) Object {
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
		"HttpPushUriOptionsBusy": u.Reserved, "HttpPushUriTargets": append([]string{}, u.Targets...), "HttpPushUriTargetsBusy": u.TargetsReserved,
		"SupportedUpdateImageFormats": []string{"VendorDefined"}, "VerifyRemoteServerCertificate": !u.Unverified,
		"@Redfish.OperationApplyTimeSupport": applyTimeSupport(),
	}
}

// PushTime returns when an uploaded image is applied whose request does not say when.
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
		u.TargetsReserved = Value(c.Values, "HttpPushUriTargetsBusy", u.TargetsReserved)
		u.Force = Value(c.Values, "HttpPushUriOptions/ForceUpdate", u.Force)
		if targets, ok := c.Values["HttpPushUriTargets"].([]any); ok {
			u.Targets = nil
			for _, t := range targets {
				uri := t.(string)
				if _, known := c.targets()[uri]; !known {
					m := message.PropertyValueNotInList.With(uri, "HttpPushUriTargets").About("#/HttpPushUriTargets")
					return Result{}, Reject(http.StatusBadRequest, m)
				}
				u.Targets = append(u.Targets, uri)
			}
		}
		const under = "HttpPushUriOptions/HttpPushUriApplyTime"
		if _, ok := c.Values[under+"/ApplyTime"]; ok {
			when, err := parseApplyTime(c.Values, under+"/ApplyTime", under, c.Host.Now())
			if err != nil {
				return Result{}, err
			}
			u.Push = when
		}
		_, err := c.Host.ApplyBMC(ctx, bmc.SetUpdates{Updates: u})
		return Result{}, err
	},
}

// The annotations with which a client sets when an operation takes effect (DSP0266,
// "Operation apply time").
const (
	OperationApplyTime = "@Redfish.OperationApplyTime"
	operationWindow    = "@Redfish.MaintenanceWindow"
)

func updateTimes(View) []string { return Texts(firmware.UpdateTimes) }

// operationInputs are the annotations that set when an update takes effect.
var operationInputs = []Input{
	{Name: OperationApplyTime, Kind: Text, Allowed: updateTimes},
	{Name: operationWindow, Kind: Group, Of: maintenanceWindowInputs},
}

// applyTimeSupport returns the annotation that lists the supported apply times of updates.
func applyTimeSupport() Object {
	return Object{"@odata.type": "#Settings.v1_4_0.OperationApplyTimeSupport", "SupportedValues": Texts(firmware.UpdateTimes)}
}

// applyTimeAnnotation returns the properties that an action shows of its supported apply
// times.
func applyTimeAnnotation(View) Object {
	return Object{"@Redfish.OperationApplyTimeSupport": applyTimeSupport()}
}

// simpleUpdateAction is the name of the action that downloads and installs an image.
const simpleUpdateAction = "UpdateService.SimpleUpdate"

var updateActions = []Action{
	{
		Name: simpleUpdateAction,
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
		extraProperties: applyTimeAnnotation,
		Apply:           simpleUpdate,
	},
	{
		Name: "UpdateService.StartUpdate",
		Apply: func(ctx context.Context, c Call) (Result, error) {
			if err := c.RequireUpdatesEnabled(); err != nil {
				return Result{}, err
			}
			return Result{}, c.Host.Apply(ctx, machine.Firmware{Command: firmware.StartUpdates{}})
		},
	},
}

// RequireUpdatesEnabled returns an error while the UpdateService is disabled.
func (c Call) RequireUpdatesEnabled() error {
	if c.Host.BMC().Updates.Disabled {
		return Reject(http.StatusServiceUnavailable, message.ServiceDisabled.With(UpdateService))
	}
	return nil
}

// simpleUpdate downloads an image and installs it. It answers errors that are visible at
// once; the task reports all others.
func simpleUpdate(ctx context.Context, c Call) (Result, error) {
	if err := c.RequireUpdatesEnabled(); err != nil {
		return Result{}, err
	}
	uri := Value(c.Values, "ImageURI", "")
	if !strings.Contains(uri, "://") { // DSP2046, SimpleUpdate.TransferProtocol
		uri = strings.ToLower(Value(c.Values, "TransferProtocol", "HTTP")) + "://" + uri
	}
	if !isImageURI(uri) {
		m := message.ActionParameterValueFormatError.With(HideURISecrets(uri), "ImageURI", simpleUpdateAction)
		return Result{}, Reject(http.StatusBadRequest, m.About("#/ImageURI"))
	}
	stage, err := c.Stage(simpleUpdateAction, c.Values)
	if err != nil {
		return Result{}, err
	}
	j, err := c.Host.FetchUpdate(ctx, c.namedTask("Update with "+imageName(uri)), ImageSource{
		URL: uri, User: Value(c.Values, "Username", ""), Password: Value(c.Values, "Password", ""),
		Unverified: c.Host.BMC().Updates.Unverified, Most: c.View.Dialect.MaxImageBytes,
	}, stage)
	return Result{Task: j.ID}, err
}

// imageName returns the last segment of an image's URI.
func imageName(uri string) string {
	u, err := url.Parse(uri)
	if err != nil {
		return "an image"
	}
	return u.Path[strings.LastIndexByte(u.Path, '/')+1:]
}

// Stage returns the update that a request asks for. Messages about its targets are those of
// the parameters of an action; "": of properties.
func (c Call) Stage(action string, set Values) (firmware.Stage, error) {
	when, err := parseApplyTime(set, OperationApplyTime, operationWindow, c.Host.Now())
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
				m := message.PropertyValueNotInList.With(uri, of.name)
				if action != "" {
					m = message.ActionParameterValueNotInList.With(uri, of.name, action)
				}
				return firmware.Stage{}, Reject(http.StatusBadRequest, m.About("#/"+of.name))
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

// targets maps each URI that an update can name as its target to its components: the URI of
// a component to itself, that of a device or of Bios to its components, that of the system
// to all but the BMC's, and that of the inventory to all (DSP2046, SimpleUpdate.Targets).
func (c Call) targets() map[string][]string {
	at, out := TakeSnapshot(c.Host), map[string][]string{}
	for _, x := range at.Machine.Components() {
		v := c.View.Tree.Find(&url.URL{Path: FirmwareURI(x.ID)}).View(at)
		uris := append(v.relatedURIs(x), FirmwareURI(x.ID), firmwareInventory, v.system())
		if x.Kind == firmware.KindBIOS {
			uris = append(uris, v.system("Bios"))
		}
		for _, uri := range uris {
			if !slices.Contains(out[uri], x.ID) && (x.Kind != firmware.KindBMC || uri != v.system()) {
				out[uri] = append(out[uri], x.ID)
			}
		}
	}
	return out
}

// validateTargets returns an error for a target URI that names none of the components.
func (c Call) validateTargets(action string, uris []any, components []string) error {
	for _, x := range uris {
		uri, _ := x.(string)
		fits := slices.ContainsFunc(c.targets()[uri], func(id string) bool { return slices.Contains(components, id) })
		if !fits {
			return Reject(http.StatusBadRequest, message.ActionParameterValueNotInList.With(uri, "Targets", action).About("#/Targets"))
		}
	}
	return nil
}

// The URIs that accept uploads of images. They are not resources (DSP2046,
// UpdateService.MultipartHttpPushUri).
const (
	MultipartPush = UpdateService + "/MultipartUpload"
	PlainPush     = UpdateService + "/Upload"
)

// UpdateParameters are the parameters of an uploaded image (DSP2046,
// UpdateService.UpdateParameters).
var UpdateParameters = append([]Input{
	{Name: "Targets", Kind: Array, Of: []Input{{Kind: Text}}},
	{Name: "ExcludeTargets", Kind: Array, Of: []Input{{Kind: Text}}},
	{Name: "ForceUpdate", Kind: Boolean},
	{Name: "Stage", Kind: Boolean},
	{Name: "Oem", Kind: Group}, // a dialect's InputAliases take the properties of its vendor
}, operationInputs...)
