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

// biosRows are the BIOS as its settings are, and as they will be (DSP0266,
// "Settings resource").
func biosRows() []Row {
	return []Row{
		{URI: "/redfish/v1/Systems/{system}/Bios", Schema: "Bios.v1_2_3", When: hasBIOS,
			DependsOn: componentShows, Read: flat(bios), finish: tagBIOS, Actions: biosActions, Volatile: []string{settingsETag}},
		{URI: "/redfish/v1/Systems/{system}/Bios/Settings", Schema: "Bios.v1_2_3", When: hasBIOS, Link: "-",
			DependsOn: componentShows, Read: flat(biosSettings), Patch: &biosPatch, Remove: clearBIOS,
			Unadvertised: []string{http.MethodDelete}}, // Bios is not deletable (DSP2046)
	}
}

// flat is a body whose attributes may stand in the resource itself.
func flat(read func(View) Object) func(View) Object {
	return func(v View) Object {
		o := read(v)
		if all, ok := o["Attributes"].(Object); ok && v.Dialect.BIOS.FlatAttributes {
			delete(o, "Attributes")
			maps.Copy(o, all)
		}
		return o
	}
}

// registry is the registry of the BIOS attributes; nil when there are none.
func (v View) registry() *firmware.Registry {
	if !hasBIOS(v) {
		return nil
	}
	return v.Machine.Profile.Firmware.Model.Registry()
}

// hasBIOS says whether there are settings, without reading which.
func hasBIOS(v View) bool {
	m := v.Machine.Profile.Firmware.Model
	return m != nil && m.Read != nil
}

// applyTime is what a client says of when settings shall take effect.
const applyTime = "@Redfish.SettingsApplyTime"

func bios(v View) Object {
	attributes := Object{}
	for _, s := range v.Machine.BIOSSettings() {
		attributes[s.Name] = s.Value.Any()
	}
	settings := Object{
		"@odata.type": "#Settings.v1_4_0.Settings", "SettingsObject": Ref(v.URI + "/Settings"), "SupportedApplyTimes": settingsTimes(v),
	}
	if a := v.Machine.Firmware.Applied(); a != nil {
		settings["Time"] = a.At.UTC().Format(time.RFC3339)
		settings["Messages"] = v.MessageVersions().ExtendedInfo(applied(a)...)
	}
	return Object{
		"Name": "BIOS", "Description": "Settings of the system firmware.", "AttributeRegistry": v.registry().ID, "Attributes": attributes,
		"ResetBiosToDefaultsPending": v.defaultsPending(), "@Redfish.Settings": settings,
		"Links": Object{
			"ActiveSoftwareImage": Ref(FirmwareURI("BIOS")),
			"SoftwareImages":      Refs(v.softwareImages("BIOS")...), "SoftwareImages@odata.count": len(v.softwareImages("BIOS")),
		},
	}
}

func (v View) defaultsPending() bool {
	p := v.Machine.Firmware.Pending()
	return p != nil && p.Defaults
}

// applied tells what became of the settings that were applied last.
func applied(a *firmware.Applied) []message.Message {
	var all []message.Message
	for _, s := range a.Unknown[:min(len(a.Unknown), MaxMessages)] {
		all = append(all, message.PropertyUnknown.With(s.Name).About(toAttribute(s.Name)))
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

// settingsETag is the ETag that the BIOS had when settings were applied last. It
// is left out of what it is made from.
const settingsETag = "@Redfish.Settings/ETag"

// tagBIOS adds the ETag that the BIOS had when settings were applied last: that
// of what it shows, but that no reset to the defaults can have been pending.
func tagBIOS(v View, o Object, etag func(Object) string) {
	if v.Machine.Firmware.Applied() == nil {
		return
	}
	settings, ok := o["@Redfish.Settings"].(Object)
	if !ok { // this vendor does not show it
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

// maxWindow bounds a maintenance window, in seconds: a year.
const maxWindow = 365 * 24 * 3600

// windowInputs are a maintenance window (DSP2046, Settings.MaintenanceWindow).
var windowInputs = []Input{
	{Name: windowStart, Kind: Text, Form: isTime},
	{Name: windowLength, Kind: Integer, Min: 1, Max: maxWindow},
}

const (
	windowStart  = "MaintenanceWindowStartTime"
	windowLength = "MaintenanceWindowDurationInSeconds"
)

// applyTimeInputs are a preferred apply time (DSP2046,
// Settings.PreferredApplyTime).
func applyTimeInputs(times func(View) []string) []Input {
	return append([]Input{{Name: "ApplyTime", Kind: Text, Allowed: times, Required: true}}, windowInputs...)
}

// applyAt reads an apply time, and the maintenance window that it may need; it
// is zero when there is none.
func applyAt(set Values, apply, window string, now time.Time) (firmware.When, error) {
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
		return w, Decline(http.StatusBadRequest, missing...)
	}
	start := Value(set, window+"/"+windowStart, "")
	w.Start, _ = time.Parse(time.RFC3339, start)
	w.Length = time.Duration(Value(set, window+"/"+windowLength, int64(0))) * time.Second
	if !now.Before(w.Start.Add(w.Length)) {
		return w, Decline(http.StatusBadRequest, message.PropertyValueOutOfRange.With(start, windowStart).About("#/"+window+"/"+windowStart))
	}
	return w, nil
}

var biosPatch = Patch{
	Inputs: []Input{
		{Name: "Attributes", Kind: Free},
		{Name: applyTime, Kind: Group, Of: applyTimeInputs(settingsTimes)},
	},
	Apply: patchBIOS,
}

// patchBIOS takes settings that are to be applied. No attribute at all gives up
// what waits. A password among them is not set, which is an action of its own:
// it is the one that protects the settings.
func patchBIOS(ctx context.Context, c Call) (Result, error) {
	when, err := applyAt(c.Values, applyTime+"/ApplyTime", applyTime, c.Host.Now())
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
			m := message.PropertyValueTypeError.With(Echo(x), name).About(toAttribute(name))
			return Result{}, Decline(http.StatusBadRequest, m)
		}
		cmd.Settings = append(cmd.Settings, firmware.Setting{Name: name, Value: v})
	}
	if !of.TaskForApplyTime || when.Apply == "" {
		return Result{}, refusedBIOS(c.Host.Apply(ctx, machine.Firmware{Command: cmd}))
	}
	out, err := c.Begin(ctx, cmp.Or(of.TaskName, "Apply BIOS settings"), func(job string) machine.Command {
		cmd.Task = job
		return machine.Firmware{Command: cmd}
	})
	return out, refusedBIOS(err)
}

// settingsTimes are when settings can be applied.
func settingsTimes(v View) []string {
	if of := v.Dialect.BIOS.ApplyTimes; len(of) > 0 {
		return Texts(of)
	}
	return Texts(firmware.SettingsTimes)
}

func clearBIOS(ctx context.Context, c Call) (Result, error) {
	return Result{}, c.Host.Apply(ctx, machine.Firmware{Command: firmware.ClearPending{}})
}

// refusedBIOS words an error of settings.
func refusedBIOS(err error) error {
	var bad firmware.AttributeErrors
	var password *firmware.PasswordError
	switch {
	case errors.As(err, &bad):
		return Decline(http.StatusBadRequest, Map(bad, attributeError)...)
	case errors.As(err, &password) && password.Missing:
		return Decline(http.StatusBadRequest, message.PropertyMissing.With(password.Name).About(toAttribute(password.Name)))
	case errors.As(err, &password):
		return Decline(http.StatusBadRequest, message.PropertyValueError.With(password.Name).About(toAttribute(password.Name)))
	}
	return err
}

// toAttribute is the JSON pointer to an attribute.
func toAttribute(name string) string { return Refusal{Path: []string{"Attributes", name}}.Pointer() }

// attributeError words what is wrong with the value of an attribute.
func attributeError(e *firmware.AttributeError) message.Message {
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
	return m[e.Fault]().About(toAttribute(n))
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

// biosPasswords are the names of the BIOS's passwords.
func biosPasswords(v View) []string {
	var out []string
	for _, a := range v.registry().Attributes {
		if a.Type == firmware.PasswordType {
			out = append(out, a.Name)
		}
	}
	return out
}

// changeBIOSPassword sets a password of the BIOS. An empty one is none.
func changeBIOSPassword(ctx context.Context, c Call) (Result, error) {
	const action = "Bios.ChangePassword"
	err := c.Host.Apply(ctx, machine.Firmware{Command: firmware.ChangePassword{
		Name: Value(c.Values, "PasswordName", ""), Old: Value(c.Values, "OldPassword", ""), New: Value(c.Values, "NewPassword", ""),
	}})
	wrong := func(parameter string) error {
		return Decline(http.StatusBadRequest, message.ActionParameterValueError.With(parameter, action).About("#/"+parameter))
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
