package ilo

import "github.com/metalab-dev/metalab/emulator/dialect"

// message returns a message of the registry iLO, with a text of ours [V docs,
// ilo5_msgregs304 and those of the other generations: keys, arguments and
// severities].
func (g generation) message(key, text string) dialect.VendorMessage {
	return dialect.VendorMessage{Registry: "iLO", Version: g.registry, Key: key, Text: text, Resolution: resolutions[key]}
}

var resolutions = map[string]string{
	"InvalidOperationForSystemState": "See whether the power of the system is as it must be, then try again.",
	"LicenseKeyRequired":             "Install a licence.",
	"PropertyNotWritableOrUnknown":   "Leave the property out, and try again.",
	"PropertyValueBadParam":          "Send another value.",
	"SystemResetRequired":            "Reset the system.",
	"UnableToModifyDuringSystemPOST": "Wait until the system has booted, or switch it off, and try again.",
	"UnsupportedOperation":           "None.",
}

// successMessage answers a successful write: an error object whose message reports
// success [V table: Base.1.4.Success, later Base.1.17.Success; docs,
// concepts/errorresponses].
func (g generation) successMessage() *dialect.VendorMessage {
	return &dialect.VendorMessage{Registry: "Base", Version: g.base, Key: "Success", Text: "The request was carried out.", Resolution: "None."}
}
