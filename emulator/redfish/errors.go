package redfish

import (
	"context"
	"errors"
	"net/http"
	"strings"

	"github.com/metalab-dev/metalab/emulator/bmc"
	"github.com/metalab-dev/metalab/emulator/machine"
	"github.com/metalab-dev/metalab/emulator/machine/firmware"
	"github.com/metalab-dev/metalab/emulator/machine/storage"
	"github.com/metalab-dev/metalab/emulator/redfish/message"
	"github.com/metalab-dev/metalab/emulator/redfish/resource"
)

// ErrBusy is what Apply and ApplyBMC answer when the host can take no command
// now but soon will: the client is asked to come again.
var ErrBusy = errors.New("redfish: host is busy")

// answers says how an error of the model is answered; the first that fits.
var answers = []struct {
	err     error
	status  int
	message func(path string) message.Message
}{
	{machine.ErrPower, http.StatusConflict, always(message.ResourceInUse.With())},
	{machine.ErrStale, http.StatusConflict, always(message.ResourceInUse.With())},
	{bmc.ErrInUse, http.StatusConflict, always(message.ResourceInUse.With())},
	{storage.ErrBusy, http.StatusConflict, always(message.ResourceInUse.With())},
	{storage.ErrState, http.StatusConflict, always(message.ResourceInUse.With())},
	{storage.ErrUnsupported, http.StatusConflict, always(message.ResourceInUse.With())},
	{storage.ErrNotFound, http.StatusNotFound, message.ResourceMissingAtURI.With},
	{machine.ErrUnstoppable, http.StatusConflict, always(message.ResourceInUse.With())},
	{firmware.ErrUnknown, http.StatusNotFound, message.ResourceMissingAtURI.With},
	{firmware.ErrNothing, http.StatusBadRequest, always(message.NoOperation.With())},
	{firmware.ErrWhen, http.StatusBadRequest, always(message.PropertyValueError.With("ApplyTime").About("#/" + resource.OperationApplyTime))},
	{firmware.ErrBusy, http.StatusServiceUnavailable, always(message.ResourceInUse.With())},
	{bmc.ErrTooManyJobs, http.StatusBadRequest, always(message.CreateLimitReachedForResource.With())},
	{bmc.ErrFollows, http.StatusConflict, always(message.PropertyValueConflict.With("DateTime", "NTP").About("#/DateTime"))},
	{bmc.ErrDown, http.StatusServiceUnavailable, always(message.ServiceTemporarilyUnavailable.With(retryAfter))},
	{bmc.ErrUnderWay, http.StatusConflict, always(message.ResourceInUse.With())},
	{bmc.ErrEnded, http.StatusConflict, always(message.ResourceInUse.With())},
	{bmc.ErrTooManyTasks, http.StatusServiceUnavailable, always(message.ResourceExhaustion.With("The task service"))},
	{bmc.ErrTooManySessions, http.StatusServiceUnavailable, always(message.SessionLimitExceeded.With())},
	{bmc.ErrFull, http.StatusBadRequest, always(message.CreateLimitReachedForResource.With())},
	{bmc.ErrDisabled, http.StatusServiceUnavailable, func(path string) message.Message { return message.ServiceDisabled.With(serviceOf(path)) }},
	{bmc.ErrTooManySubscriptions, http.StatusServiceUnavailable, always(message.EventSubscriptionLimitExceeded.With())},
	{bmc.ErrNotFound, http.StatusNotFound, message.ResourceMissingAtURI.With},
	{ErrBusy, http.StatusServiceUnavailable, always(message.ServiceTemporarilyUnavailable.With(retryAfter))},
	{context.Canceled, http.StatusServiceUnavailable, always(message.ServiceTemporarilyUnavailable.With(retryAfter))},
	{context.DeadlineExceeded, http.StatusServiceUnavailable, always(message.OperationTimeout.With())},
}

const retryAfter = "1" // seconds

func always(m message.Message) func(string) message.Message {
	return func(string) message.Message { return m }
}

// serviceOf is the address of the service that something belongs to:
// /redfish/v1/AccountService.
func serviceOf(path string) string {
	at := strings.SplitN(path, "/", 5)
	return strings.Join(at[:min(4, len(at))], "/")
}

// answered is what an error is answered with; 500 for one that nobody knows.
func answered(err error, path string) (status int, ms []message.Message) {
	var d *resource.RequestError
	if errors.As(err, &d) {
		return d.Status, d.Messages
	}
	var f *resource.InnerError
	if errors.As(err, &f) && len(f.Messages) > 0 {
		return f.Status, f.Messages
	}
	for _, a := range answers {
		if errors.Is(err, a.err) {
			return a.status, []message.Message{a.message(path)}
		}
	}
	return http.StatusInternalServerError, []message.Message{message.InternalError.With()}
}

// fail answers with an error.
func (x *request) fail(err error) {
	if errors.Is(err, resource.ErrLogin) {
		x.challenge(message.ResourceAtURIUnauthorized.With(x.r.URL.Path, "wrong user name or password"))
		return
	}
	var failed *resource.InnerError
	if errors.As(err, &failed) {
		x.relay(failed.InnerResponse)
		return
	}
	status, ms := answered(err, x.r.URL.Path)
	switch status {
	case http.StatusServiceUnavailable:
		x.w.Header()["Retry-After"] = []string{retryAfter}
	case http.StatusInternalServerError:
		x.s.log.Error("request failed", "bmc", local(x.r), "method", x.r.Method, "path", x.r.URL.Path, "err", err)
	}
	x.refuse(status, ms...)
}
