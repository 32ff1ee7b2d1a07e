package firmware

// Effect is what a setting does to the server while it has a value. Effects
// are data of a registry, so that a vendor's names act as ours do.
type Effect struct {
	Attribute string `json:"attribute"`
	Value     Value  `json:"value"` // the value with which the effect is on; nothing: any
	Does      Does   `json:"does"`
	On        string `json:"on"`   // the part that it acts on, where there are several: "1" is the first
	As        string `json:"as"`   // what it sets the part to, where that can differ; "=" is the value of the attribute
	Each      string `json:"each"` // part of which the machine may have several: {n} counts them

	row int // of the file
}

// Does is what an effect does. The machine acts on each.
type Does string

// What effects do.
const (
	BootMode    Does = "bootMode"    // boots in the mode As: UEFI or Legacy
	NoPXE       Does = "noPXE"       // the NIC On is no source for PXE
	NoHTTP      Does = "noHTTP"      // nor for HTTP, on any NIC
	HTTPURI     Does = "httpURI"     // that begins at As, an address, where nobody has set another
	NoUSB       Does = "noUSB"       // virtual media and other USB drives are no boot sources
	NoDrives    Does = "noDrives"    // drives of the controller On are no boot sources: its option ROM is off
	OneThread   Does = "oneThread"   // each core shows one thread
	Cores       Does = "cores"       // each processor shows As cores
	NoTPM       Does = "noTPM"       // the TPM is off
	POSTPercent Does = "postPercent" // POST takes As percent of its time
	NoVirtual   Does = "noVirtual"   // processors do not offer virtualisation
	NoSRIOV     Does = "noSRIOV"     // network ports offer no virtual functions
	NoConsole   Does = "noConsole"   // the firmware shows nothing on the console that the BMC sees
)

// does tells what all effects are, and whether they need to say on what and as
// what.
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

// Acts tells whether settings have an effect on a part, and as what.
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
