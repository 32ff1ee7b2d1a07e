package resource

import (
	"context"
	"maps"
	"net/http"
	"net/url"
	"slices"

	"github.com/metalab-dev/metalab/emulator/machine"
	"github.com/metalab-dev/metalab/emulator/redfish/message"
)

// bootParts are the parts of the state that boot options depend on.
var bootParts = partIdentity | partBoot | partFirmware | partStorage | partNICShift

func bootRows() []Row {
	return []Row{
		{URI: "/redfish/v1/Systems/{system}/BootOptions", Schema: "BootOptionCollection", DependsOn: bootParts,
			Link: "-", collectionName: "Boot Options", memberVariable: "option"},
		{URI: "/redfish/v1/Systems/{system}/BootOptions/{option}", Schema: "BootOption.v1_0_6", DependsOn: bootParts,
			Read: bootOption, Patch: &bootOptionPatch},
	}
}

// bootOverride returns the properties of ComputerSystem.Boot that change with a
// boot or before one.
func bootOverride(v View) Object {
	o := v.Machine.Override
	return Object{
		"BootSourceOverrideEnabled": string(o.Enabled), "BootSourceOverrideTarget": string(o.Target),
		"BootSourceOverrideMode": string(o.Mode), "UefiTargetBootSourceOverride": orNull(o.Path), "BootNext": orNull(o.BootNext),
		"RemainingAutomaticRetryAttempts": max(0, v.Machine.Boot.Attempts-v.Machine.Retries),
	}
}

// bootOrder returns the remaining properties of ComputerSystem.Boot.
func bootOrder(v View) Object {
	set, order := v.Machine.Boot, v.Machine.EffectiveBootOrder()
	o := Object{
		"BootSourceOverrideEnabled@Redfish.AllowableValues": bootEnableds(v),
		"BootSourceOverrideTarget@Redfish.AllowableValues":  bootTargets(v),
		"BootSourceOverrideMode@Redfish.AllowableValues":    bootModes(v),
		"HttpBootUri": orNull(RedactURI(set.HTTPURI)),
		"BootOptions": Ref(v.system("BootOptions")), "Certificates": Ref(v.system("Boot", "Certificates")), "BootOrderPropertySelection": "BootOrder",
		"BootOrder": Map(order, bootOptionID), "AliasBootOrder": bootAliasesOf(order), "AliasBootOrder@Redfish.AllowableValues": bootAliases(v),
		"AutomaticRetryConfig": string(retryConfig(set)), "AutomaticRetryConfig@Redfish.AllowableValues": retryConfigs(v),
		"AutomaticRetryAttempts": set.Attempts,
	}
	if v.Dialect.Protocol.ListsWriteable("ComputerSystem") {
		annotateWriteable(o, bootInputs, slices.Collect(maps.Keys(bootOverride(v))))
	}
	return o
}

// orNull returns a string, or nil if it is empty.
func orNull(text string) any {
	if text == "" {
		return nil
	}
	return text
}

func bootOptionID(b machine.BootOption) string { return b.ID }

// bootAliasesOf returns the aliases of boot options, each once, in the order of
// their first option.
func bootAliasesOf(all []machine.BootOption) []string {
	out := []string{}
	for _, b := range all {
		if !slices.Contains(out, string(b.Kind)) {
			out = append(out, string(b.Kind))
		}
	}
	return out
}

func bootEnableds(View) []string    { return overrideEnableds }
func bootModes(View) []string       { return overrideModes }
func bootTargets(v View) []string   { return Texts(v.Dialect.BootTargets) }
func retryConfigs(View) []string    { return Texts(machine.RetryConfigs) }
func bootOptionIDs(v View) []string { return Map(v.Machine.BootOptions(), bootOptionID) }
func bootAliases(v View) []string   { return bootAliasesOf(v.Machine.BootOptions()) }

// All machines share these values. Nothing modifies them.
var overrideEnableds, overrideModes = Texts(machine.Enableds), Texts(machine.Modes)

func retryConfig(b *machine.BootSettings) machine.RetryConfig {
	if b.Retry == "" {
		return machine.NoRetry
	}
	return b.Retry
}

// bootInputs are the writable properties of ComputerSystem.Boot.
var bootInputs = []Input{
	{Name: "BootSourceOverrideEnabled", Kind: Text, Allowed: bootEnableds},
	{Name: "BootSourceOverrideTarget", Kind: Text, Allowed: bootTargets},
	{Name: "BootSourceOverrideMode", Kind: Text, Allowed: bootModes},
	{Name: "UefiTargetBootSourceOverride", Kind: Text, nullable: true, form: machine.ValidText},
	{Name: "BootNext", Kind: Text, nullable: true, Allowed: bootOptionIDs},
	{Name: "HttpBootUri", Kind: Text, nullable: true, form: isBootURI},
	{Name: "BootOrder", Kind: Array, Of: []Input{{Kind: Text, Allowed: bootOptionIDs}}},
	{Name: "AliasBootOrder", Kind: Array, Of: []Input{{Kind: Text, Allowed: bootAliases}}},
	{Name: "BootOrderPropertySelection", Kind: Text, Allowed: OneOf("BootOrder")},
	{Name: "AutomaticRetryConfig", Kind: Text, Allowed: retryConfigs},
	{Name: "AutomaticRetryAttempts", Kind: Integer, Min: 0, Max: machine.MaxAttempts},
}

// isBootURI reports whether a string is a valid HttpBootUri. An empty one lets
// DHCP name the URI.
func isBootURI(raw string) bool {
	u, err := url.Parse(raw)
	return raw == "" || err == nil && machine.ValidText(raw) && u.Host != "" && (u.Scheme == "http" || u.Scheme == "https")
}

// overrideProperties maps the fields of a boot override to properties.
var overrideProperties = map[string]string{
	"Enabled": "BootSourceOverrideEnabled", "Target": "BootSourceOverrideTarget", "Mode": "BootSourceOverrideMode",
	"Path": "UefiTargetBootSourceOverride", "Next": "BootNext",
}

// bootCommands returns the machine commands that apply a client's changes of
// ComputerSystem.Boot.
func bootCommands(c Call) ([]machine.Command, error) {
	var all []machine.Command
	sent := func(name string) bool { _, ok := c.Values["Boot/"+name]; return ok }
	if sent("HttpBootUri") {
		all = append(all, machine.SetHTTPBoot{URI: Value(c.Values, "Boot/HttpBootUri", "")})
	}
	if sent("AutomaticRetryConfig") || sent("AutomaticRetryAttempts") {
		is := c.View.Machine.Boot
		all = append(all, machine.SetRetry{
			Retry:    machine.RetryConfig(Value(c.Values, "Boot/AutomaticRetryConfig", string(retryConfig(is)))),
			Attempts: int(Value(c.Values, "Boot/AutomaticRetryAttempts", int64(is.Attempts))),
		})
	}
	order, err := requestedBootOrder(c)
	if err != nil {
		return nil, err
	}
	if order != nil {
		all = append(all, machine.SetBootOrder{Order: order})
	}
	o := c.View.Machine.Override
	was := o
	o.Enabled = machine.Enabled(Value(c.Values, "Boot/BootSourceOverrideEnabled", string(o.Enabled)))
	o.Target = machine.SourceKind(Value(c.Values, "Boot/BootSourceOverrideTarget", string(o.Target)))
	o.Mode = machine.Mode(Value(c.Values, "Boot/BootSourceOverrideMode", string(o.Mode)))
	if sent("UefiTargetBootSourceOverride") {
		o.Path = Value(c.Values, "Boot/UefiTargetBootSourceOverride", "")
	}
	if sent("BootNext") {
		o.BootNext = Value(c.Values, "Boot/BootNext", "")
	}
	o.LocalDrive = c.View.Dialect.Media.BootTarget != "" && o.Target == machine.Cd
	if field, with, ok := o.Conflict(); ok {
		a, b := overrideProperties[field], overrideProperties[with]
		return nil, Reject(http.StatusBadRequest, message.PropertyValueConflict.With(a, b).About("#/Boot/"+a))
	}
	if o != was {
		all = append(all, machine.SetOverride{Override: o})
	}
	return all, nil
}

// requestedBootOrder returns the boot order that a client sent as BootOrder or
// AliasBootOrder; nil if it sent neither.
func requestedBootOrder(c Call) ([]string, error) {
	ids, byID := c.Values["Boot/BootOrder"].([]any)
	kinds, byKind := c.Values["Boot/AliasBootOrder"].([]any)
	switch {
	case byID && byKind:
		return nil, Reject(http.StatusBadRequest, message.PropertyValueConflict.With("BootOrder", "AliasBootOrder").About("#/Boot/BootOrder"))
	case byID:
		return uniqueStrings(ids, "BootOrder")
	case byKind:
		aliases, err := uniqueStrings(kinds, "AliasBootOrder")
		if err != nil {
			return nil, err
		}
		order := []string{}
		for _, a := range aliases {
			for _, b := range c.View.Machine.BootOptions() {
				if string(b.Kind) == a {
					order = append(order, b.ID)
				}
			}
		}
		return order, nil
	}
	return nil, nil
}

// uniqueStrings returns the elements of an array of strings. It rejects
// duplicates.
func uniqueStrings(all []any, property string) ([]string, error) {
	out := []string{}
	for _, x := range all {
		t, _ := x.(string)
		if slices.Contains(out, t) {
			return nil, Reject(http.StatusBadRequest, message.PropertyValueError.With(property).About("#/Boot/"+property))
		}
		out = append(out, t)
	}
	return out, nil
}

func bootOption(v View) Object {
	b := v.option()
	o := Object{
		"Name": b.ID, "DisplayName": b.Name, "BootOptionReference": b.ID, "BootOptionEnabled": b.Enabled,
		"Alias": string(b.Kind), "UefiDevicePath": b.Path,
	}
	related := []Object{}
	switch b.Kind {
	case machine.Hdd:
		for _, d := range v.Machine.Storage.Devices() {
			switch {
			case d.ID != b.Device:
			case d.Volume != nil:
				related = append(related, Ref(v.system("Storage", d.In, "Volumes", d.Volume.ID)))
			default:
				related = append(related, Ref(v.system("Storage", d.In, "Drives", d.ID)))
			}
		}
	case machine.Pxe, machine.UefiHTTP:
		related = append(related, Ref(v.interfaceURI(b.Device)))
	}
	o["RelatedItem"], o["RelatedItem@odata.count"] = related, len(related)
	return o
}

func (v View) option() machine.BootOption {
	return Find(v.Machine.BootOptions(), v.IDs["option"], bootOptionID)
}

var bootOptionPatch = Patch{
	Inputs: []Input{{Name: "BootOptionEnabled", Kind: Boolean}},
	Apply: func(ctx context.Context, c Call) (Result, error) {
		on := Value(c.Values, "BootOptionEnabled", true)
		return Result{}, c.Host.Apply(ctx, machine.SetBootOption{ID: c.View.IDs["option"], Enabled: on})
	},
}
