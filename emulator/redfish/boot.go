package redfish

import (
	"context"
	"net/http"
	"net/url"
	"slices"

	"github.com/metalab-dev/metalab/emulator/machine"
	"github.com/metalab-dev/metalab/emulator/redfish/message"
)

// bootShows is what boot options follow from.
var bootShows = PartIdentity | PartBoot | PartFirmware | PartStorage | PartNICShift

func bootRows() []resource {
	return []resource{
		{uri: "/redfish/v1/Systems/{system}/BootOptions", schema: "BootOptionCollection", shows: bootShows,
			link: "-", name: "Boot Options", of: "option"},
		{uri: "/redfish/v1/Systems/{system}/BootOptions/{option}", schema: "BootOption.v1_0_6", shows: bootShows,
			read: bootOption, patch: &bootOptionPatch},
	}
}

// bootOverride is what of ComputerSystem.Boot changes with a boot or before one.
func bootOverride(v view) object {
	o := v.m.Override
	return object{
		"BootSourceOverrideEnabled": string(o.Enabled), "BootSourceOverrideTarget": string(o.Target),
		"BootSourceOverrideMode": string(o.Mode), "UefiTargetBootSourceOverride": orNull(o.Path), "BootNext": orNull(o.BootNext),
		"RemainingAutomaticRetryAttempts": max(0, v.m.Boot.Attempts-v.m.Retries),
	}
}

// bootOrder is the rest of ComputerSystem.Boot.
func bootOrder(v view) object {
	set, order := v.m.Boot, v.m.EffectiveBootOrder()
	return object{
		"BootSourceOverrideEnabled@Redfish.AllowableValues": bootEnableds(v),
		"BootSourceOverrideTarget@Redfish.AllowableValues":  bootTargets(v),
		"BootSourceOverrideMode@Redfish.AllowableValues":    bootModes(v),
		"HttpBootUri": orNull(set.HTTPURI),
		"BootOptions": ref(v.system("BootOptions")), "Certificates": ref(v.system("Boot", "Certificates")), "BootOrderPropertySelection": "BootOrder",
		"BootOrder": list(order, bootOptionID), "AliasBootOrder": aliases(order), "AliasBootOrder@Redfish.AllowableValues": bootAliases(v),
		"AutomaticRetryConfig": string(retryConfig(set)), "AutomaticRetryConfig@Redfish.AllowableValues": retryConfigs(v),
		"AutomaticRetryAttempts": set.Attempts,
	}
}

// orNull is a text, or null for one that is not set.
func orNull(text string) any {
	if text == "" {
		return nil
	}
	return text
}

func bootOptionID(b machine.BootOption) string { return b.ID }

// aliases are the kinds of boot options, in the order of their first.
func aliases(all []machine.BootOption) []string {
	out := []string{}
	for _, b := range all {
		if !slices.Contains(out, string(b.Kind)) {
			out = append(out, string(b.Kind))
		}
	}
	return out
}

func bootEnableds(view) []string    { return enableds }
func bootModes(view) []string       { return modes }
func bootTargets(v view) []string   { return texts(v.d.BootTargets) }
func retryConfigs(view) []string    { return texts(machine.RetryConfigs) }
func bootOptionIDs(v view) []string { return list(v.m.BootOptions(), bootOptionID) }
func bootAliases(v view) []string   { return aliases(v.m.BootOptions()) }

// What is the same for all; nobody changes it.
var enableds, modes = texts(machine.Enableds), texts(machine.Modes)

func retryConfig(b *machine.BootSettings) machine.RetryConfig {
	if b.Retry == "" {
		return machine.NoRetry
	}
	return b.Retry
}

// bootInputs are what can be written of ComputerSystem.Boot.
var bootInputs = []input{
	{name: "BootSourceOverrideEnabled", kind: text, values: bootEnableds},
	{name: "BootSourceOverrideTarget", kind: text, values: bootTargets},
	{name: "BootSourceOverrideMode", kind: text, values: bootModes},
	{name: "UefiTargetBootSourceOverride", kind: text, nullable: true, form: machine.ValidText},
	{name: "BootNext", kind: text, nullable: true, values: bootOptionIDs},
	{name: "HttpBootUri", kind: text, nullable: true, form: isBootURI},
	{name: "BootOrder", kind: array, of: []input{{kind: text, values: bootOptionIDs}}},
	{name: "AliasBootOrder", kind: array, of: []input{{kind: text, values: bootAliases}}},
	{name: "BootOrderPropertySelection", kind: text, values: oneOf("BootOrder")},
	{name: "AutomaticRetryConfig", kind: text, values: retryConfigs},
	{name: "AutomaticRetryAttempts", kind: integer, min: 0, max: machine.MaxAttempts},
}

// isBootURI says whether an HTTP boot can begin there; "" asks DHCP.
func isBootURI(raw string) bool {
	u, err := url.Parse(raw)
	return raw == "" || err == nil && machine.ValidText(raw) && u.Host != "" && (u.Scheme == "http" || u.Scheme == "https")
}

// overrideProperties are the properties of the fields of an override.
var overrideProperties = map[string]string{
	"Enabled": "BootSourceOverrideEnabled", "Target": "BootSourceOverrideTarget", "Mode": "BootSourceOverrideMode",
	"Path": "UefiTargetBootSourceOverride", "Next": "BootNext",
}

// setBoot lists the commands that make ComputerSystem.Boot as a client wants
// it.
func setBoot(c operation) ([]machine.Command, error) {
	var all []machine.Command
	sent := func(name string) bool { _, ok := c.set["Boot/"+name]; return ok }
	if sent("HttpBootUri") {
		all = append(all, machine.SetHTTPBoot{URI: value(c.set, "Boot/HttpBootUri", "")})
	}
	if sent("AutomaticRetryConfig") || sent("AutomaticRetryAttempts") {
		is := c.view.m.Boot
		all = append(all, machine.SetRetry{
			Retry:    machine.RetryConfig(value(c.set, "Boot/AutomaticRetryConfig", string(retryConfig(is)))),
			Attempts: int(value(c.set, "Boot/AutomaticRetryAttempts", int64(is.Attempts))),
		})
	}
	order, err := newOrder(c)
	if err != nil {
		return nil, err
	}
	if order != nil {
		all = append(all, machine.SetBootOrder{Order: order})
	}
	o := c.view.m.Override
	was := o
	o.Enabled = machine.Enabled(value(c.set, "Boot/BootSourceOverrideEnabled", string(o.Enabled)))
	o.Target = machine.SourceKind(value(c.set, "Boot/BootSourceOverrideTarget", string(o.Target)))
	o.Mode = machine.Mode(value(c.set, "Boot/BootSourceOverrideMode", string(o.Mode)))
	if sent("UefiTargetBootSourceOverride") {
		o.Path = value(c.set, "Boot/UefiTargetBootSourceOverride", "")
	}
	if sent("BootNext") {
		o.BootNext = value(c.set, "Boot/BootNext", "")
	}
	o.LocalDrive = c.view.d.Media.BootTarget != "" && o.Target == machine.Cd
	if field, with, ok := o.Conflict(); ok {
		a, b := overrideProperties[field], overrideProperties[with]
		return nil, decline(http.StatusBadRequest, message.PropertyValueConflict.With(a, b).About("#/Boot/"+a))
	}
	if o != was {
		all = append(all, machine.SetOverride{Override: o})
	}
	return all, nil
}

// newOrder is the boot order that a client wants; nil if it says nothing.
func newOrder(c operation) ([]string, error) {
	ids, byID := c.set["Boot/BootOrder"].([]any)
	kinds, byKind := c.set["Boot/AliasBootOrder"].([]any)
	switch {
	case byID && byKind:
		return nil, decline(http.StatusBadRequest, message.PropertyValueConflict.With("BootOrder", "AliasBootOrder").About("#/Boot/BootOrder"))
	case byID:
		return distinct(ids, "BootOrder")
	case byKind:
		aliases, err := distinct(kinds, "AliasBootOrder")
		if err != nil {
			return nil, err
		}
		order := []string{}
		for _, a := range aliases {
			for _, b := range c.view.m.BootOptions() {
				if string(b.Kind) == a {
					order = append(order, b.ID)
				}
			}
		}
		return order, nil
	}
	return nil, nil
}

// distinct are the elements of an array, each of which may be there once.
func distinct(all []any, property string) ([]string, error) {
	out := []string{}
	for _, x := range all {
		t, _ := x.(string)
		if slices.Contains(out, t) {
			return nil, decline(http.StatusBadRequest, message.PropertyValueError.With(property).About("#/Boot/"+property))
		}
		out = append(out, t)
	}
	return out, nil
}

func bootOption(v view) object {
	b := v.option()
	o := object{
		"Name": b.ID, "DisplayName": b.Name, "BootOptionReference": b.ID, "BootOptionEnabled": b.Enabled,
		"Alias": string(b.Kind), "UefiDevicePath": b.Path,
	}
	related := []object{}
	switch b.Kind {
	case machine.Hdd:
		for _, d := range v.m.Storage.Devices() {
			switch {
			case d.ID != b.Device:
			case d.Volume != nil:
				related = append(related, ref(v.system("Storage", d.In, "Volumes", d.Volume.ID)))
			default:
				related = append(related, ref(v.system("Storage", d.In, "Drives", d.ID)))
			}
		}
	case machine.Pxe, machine.UefiHTTP:
		related = append(related, ref(v.interfaceAt(b.Device)))
	}
	o["RelatedItem"], o["RelatedItem@odata.count"] = related, len(related)
	return o
}

func (v view) option() machine.BootOption {
	return pick(v.m.BootOptions(), v.ids["option"], bootOptionID)
}

var bootOptionPatch = patch{
	inputs: []input{{name: "BootOptionEnabled", kind: boolean}},
	apply: func(ctx context.Context, c operation) (reply, error) {
		on := value(c.set, "BootOptionEnabled", true)
		return reply{}, c.host.Apply(ctx, machine.SetBootOption{ID: c.view.ids["option"], Enabled: on})
	},
}
