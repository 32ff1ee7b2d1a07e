package resource

import (
	"errors"

	"github.com/metalab-dev/metalab/emulator/redfish/message"
)

// ErrLogin means that the user name or the password is wrong.
var ErrLogin = errors.New("redfish: wrong name or password")

// RequestError is an error of a request that only the operation itself detects.
// It holds the status and the messages of the response.
type RequestError struct {
	Status   int
	Messages []message.Message
}

// Error implements error.
func (d *RequestError) Error() string { return "redfish: request rejected: " + d.Messages[0].Text }

// Reject returns a RequestError with a status and at least one message.
func Reject(status int, ms ...message.Message) error { return &RequestError{status, ms} }

// MaxMessages is the greatest number of messages in a response.
const MaxMessages = 16
