package bmc

// MediaFault says why an image could not be had. The zero value means that it
// is not known closer.
type MediaFault string

// The faults.
const (
	Unreachable MediaFault = "unreachable" // no connection
	Absent      MediaFault = "absent"      // the server has no such image
	Denied      MediaFault = "denied"      // the server wants other credentials, or none help
	Protocol    MediaFault = "protocol"    // the server speaks another protocol
	Format      MediaFault = "format"      // it is no image
)

// MediaError is the ErrMedia of a fault that is known.
type MediaError struct {
	Fault MediaFault
	Err   error // without credentials
}

// Error implements error.
func (e *MediaError) Error() string {
	return ErrMedia.Error() + ": " + string(e.Fault) + ": " + e.Err.Error()
}

// Unwrap makes it an ErrMedia as well.
func (e *MediaError) Unwrap() []error { return []error{ErrMedia, e.Err} }
