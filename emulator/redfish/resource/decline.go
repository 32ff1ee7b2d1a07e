package resource

import (
	"errors"

	"github.com/metalab-dev/metalab/emulator/redfish/message"
)

// ErrLogin means that a name or a password is wrong.
var ErrLogin = errors.New("redfish: wrong name or password")

// Declined is an error with its answer: what a client did wrong that only the
// operation itself could find.
type Declined struct {
	Status   int
	Messages []message.Message
}

// Error implements error.
func (d *Declined) Error() string { return "redfish: declined: " + d.Messages[0].Text }

func Decline(status int, ms ...message.Message) error { return &Declined{status, ms} }

// MaxMessages bounds the errors in one answer.
const MaxMessages = 16
