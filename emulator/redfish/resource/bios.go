package resource

import (
	"cmp"
	"context"
	"errors"
	"maps"
	"net/http"
	"slices"
	"strconv"
	"time"

	"github.com/metalab-dev/metalab/emulator/machine"
	"github.com/metalab-dev/metalab/emulator/machine/firmware"
	"github.com/metalab-dev/metalab/emulator/redfish/message"
)

// biosRows returns the rows of the Bios resource with the active settings and of
// its settings resource (DSP0266, "Settings resource").
func biosRows() []Row {
	return []Row{
		{URI: "/redfish/v1/Systems/{system}/Bios", Schema: "Bios.v1_2_3", When: hasBIOS,
			DependsOn: componentParts, Read: flattenAttributes(bios), finish: addSettingsETag, Actions: biosActions, Volatile: []string{settingsETag}},
		{URI: "/redfish/v1/Systems/{system}/Bios/Settings", Schema: "Bios.v1_2_3", When: hasBIOS, Link: "-",
			DependsOn: componentParts, Read: flattenAttributes(biosSettings), Patch: &biosPatch, Remove: clearPendingSettings,
			Unadvertised: []string{http.MethodDelete}}, // Bios is not deletable (DSP2046)
	}
}

// flattenAttributes moves the BIOS attributes from Attributes into the resource
// itself for dialects with FlatAttributes.
func flattenAttributes(read func(View) Object) func(View) Object {
	return func(v View) Object {
		o := read(v)
		if all, ok := o["Attributes"].(Object); ok && v.Dialect.BIOS.FlatAttributes {
			delete(o, "Attributes")
			maps.Copy(o, all)
		}
		return o
	}
}

// registry returns the BIOS attribute registry; nil when the machine has no BIOS
// settings.
func (v View) registry() *firmware.Registry {
	if !hasBIOS(v) {
		return nil
	}
	return v.Machine.Profile.Firmware.Model.Registry()
}

// hasBIOS reports whether the machine has BIOS settings. It does not read the
// registry.
func hasBIOS(v View) bool {
	m := v.Machine.Profile.Firmware.Model
	return m != nil && m.Read != nil
}

// applyTime is the annotation with which a client sets when settings are applied.
const applyTime = "@Redfish.SettingsApplyTime"

func bios(v View) Object {
	attributes := Object{}
	for _, s := range v.Machine.BIOSSettings() {
		attributes[s.Name] = s.Value.Any()
	}
	settings := Object{
		"@odata.type": "#Settings.v1_4_0.Settings", "SettingsObject": Ref(v.URI + "/Settings"), "SupportedApplyTimes": settingsApplyTimes(v),
	}
	if a := v.Machine.Firmware.Applied(); a != nil {
		settings["Time"] = a.At.UTC().Format(time.RFC3339)
		settings["Messages"] = v.MessageVersions().ExtendedInfo(appliedMessages(a)...)
	}
	return Object{
		"Name": "BIOS", "Description": "Settings of the system firmware.", "AttributeRegistry": v.registry().ID, "Attributes": attributes,
		"ResetBiosToDefaultsPending": v.defaultsPending(), "@Redfish.Settings": settings,
		"Links": Object{
			"ActiveSoftwareImage": Ref(FirmwareURI("BIOS")),
			"SoftwareImages":      refs(v.softwareImages("BIOS")...), "SoftwareImages@odata.count": len(v.softwareImages("BIOS")),
		},
	}
}

func (v View) defaultsPending() bool {
	p := v.Machine.Firmware.Pending()
	return p != nil && p.Defaults
}

// appliedMessages returns the messages about the settings that were applied
// last.
func appliedMessages(a *firmware.Applied) []message.Message {
	var all []message.Message
	for _, s := range a.Unknown[:min(len(a.Unknown), MaxMessages)] {
		all = append(all, message.PropertyUnknown.With(s.Name).About(attributePointer(s.Name)))
	}
	if len(a.Unknown) > 0 && len(a.Settings) == 0 {
		return all
	}
	m := message.Success.With()
	if a.Expired {
		m = message.OperationTimeout.With()
	}
	for _, s := range a.Settings[:min(len(a.Settings), MaxMessages)] {
		m.Related = append(m.Related, "#/Attributes/"+s.Name)
	}
	return append(all, m)
}

// settingsETag is the path of the ETag that the BIOS had when settings were
// applied last. The ETag of the resource is computed without it.
const settingsETag = "@Redfish.Settings/ETag"

// addSettingsETag adds the ETag that the BIOS had when settings were applied
// last. It is the ETag of the current body with ResetBiosToDefaultsPending
// false, because no reset to defaults can have been pending then.
func addSettingsETag(v View, o Object, etag func(Object) string) {
	if v.Machine.Firmware.Applied() == nil {
		return
	}
	settings, ok := o["@Redfish.Settings"].(Object)
	if !ok { // the vendor's resource has no @Redfish.Settings
		return
	}
	then := maps.Clone(o)
	if _, ok := then["ResetBiosToDefaultsPending"]; ok {
		then["ResetBiosToDefaultsPending"] = false
	}
	settings["ETag"] = etag(then)
}

func biosSettings(v View) Object {
	attributes := Object{}
	if v.Dialect.BIOS.SettingsShowAll {
		for _, s := range v.Machine.BIOSSettings() {
			attributes[s.Name] = s.Value.Any()
		}
	}
	when := firmware.When{Apply: firmware.OnReset}
	if p := v.Machine.Firmware.Pending(); p != nil {
		for _, s := range p.Settings {
			attributes[s.Name] = s.Value.Any()
		}
		when = p.When
	}
	at := Object{"@odata.type": "#Settings.v1_4_0.PreferredApplyTime", "ApplyTime": string(when.Apply)}
	if !when.Start.IsZero() {
		at[windowStart], at[windowLength] = when.Start.UTC().Format(time.RFC3339), int64(when.Length/time.Second)
	}
	return Object{
		"Name": "BIOS Settings", "Description": "Settings that wait to be applied.", "AttributeRegistry": v.registry().ID,
		"Attributes": attributes, "ResetBiosToDefaultsPending": v.defaultsPending(), applyTime: at,
	}
}

// maxWindow is the longest maintenance window, in seconds: a year.
const maxWindow = 365 * 24 * 3600

// maintenanceWindowInputs are the properties of a maintenance window (DSP2046,
// Settings.MaintenanceWindow).
var maintenanceWindowInputs = []Input{
	{Name: windowStart, Kind: Text, form: isTime},
	{Name: windowLength, Kind: Integer, Min: 1, Max: maxWindow},
}

const (
	windowStart  = "MaintenanceWindowStartTime"
	windowLength = "MaintenanceWindowDurationInSeconds"
)

// applyTimeInputs returns the properties of a preferred apply time (DSP2046,
// Settings.PreferredApplyTime).
func applyTimeInputs(times func(View) []string) []Input {
	return append([]Input{{Name: "ApplyTime", Kind: Text, Allowed: times, Required: true}}, maintenanceWindowInputs...)
}

// parseApplyTime returns the apply time in a request and its maintenance window;
// zero when there is none. It rejects a maintenance window that is missing or
// over.
func parseApplyTime(set Values, apply, window string, now time.Time) (firmware.When, error) {
	w := firmware.When{Apply: firmware.ApplyTime(Value(set, apply, ""))}
	if w.Apply != firmware.AtMaintenanceWindowStart && w.Apply != firmware.InMaintenanceWindowOnReset {
		return w, nil
	}
	var missing []message.Message
	for _, name := range []string{windowStart, windowLength} {
		if _, ok := set[window+"/"+name]; !ok {
			missing = append(missing, message.PropertyMissing.With(name).About("#/"+window+"/"+name))
		}
	}
	if len(missing) > 0 {
		return w, Reject(http.StatusBadRequest, missing...)
	}
	start := Value(set, window+"/"+windowStart, "")
	w.Start, _ = time.Parse(time.RFC3339, start)
	w.Length = time.Duration(Value(set, window+"/"+windowLength, int64(0))) * time.Second
	if !now.Before(w.Start.Add(w.Length)) {
		return w, Reject(http.StatusBadRequest, message.PropertyValueOutOfRange.With(start, windowStart).About("#/"+window+"/"+windowStart))
	}
	return w, nil
}

var biosPatch = Patch{
	Inputs: []Input{
		{Name: "Attributes", Kind: ScalarMap},
		{Name: applyTime, Kind: Group, Of: applyTimeInputs(settingsApplyTimes)},
	},
	Apply: patchBIOS,
}

// patchBIOS stores pending settings. An empty Attributes discards the pending
// settings. The attribute of the password that guards the settings does not set
// the password (an action does), it authorizes the change.
func patchBIOS(ctx context.Context, c Call) (Result, error) {
	when, err := parseApplyTime(c.Values, applyTime+"/ApplyTime", applyTime, c.Host.Now())
	if err != nil {
		return Result{}, err
	}
	attributes, given := c.Values["Attributes"].(map[string]any)
	if given && len(attributes) == 0 {
		return Result{}, c.Host.Apply(ctx, machine.Firmware{Command: firmware.ClearPending{}})
	}
	of := &c.View.Dialect.BIOS
	cmd := firmware.SetAttributes{When: when, Hold: of.WaitForApplyTime, Takes: of.ApplyDuration, Lag: of.UnknownToBIOS}
	guard := c.View.Machine.Firmware.Guard()
	for _, name := range slices.Sorted(maps.Keys(attributes)) {
		x := attributes[name]
		if password, ok := x.(string); ok && name == guard {
			cmd.Password = password
			continue
		}
		v, ok := firmware.ValueOf(x)
		if !ok {
			m := message.PropertyValueTypeError.With(Echo(x), name).About(attributePointer(name))
			return Result{}, Reject(http.StatusBadRequest, m)
		}
		cmd.Settings = append(cmd.Settings, firmware.Setting{Name: name, Value: v})
	}
	if !of.TaskForApplyTime || when.Apply == "" {
		return Result{}, biosError(c.Host.Apply(ctx, machine.Firmware{Command: cmd}))
	}
	out, err := c.BeginTask(ctx, cmp.Or(of.TaskName, "Apply BIOS settings"), func(job string) machine.Command {
		cmd.Task = job
		return machine.Firmware{Command: cmd}
	})
	return out, biosError(err)
}

// settingsApplyTimes returns the apply times that the settings resource
// supports.
func settingsApplyTimes(v View) []string {
	if of := v.Dialect.BIOS.ApplyTimes; len(of) > 0 {
		return Texts(of)
	}
	return Texts(firmware.SettingsTimes)
}

func clearPendingSettings(ctx context.Context, c Call) (Result, error) {
	return Result{}, c.Host.Apply(ctx, machine.Firmware{Command: firmware.ClearPending{}})
}

// biosError converts an error of the firmware model to a RequestError.
func biosError(err error) error {
	var bad firmware.AttributeErrors
	var password *firmware.PasswordError
	switch {
	case errors.As(err, &bad):
		return Reject(http.StatusBadRequest, Map(bad, attributeMessage)...)
	case errors.As(err, &password) && password.Missing:
		return Reject(http.StatusBadRequest, message.PropertyMissing.With(password.Name).About(attributePointer(password.Name)))
	case errors.As(err, &password):
		return Reject(http.StatusBadRequest, message.PropertyValueError.With(password.Name).About(attributePointer(password.Name)))
	}
	return err
}

// attributePointer returns the JSON pointer to an attribute.
func attributePointer(name string) string {
	return InputError{Path: []string{"Attributes", name}}.Pointer()
}

// attributeMessage returns the message for an attribute value that is not valid.
func attributeMessage(e *firmware.AttributeError) message.Message {
	n, v := e.Name, e.Value.String()
	limit := func(n *int64) string {
		if n == nil {
			return "0"
		}
		return strconv.FormatInt(*n, 10)
	}
	m := map[firmware.Fault]func() message.Message{
		firmware.Unknown:    func() message.Message { return message.PropertyUnknown.With(n) },
		firmware.Fixed:      func() message.Message { return message.PropertyNotWritable.With(n) },
		firmware.ByAction:   func() message.Message { return message.PropertyNotWritable.With(n) },
		firmware.Governed:   func() message.Message { return message.PropertyValueConflict.With(n, e.By) },
		firmware.NeedsReset: func() message.Message { return message.PropertyValueConflict.With(n, applyTime) },
		firmware.WrongType:  func() message.Message { return message.PropertyValueTypeError.With(v, n) },
		firmware.NotInList:  func() message.Message { return message.PropertyValueNotInList.With(v, n) },
		firmware.OutOfRange: func() message.Message { return message.PropertyValueOutOfRange.With(v, n) },
		firmware.TooShort:   func() message.Message { return message.StringValueTooShort.With(v, limit(e.Of.MinLength)) },
		firmware.TooLong:    func() message.Message { return message.StringValueTooLong.With(v, limit(e.Of.MaxLength)) },
		firmware.NoMatch:    func() message.Message { return message.PropertyValueFormatError.With(v, n) },
		firmware.Twice:      func() message.Message { return message.PropertyDuplicate.With(n) },
	}
	return m[e.Fault]().About(attributePointer(n))
}

var biosActions = []Action{
	{
		Name: "Bios.ResetBios",
		Apply: func(ctx context.Context, c Call) (Result, error) {
			return Result{}, c.Host.Apply(ctx, machine.Firmware{Command: firmware.ResetBIOS{}})
		},
	},
	{
		Name: "Bios.ChangePassword",
		Inputs: []Input{
			{Name: "PasswordName", Kind: Text, Required: true, Allowed: biosPasswords},
			{Name: "OldPassword", Kind: Text, Required: true, Secret: true},
			{Name: "NewPassword", Kind: Text, Required: true, Secret: true},
		},
		when:  func(v View) bool { return len(biosPasswords(v)) > 0 },
		Apply: changeBIOSPassword,
	},
}

// biosPasswords returns the names of the BIOS passwords.
func biosPasswords(v View) []string {
	var out []string
	for _, a := range v.registry().Attributes {
		if a.Type == firmware.PasswordType {
			out = append(out, a.Name)
		}
	}
	return out
}

// changeBIOSPassword sets a BIOS password. An empty one removes it.
func changeBIOSPassword(ctx context.Context, c Call) (Result, error) {
	const action = "Bios.ChangePassword"
	err := c.Host.Apply(ctx, machine.Firmware{Command: firmware.ChangePassword{
		Name: Value(c.Values, "PasswordName", ""), Old: Value(c.Values, "OldPassword", ""), New: Value(c.Values, "NewPassword", ""),
	}})
	wrong := func(parameter string) error {
		return Reject(http.StatusBadRequest, message.ActionParameterValueError.With(parameter, action).About("#/"+parameter))
	}
	var bad firmware.AttributeErrors
	var password *firmware.PasswordError
	switch {
	case errors.As(err, &bad):
		return Result{}, wrong("NewPassword")
	case errors.As(err, &password):
		return Result{}, wrong("OldPassword")
	}
	return Result{}, err
}
