package resource

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

func secureBootRows() []Row {
	const (
		base     = "/redfish/v1/Systems/{system}/SecureBoot"
		database = base + "/SecureBootDatabases/{database}"
	)
	return []Row{
		{URI: base, Schema: "SecureBoot.v1_1_2", When: hasSecureBoot, DependsOn: partSecureBoot, Read: secureBoot, Patch: &secureBootPatch, Actions: secureBootActions},
		{URI: base + "/SecureBootDatabases", Schema: "SecureBootDatabaseCollection", collectionName: "Secure Boot Databases", memberVariable: "database"},
		{URI: database, Schema: "SecureBootDatabase.v1_0_3", DependsOn: partSecureBoot, Read: keyDatabase, Actions: keyDatabaseActions},
		{URI: database + "/Certificates", Schema: "CertificateCollection", DependsOn: partSecureBoot, collectionName: "Certificates", memberVariable: "keycert",
			Create: &create{Inputs: keyCertificateInputs, Apply: addKeyCertificate}, Refuses: refusesDefaults},
		{URI: database + "/Certificates/{keycert}", Schema: "Certificate.v1_11_0", DependsOn: partSecureBoot, Read: keyCertificate,
			Remove: removeKey("keycert"), Refuses: refusesDefaults},
		{URI: database + "/Signatures", Schema: "SignatureCollection", DependsOn: partSecureBoot, When: holdsSignatures, collectionName: "Signatures", memberVariable: "signature",
			Create: &create{Inputs: signatureInputs, Apply: addSignature}, Refuses: refusesDefaults},
		{URI: database + "/Signatures/{signature}", Schema: "Signature.v1_0_3", DependsOn: partSecureBoot, Read: keySignature,
			Remove: removeKey("signature"), Refuses: refusesDefaults},
	}
}

// hasSecureBoot reports whether the model has factory keys.
func hasSecureBoot(v View) bool { return len(v.Machine.Profile.SecureBoot.Keys) > 0 }

func databaseIDs(View) []string { return machine.KeyDatabases }

// holdsSignatures reports whether the database can hold signatures.
func holdsSignatures(v View) bool {
	// The parent resource calls it too, with the URI of this one.
	id := v.IDs["database"]
	return machine.TakesSignatures(id)
}

// refusesDefaults refuses changes of a database of factory keys.
func refusesDefaults(v View, method string) bool {
	return (method == http.MethodPost || method == http.MethodDelete) && strings.HasSuffix(v.IDs["database"], "Default")
}

// keyIDs returns a function that lists the certificates in a database, or its signatures.
func keyIDs(certificates bool) func(v View) []string {
	return func(v View) []string {
		var out []string
		for _, k := range v.Machine.Keys(v.IDs["database"]) {
			if k.Certificate() == certificates {
				out = append(out, k.ID)
			}
		}
		return out
	}
}

// key returns the key that a URI variable names.
func (v View) key(variable string) machine.SecureKey {
	return Find(v.Machine.Keys(v.IDs["database"]), v.IDs[variable], func(k machine.SecureKey) string { return k.ID })
}

func secureBoot(v View) Object {
	current := "Disabled"
	if v.Machine.SecureBoot.Current {
		current = "Enabled"
	}
	return Object{
		"Name": "UEFI Secure Boot", "SecureBootEnable": v.Machine.SecureBoot.Enable, "SecureBootCurrentBoot": current, "SecureBootMode": string(v.Machine.KeyMode()),
	}
}

var secureBootPatch = Patch{
	Inputs: []Input{{Name: "SecureBootEnable", Kind: Boolean}},
	Apply: func(ctx context.Context, c Call) (Result, error) {
		return Result{}, c.Host.Apply(ctx, machine.SetSecureBoot{Enable: Value(c.Values, "SecureBootEnable", false)})
	},
}

// keyResets maps SecureBoot.ResetKeysType to the command that carries it out.
var keyResets = map[string]machine.ResetKeys{
	"ResetAllKeysToDefault": {Databases: []string{"PK", "KEK", "db", "dbx"}},
	"DeleteAllKeys":         {Databases: []string{"PK", "KEK", "db", "dbx"}, Delete: true},
	"DeletePK":              {Databases: []string{"PK"}, Delete: true},
}

var secureBootActions = []Action{{
	Name: "SecureBoot.ResetKeys",
	Inputs: []Input{{
		Name: "ResetKeysType", Kind: Text, Required: true, Allowed: OneOf("ResetAllKeysToDefault", "DeleteAllKeys", "DeletePK"),
	}},
	Apply: func(ctx context.Context, c Call) (Result, error) {
		return Result{}, c.Host.Apply(ctx, keyResets[Value(c.Values, "ResetKeysType", "")])
	},
}}

func keyDatabase(v View) Object {
	id := v.IDs["database"]
	return Object{"Name": id + " Database", "DatabaseId": id, "Description": databaseTexts[strings.TrimSuffix(id, "Default")]}
}

var databaseTexts = map[string]string{
	"PK": "The platform key.", "KEK": "Keys that may change the signature databases.",
	"db": "What is allowed to boot.", "dbx": "What is not allowed to boot.",
}

var keyDatabaseActions = []Action{{
	Name:   "SecureBootDatabase.ResetKeys",
	Inputs: []Input{{Name: "ResetKeysType", Kind: Text, Required: true, Allowed: OneOf("ResetAllKeysToDefault", "DeleteAllKeys")}},
	when:   func(v View) bool { return !strings.HasSuffix(v.IDs["database"], "Default") },
	Apply: func(ctx context.Context, c Call) (Result, error) {
		return Result{}, c.Host.Apply(ctx, machine.ResetKeys{
			Databases: []string{c.View.IDs["database"]}, Delete: Value(c.Values, "ResetKeysType", "") == "DeleteAllKeys",
		})
	},
}}

func keyCertificate(v View) Object {
	k := v.key("keycert")
	o := certificate(bmc.Certificate{ID: k.ID, Chain: [][]byte{k.DER}}, "")
	o["UefiSignatureOwner"] = orNull(k.Owner)
	return o
}

func keySignature(v View) Object {
	k := v.key("signature")
	return Object{
		"Name": "Signature " + k.ID, "SignatureString": k.Text, "SignatureType": string(k.Type), "SignatureTypeRegistry": "UEFI",
		"UefiSignatureOwner": orNull(k.Owner),
	}
}

var ownerPattern = regexp.MustCompile(`^[0-9a-fA-F]{8}(-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}$`)

var ownerInput = Input{Name: "UefiSignatureOwner", Kind: Text, form: ownerPattern.MatchString}

// keyCertificateInputs accepts one certificate per request.
var keyCertificateInputs = []Input{
	{Name: "CertificateString", Kind: Text, Required: true, Secret: true},
	{Name: "CertificateType", Kind: Text, Required: true, Allowed: OneOf("PEM")},
	ownerInput,
}

var signatureInputs = []Input{
	{Name: "SignatureString", Kind: Text, Required: true, form: regexp.MustCompile(`^([0-9a-fA-F]{2}){32,64}$`).MatchString},
	{Name: "SignatureType", Kind: Text, Required: true, Allowed: func(View) []string { return Texts(machine.SignatureTypes) }},
	{Name: "SignatureTypeRegistry", Kind: Text, Required: true, Allowed: OneOf("UEFI")},
	ownerInput,
}

func addKeyCertificate(ctx context.Context, c Call) (Result, error) {
	chain, key, err := c.parseCertificate()
	if err != nil || len(key) > 0 || len(chain) != 1 {
		return Result{}, Reject(http.StatusBadRequest, message.PropertyValueError.With("CertificateString").About("#/CertificateString"))
	}
	return c.addKey(ctx, machine.SecureKey{DER: chain[0]}, "CertificateString")
}

func addSignature(ctx context.Context, c Call) (Result, error) {
	return c.addKey(ctx, machine.SecureKey{
		Type: machine.SignatureType(Value(c.Values, "SignatureType", "")), Text: Value(c.Values, "SignatureString", ""),
	}, "SignatureString")
}

// addKey adds a key to the database. property is the property that contained it, for
// errors.
func (c Call) addKey(ctx context.Context, k machine.SecureKey, property string) (Result, error) {
	k.Owner = Value(c.Values, "UefiSignatureOwner", "")
	id := strconv.Itoa(c.View.Machine.SecureBoot.Next)
	err := c.Host.Apply(ctx, machine.AddKey{Database: c.View.IDs["database"], Key: k})
	switch {
	case errors.Is(err, machine.ErrConflict): // the key exists, or the database is full
		err = Reject(http.StatusConflict, message.ResourceCreationConflict.With(c.View.URI))
	case errors.Is(err, machine.ErrUnknown):
		err = Reject(http.StatusBadRequest, message.PropertyValueError.With(property).About("#/"+property))
	}
	return Result{ID: id}, err
}

// removeKey returns a function that removes the key named by a URI variable from its
// database.
func removeKey(variable string) func(ctx context.Context, c Call) (Result, error) {
	return func(ctx context.Context, c Call) (Result, error) {
		return Result{}, c.Host.Apply(ctx, machine.RemoveKey{Database: c.View.IDs["database"], ID: c.View.IDs[variable]})
	}
}

// watchdog returns ComputerSystem.HostWatchdogTimer.
func watchdog(v View) Object {
	w := v.Machine.Watchdog
	state := "Disabled"
	switch {
	case !w.Until.IsZero():
		state = "Enabled"
	case w.Enabled: // no operating system resets the timer yet
		state = "StandbyOffline"
	}
	return Object{
		"FunctionEnabled": w.Enabled, "TimeoutAction": string(w.Action), "WarningAction": string(w.Warning), "Status": status(state),
	}
}

var watchdogInputs = []Input{
	{Name: "FunctionEnabled", Kind: Boolean},
	{Name: "TimeoutAction", Kind: Text, Allowed: func(View) []string { return Texts(machine.TimeoutActions) }},
	{Name: "WarningAction", Kind: Text, Allowed: func(View) []string { return Texts(machine.WarningActions) }},
}

// setWatchdog returns the commands that a PATCH of HostWatchdogTimer asks for; none when it
// changes nothing.
func setWatchdog(c Call) []machine.Command {
	is := c.View.Machine.Watchdog
	want := machine.SetWatchdog{
		Enabled: Value(c.Values, "HostWatchdogTimer/FunctionEnabled", is.Enabled),
		Action:  machine.TimeoutAction(Value(c.Values, "HostWatchdogTimer/TimeoutAction", string(is.Action))),
		Warning: machine.WarningAction(Value(c.Values, "HostWatchdogTimer/WarningAction", string(is.Warning))),
	}
	if want == (machine.SetWatchdog{Enabled: is.Enabled, Action: is.Action, Warning: is.Warning}) {
		return nil
	}
	return []machine.Command{want}
}
