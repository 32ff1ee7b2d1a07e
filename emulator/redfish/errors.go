package redfish

import (
	"context"
	"errors"
	"net/http"

	"github.com/metalab-dev/metalab/emulator/bmc"
	"github.com/metalab-dev/metalab/emulator/machine"
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

// answers says how an error of the model is answered; the first that fits.
var answers = []struct {
	err     error
	status  int
	message message.Message
}{
	{machine.ErrPower, http.StatusConflict, message.ResourceInUse.With()},
	{bmc.ErrInUse, http.StatusConflict, message.ResourceInUse.With()},
	{bmc.ErrFull, http.StatusServiceUnavailable, message.SessionLimitExceeded.With()},
	{bmc.ErrNotFound, http.StatusNotFound, message.ResourceNotFound.With("resource", "of this name")},
	{context.Canceled, http.StatusServiceUnavailable, message.ServiceTemporarilyUnavailable.With("1")},
	{context.DeadlineExceeded, http.StatusServiceUnavailable, message.OperationTimeout.With()},
}

// fail answers with an error.
func (x *exchange) fail(err error) {
	var d *declined
	if errors.As(err, &d) {
		x.refuse(d.status, d.messages...)
		return
	}
	if errors.Is(err, errLogin) {
		x.challenge(message.ResourceAtUriUnauthorized.With(x.r.URL.Path, "wrong user name or password"))
		return
	}
	for _, a := range answers {
		if errors.Is(err, a.err) {
			x.refuse(a.status, a.message)
			return
		}
	}
	x.s.log.Error("request failed", "bmc", local(x.r), "method", x.r.Method, "path", x.r.URL.Path, "err", err)
	x.refuse(http.StatusInternalServerError, message.InternalError.With())
}
