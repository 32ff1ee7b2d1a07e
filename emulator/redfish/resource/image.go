package resource

import (
	"errors"

	"github.com/metalab-dev/metalab/emulator/machine/firmware"
)

// ErrTooLarge is what a Host answers to an image that is larger than it may be.
var ErrTooLarge = errors.New("redfish: image is too large")

// Image is a firmware image that a Host has stored: what it says of itself, and
// what is wrong with it.
type Image struct {
	ID string // among the host's; the update that it is for has it, too
	firmware.Image
	Defect firmware.Defect
}

// ImageSource says where a firmware image is fetched.
type ImageSource struct {
	URL            string // http or https
	User, Password string
	Unverified     bool  // the server's certificate may be any
	Most           int64 // bytes
}
