package idrac

import "github.com/metalab-dev/metalab/emulator/dialect"

// message returns a message of the vendor's registry, in the version of the
// generation: "IDRAC.2.8.RAC0904" [V]. The texts are ours, except where clients
// search for the vendor's.
func (g generation) message(key, text string) dialect.VendorMessage {
	return dialect.VendorMessage{Registry: "IDRAC", Version: g.registry, Key: key, Text: text, Resolution: "Mend what the message tells of, and send the request again."}
}

// withStatus sets the HTTP status of a message.
func withStatus(status int, s dialect.VendorMessage) dialect.VendorMessage {
	s.Status = status
	return s
}

// messages returns the vendor's messages that replace the standard's.
func messages(g generation) map[string]dialect.VendorMessage {
	return map[string]dialect.VendorMessage{
		// [V: gofish#75, badfish#447: 503]
		"SessionLimitExceeded": withStatus(503, g.message("RAC0218", "No further session can be opened: as many as there can be are open.")),
		"OperationNotAllowed":  withStatus(405, g.message("SYS402", "The method of the request is not allowed for this address.")), // [V]
		"PropertyNotWritable":  g.message("SYS428", "The property %1 is read-only and cannot be set."),                             // [V: SYS428 and SYS410 are about properties]
		// [V: dellemc.openmanage, samples of idrac_system_erase and idrac_session]
		"PropertyValueNotInList": g.message("SYS426", "The value %1 is not among those that the property %2 takes."),
		"NoValidSession":         g.message("SYS415", "The user name or the password is not valid."),
		"ResourceNotFound":       g.message("SYS403", "There is no resource %2 of the type %1."), // [V: dellemc.openmanage, sample of redfish_powerstate]
		"PropertyUnknown":        g.message("SYS409", "The property %1 is not known to this service."),
		"MalformedJSON":          g.message("SYS405", "The body of the request is not JSON that can be read."),
		// [V: SYS518 while data sources are unavailable]
		"ServiceTemporarilyUnavailable": withStatus(503, g.message("SYS518", "The sources of the data are not available yet.")),
		// Images that cannot be fetched [V: RAC0904].
		"CouldNotEstablishConnection": g.message("RAC0904", "The image at %1 cannot be reached."),
		"ResourceMissingAtURI":        g.message("SYS403", "There is no resource at %1."),                                      // [V]
		"ResourceAtURIUnauthorized":   g.message("SYS415", "The user name or the password is not valid for %1."),               // [K for an image]
		"ResourceInUse":               withStatus(0, g.message("RAC0679", "A job is running that the request would disturb.")), // [V: RAC0679 while a job runs]
		"NoOperation":                 g.message("SYS439", "Nothing of the request changes anything."),
	}
}

// Texts of jobs that the vendor's scripts search for [V: dell,
// iDRAC-Redfish-Scripting, BiosSetAttributeREDFISH.py].
const (
	jobScheduled = "Task successfully scheduled."
	jobCompleted = "Job completed successfully."
)
