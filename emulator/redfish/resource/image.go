package resource

import (
	"errors"

	"github.com/metalab-dev/metalab/emulator/machine/firmware"
)

// ErrTooLarge is the error of Host.StoreImage for an image that exceeds the
// limit.
var ErrTooLarge = errors.New("redfish: image is too large")

// Image is a firmware image that a Host has stored, with its metadata and its
// defect.
type Image struct {
	ID string // unique on the host; the image's update has the same ID
	firmware.Image
	Defect firmware.Defect
}

// ImageSource names the server and the credentials to download a firmware image.
type ImageSource struct {
	URL            string // http or https
	User, Password string
	Unverified     bool  // do not verify the server's certificate
	Most           int64 // bytes
}
