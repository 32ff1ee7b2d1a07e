package idrac

import "github.com/metalab-dev/metalab/emulator/dialect"

// say is a message of the vendor's registry, in the version that a generation
// speaks: "IDRAC.2.8.RAC0904" [V]. The words are ours but where a client looks
// for them.
func (g generation) say(key, text string) dialect.VendorMessage {
	return dialect.VendorMessage{Registry: "IDRAC", Version: g.registry, Key: key, Text: text, Resolution: "Mend what the message tells of, and send the request again."}
}

// with gives a saying the status of its answer.
func with(status int, s dialect.VendorMessage) dialect.VendorMessage {
	s.Status = status
	return s
}

// sayings are what these controllers say instead of the standard's messages.
func sayings(g generation) map[string]dialect.VendorMessage {
	return map[string]dialect.VendorMessage{
		// [V: gofish#75, badfish#447: 503]
		"SessionLimitExceeded": with(503, g.say("RAC0218", "No further session can be opened: as many as there can be are open.")),
		"OperationNotAllowed":  with(405, g.say("SYS402", "The method of the request is not allowed for this address.")), // [V]
		"PropertyNotWritable":  g.say("SYS428", "The property %1 is read-only and cannot be set."),                       // [V: SYS428, SYS410 are of properties]
		"PropertyUnknown":      g.say("SYS409", "The property %1 is not known to this service."),
		"MalformedJSON":        g.say("SYS405", "The body of the request is not JSON that can be read."),
		// [V: SYS518 while the sources of data are not there]
		"ServiceTemporarilyUnavailable": with(503, g.say("SYS518", "The sources of the data are not available yet.")),
		// Images that cannot be fetched [V: RAC0904].
		"CouldNotEstablishConnection": g.say("RAC0904", "The image at %1 cannot be reached."),
		"ResourceMissingAtURI":        g.say("SYS403", "There is no resource at %1."), // [V]
		"ResourceAtURIUnauthorized":   g.say("RAC0904", "The image at %1 cannot be reached: access was denied."),
		"ResourceInUse":               with(0, g.say("RAC0679", "A job is running that the request would disturb.")), // [V: RAC0679 while a job runs]
		"NoOperation":                 g.say("SYS439", "Nothing of the request changes anything."),
	}
}

// The words that scripts of the vendor's look for in a job [V: dell,
// iDRAC-Redfish-Scripting, BiosSetAttributeREDFISH.py].
const (
	jobScheduled = "Task successfully scheduled."
	jobCompleted = "Job completed successfully."
)
