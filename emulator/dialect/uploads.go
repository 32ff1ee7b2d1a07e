package dialect

// Uploads describes how the service takes firmware images that clients push (DSP0266,
// "Multipart HTTP push updates"; DSP2046, UpdateService.HttpPushUri). The zero value is the
// standard's: UpdateParameters and UpdateFile are both required, in any order, and beside
// them there are parts whose name begins with Oem.
type Uploads struct {
	// OptionalParameters accepts a multipart push without the part UpdateParameters.
	OptionalParameters bool
	// IgnoreUnknownParts accepts parts with any other name, and ignores them.
	IgnoreUnknownParts bool
	// OctetStreamOnly answers a push to HttpPushUri 400 whose Content-Type is not
	// application/octet-stream.
	OctetStreamOnly bool
	// MaxTargets is the most Targets that a push may name; 0: any number.
	MaxTargets int
	// Action, if not empty, is the name of the action as whose parameters errors name the
	// parts of a multipart push and their properties: ActionParameterMissing instead of
	// PropertyMissing.
	Action string
}
