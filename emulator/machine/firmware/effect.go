package firmware

// Effect is what a setting does to the server while it has a value. Effects are
// data of a registry, so that every vendor's attribute names work alike.
type Effect struct {
	Attribute string `json:"attribute"`
	Value     Value  `json:"value"` // the value that turns the effect on; zero: any
	Does      Does   `json:"does"`
	On        string `json:"on"`   // the part that it applies to, where there are several: "1" is the first
	As        string `json:"as"`   // what it sets the part to; "=" is the attribute's value
	Each      string `json:"each"` // kind of part; the row is repeated for each, with {n} replaced by its number

	row int // in the file
}

// Does is a kind of effect, which the machine implements.
type Does string

// The kinds of effects.
const (
	BootMode    Does = "bootMode"    // boots in mode As: UEFI or Legacy
	NoPXE       Does = "noPXE"       // PXE boot is disabled on NIC On
	NoHTTP      Does = "noHTTP"      // HTTP boot is disabled on all NICs
	HTTPURI     Does = "httpURI"     // default URI of HTTP boots
	NoUSB       Does = "noUSB"       // virtual media and other USB devices are not bootable
	NoDrives    Does = "noDrives"    // drives of controller On are not bootable: its option ROM is disabled
	OneThread   Does = "oneThread"   // one thread per core
	Cores       Does = "cores"       // As cores per processor
	NoTPM       Does = "noTPM"       // the TPM is disabled
	POSTPercent Does = "postPercent" // POST takes As percent of its duration
	NoVirtual   Does = "noVirtual"   // processors offer no virtualization
	NoSRIOV     Does = "noSRIOV"     // network ports offer no virtual functions
	NoConsole   Does = "noConsole"   // no console output by the firmware
)

// does says which effects need On and As.
var does = map[Does]struct{ on, as bool }{
	BootMode:    {as: true},
	NoPXE:       {on: true},
	NoHTTP:      {},
	HTTPURI:     {as: true},
	NoUSB:       {},
	NoDrives:    {on: true},
	OneThread:   {},
	Cores:       {as: true},
	NoTPM:       {},
	POSTPercent: {as: true},
	NoVirtual:   {},
	NoSRIOV:     {},
	NoConsole:   {},
}

// Acts reports whether the settings have an effect on a part, and its As.
func (v View) Acts(d Does, on string) (as string, ok bool) {
	for i := range v.Model.Registry().Effects {
		e := &v.Model.Registry().Effects[i]
		if e.Does != d || e.On != on {
			continue
		}
		switch is := v.value(e.Attribute); {
		case is != e.Value && !e.Value.IsZero():
		case e.As == "=":
			return is.String(), true
		default:
			return e.As, true
		}
	}
	return "", false
}
