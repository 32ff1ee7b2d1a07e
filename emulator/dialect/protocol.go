package dialect

import "regexp"

// Protocol is what a vendor's service makes of the Redfish protocol (DSP0266).
type Protocol struct {
	// Registries are the versions of the message registries that the service
	// speaks, by prefix: "Base": "1.8.4". Of others it speaks the newest.
	Registries map[string]string
}

var registryVersion = regexp.MustCompile(`^\d+\.\d+\.\d+$`)
