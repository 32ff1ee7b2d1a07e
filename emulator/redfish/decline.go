package redfish

import (
	"errors"

	"github.com/metalab-dev/metalab/emulator/redfish/message"
)

// errLogin means that a name or a password is wrong.
var errLogin = errors.New("redfish: wrong name or password")

// declined is an error with its answer: what a client did wrong that only the
// operation itself could find.
type declined struct {
	status   int
	messages []message.Message
}

// Error implements error.
func (d *declined) Error() string { return "redfish: declined: " + d.messages[0].Text }

func decline(status int, ms ...message.Message) error { return &declined{status, ms} }

// maxMessages bounds the errors in one answer.
const maxMessages = 16
