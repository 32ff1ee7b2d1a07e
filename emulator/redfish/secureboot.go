package redfish

import (
	"context"
	"errors"
	"net/http"
	"regexp"
	"strconv"
	"strings"

	"github.com/metalab-dev/metalab/emulator/bmc"
	"github.com/metalab-dev/metalab/emulator/machine"
	"github.com/metalab-dev/metalab/emulator/redfish/message"
)

func secureBootRows() []resource {
	const (
		base     = "/redfish/v1/Systems/{system}/SecureBoot"
		database = base + "/SecureBootDatabases/{database}"
	)
	return []resource{
		{uri: base, schema: "SecureBoot.v1_1_2", when: hasSecureBoot, shows: PartSecureBoot, read: secureBoot, patch: &secureBootPatch, actions: secureBootActions},
		{uri: base + "/SecureBootDatabases", schema: "SecureBootDatabaseCollection", name: "Secure Boot Databases", of: "database"},
		{uri: database, schema: "SecureBootDatabase.v1_0_3", shows: PartSecureBoot, read: keyDatabase, actions: keyDatabaseActions},
		{uri: database + "/Certificates", schema: "CertificateCollection", shows: PartSecureBoot, name: "Certificates", of: "keycert",
			create: &create{inputs: keyCertificateInputs, apply: addKeyCertificate}, spares: asCame},
		{uri: database + "/Certificates/{keycert}", schema: "Certificate.v1_11_0", shows: PartSecureBoot, read: keyCertificate,
			remove: removeKey("keycert"), spares: asCame},
		{uri: database + "/Signatures", schema: "SignatureCollection", shows: PartSecureBoot, when: takesSignatures, name: "Signatures", of: "signature",
			create: &create{inputs: signatureInputs, apply: addSignature}, spares: asCame},
		{uri: database + "/Signatures/{signature}", schema: "Signature.v1_0_3", shows: PartSecureBoot, read: keySignature,
			remove: removeKey("signature"), spares: asCame},
	}
}

// hasSecureBoot says whether the model came with keys.
func hasSecureBoot(v view) bool { return len(v.m.Profile.SecureBoot.Keys) > 0 }

func databaseIDs(view) []string { return machine.KeyDatabases }

// takesSignatures says whether the database can hold signatures.
func takesSignatures(v view) bool {
	// The resource above asks for itself, with the address of this one.
	id := v.ids["database"]
	return machine.TakesSignatures(id)
}

// asCame says that what the model came with is not changed.
func asCame(v view, method string) bool {
	return (method == http.MethodPost || method == http.MethodDelete) && strings.HasSuffix(v.ids["database"], "Default")
}

// keyIDs are the certificates in a database, or its signatures.
func keyIDs(certificates bool) func(v view) []string {
	return func(v view) []string {
		var out []string
		for _, k := range v.m.Keys(v.ids["database"]) {
			if k.Certificate() == certificates {
				out = append(out, k.ID)
			}
		}
		return out
	}
}

// key is the key that a variable stands for.
func (v view) key(variable string) machine.SecureKey {
	return pick(v.m.Keys(v.ids["database"]), v.ids[variable], func(k machine.SecureKey) string { return k.ID })
}

func secureBoot(v view) object {
	current := "Disabled"
	if v.m.SecureBoot.Current {
		current = "Enabled"
	}
	return object{
		"Name": "UEFI Secure Boot", "SecureBootEnable": v.m.SecureBoot.Enable, "SecureBootCurrentBoot": current, "SecureBootMode": string(v.m.KeyMode()),
	}
}

var secureBootPatch = patch{
	inputs: []input{{name: "SecureBootEnable", kind: boolean}},
	apply: func(ctx context.Context, c operation) (reply, error) {
		return reply{}, c.host.Apply(ctx, machine.SetSecureBoot{Enable: value(c.set, "SecureBootEnable", false)})
	},
}

// keyResets say what the resets of all databases do.
var keyResets = map[string]machine.ResetKeys{
	"ResetAllKeysToDefault": {Databases: []string{"PK", "KEK", "db", "dbx"}},
	"DeleteAllKeys":         {Databases: []string{"PK", "KEK", "db", "dbx"}, Delete: true},
	"DeletePK":              {Databases: []string{"PK"}, Delete: true},
}

var secureBootActions = []action{{
	name: "SecureBoot.ResetKeys",
	inputs: []input{{
		name: "ResetKeysType", kind: text, required: true, values: oneOf("ResetAllKeysToDefault", "DeleteAllKeys", "DeletePK"),
	}},
	apply: func(ctx context.Context, c operation) (reply, error) {
		return reply{}, c.host.Apply(ctx, keyResets[value(c.set, "ResetKeysType", "")])
	},
}}

func keyDatabase(v view) object {
	id := v.ids["database"]
	return object{"Name": id + " Database", "DatabaseId": id, "Description": databaseTexts[strings.TrimSuffix(id, "Default")]}
}

var databaseTexts = map[string]string{
	"PK": "The platform key.", "KEK": "Keys that may change the signature databases.",
	"db": "What is allowed to boot.", "dbx": "What is not allowed to boot.",
}

var keyDatabaseActions = []action{{
	name:   "SecureBootDatabase.ResetKeys",
	inputs: []input{{name: "ResetKeysType", kind: text, required: true, values: oneOf("ResetAllKeysToDefault", "DeleteAllKeys")}},
	when:   func(v view) bool { return !strings.HasSuffix(v.ids["database"], "Default") },
	apply: func(ctx context.Context, c operation) (reply, error) {
		return reply{}, c.host.Apply(ctx, machine.ResetKeys{
			Databases: []string{c.view.ids["database"]}, Delete: value(c.set, "ResetKeysType", "") == "DeleteAllKeys",
		})
	},
}}

func keyCertificate(v view) object {
	k := v.key("keycert")
	o := certificate(bmc.Certificate{ID: k.ID, Chain: [][]byte{k.DER}}, "")
	o["UefiSignatureOwner"] = orNull(k.Owner)
	return o
}

func keySignature(v view) object {
	k := v.key("signature")
	return object{
		"Name": "Signature " + k.ID, "SignatureString": k.Text, "SignatureType": string(k.Type), "SignatureTypeRegistry": "UEFI",
		"UefiSignatureOwner": orNull(k.Owner),
	}
}

var owner = regexp.MustCompile(`^[0-9a-fA-F]{8}(-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}$`)

var ownerInput = input{name: "UefiSignatureOwner", kind: text, form: owner.MatchString}

// keyCertificateInputs: a database takes one certificate at a time.
var keyCertificateInputs = []input{
	{name: "CertificateString", kind: text, required: true, secret: true},
	{name: "CertificateType", kind: text, required: true, values: oneOf("PEM")},
	ownerInput,
}

var signatureInputs = []input{
	{name: "SignatureString", kind: text, required: true, form: regexp.MustCompile(`^([0-9a-fA-F]{2}){32,64}$`).MatchString},
	{name: "SignatureType", kind: text, required: true, values: func(view) []string { return texts(machine.SignatureTypes) }},
	{name: "SignatureTypeRegistry", kind: text, required: true, values: oneOf("UEFI")},
	ownerInput,
}

func addKeyCertificate(ctx context.Context, c operation) (reply, error) {
	chain, key, err := c.brought()
	if err != nil || len(key) > 0 || len(chain) != 1 {
		return reply{}, decline(http.StatusBadRequest, message.PropertyValueError.With("CertificateString").About("#/CertificateString"))
	}
	return c.addKey(ctx, machine.SecureKey{DER: chain[0]}, "CertificateString")
}

func addSignature(ctx context.Context, c operation) (reply, error) {
	return c.addKey(ctx, machine.SecureKey{
		Type: machine.SignatureType(value(c.set, "SignatureType", "")), Text: value(c.set, "SignatureString", ""),
	}, "SignatureString")
}

// addKey puts a key into the database; property is what it came in.
func (c operation) addKey(ctx context.Context, k machine.SecureKey, property string) (reply, error) {
	k.Owner = value(c.set, "UefiSignatureOwner", "")
	id := strconv.Itoa(c.view.m.SecureBoot.Next)
	err := c.host.Apply(ctx, machine.AddKey{Database: c.view.ids["database"], Key: k})
	switch {
	case errors.Is(err, machine.ErrConflict): // it is there, or there is no room beside what is
		err = decline(http.StatusConflict, message.ResourceCreationConflict.With(c.view.uri))
	case errors.Is(err, machine.ErrUnknown):
		err = decline(http.StatusBadRequest, message.PropertyValueError.With(property).About("#/"+property))
	}
	return reply{id: id}, err
}

// removeKey takes the key out of its database that a variable stands for.
func removeKey(variable string) func(ctx context.Context, c operation) (reply, error) {
	return func(ctx context.Context, c operation) (reply, error) {
		return reply{}, c.host.Apply(ctx, machine.RemoveKey{Database: c.view.ids["database"], ID: c.view.ids[variable]})
	}
}

// watchdog is ComputerSystem.HostWatchdogTimer.
func watchdog(v view) object {
	w := v.m.Watchdog
	state := "Disabled"
	switch {
	case !w.Until.IsZero():
		state = "Enabled"
	case w.Enabled: // until a system feeds it
		state = "StandbyOffline"
	}
	return object{
		"FunctionEnabled": w.Enabled, "TimeoutAction": string(w.Action), "WarningAction": string(w.Warning), "Status": status(state),
	}
}

var watchdogInputs = []input{
	{name: "FunctionEnabled", kind: boolean},
	{name: "TimeoutAction", kind: text, values: func(view) []string { return texts(machine.TimeoutActions) }},
	{name: "WarningAction", kind: text, values: func(view) []string { return texts(machine.WarningActions) }},
}

// setWatchdog lists the commands that make the watchdog as a client wants it.
func setWatchdog(c operation) []machine.Command {
	is := c.view.m.Watchdog
	want := machine.SetWatchdog{
		Enabled: value(c.set, "HostWatchdogTimer/FunctionEnabled", is.Enabled),
		Action:  machine.TimeoutAction(value(c.set, "HostWatchdogTimer/TimeoutAction", string(is.Action))),
		Warning: machine.WarningAction(value(c.set, "HostWatchdogTimer/WarningAction", string(is.Warning))),
	}
	if want == (machine.SetWatchdog{Enabled: is.Enabled, Action: is.Action, Warning: is.Warning}) {
		return nil
	}
	return []machine.Command{want}
}
