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

// ErrBusy is the error of Host.Apply and Host.ApplyBMC when the host can take no
// command now but soon will. The response is 503 with Retry-After.
var ErrBusy = errors.New("redfish: host is busy")

// errorResponses maps errors of the model to responses. The first that matches
// applies.
var errorResponses = []struct {
	err     error
	status  int
	message func(path string) message.Message
}{
	{machine.ErrPower, http.StatusConflict, fixed(message.ResourceInUse.With())},
	{machine.ErrStale, http.StatusConflict, fixed(message.ResourceInUse.With())},
	{bmc.ErrInUse, http.StatusConflict, fixed(message.ResourceInUse.With())},
	{storage.ErrBusy, http.StatusConflict, fixed(message.ResourceInUse.With())},
	{storage.ErrState, http.StatusConflict, fixed(message.ResourceInUse.With())},
	{storage.ErrUnsupported, http.StatusConflict, fixed(message.ResourceInUse.With())},
	{storage.ErrNotFound, http.StatusNotFound, message.ResourceMissingAtURI.With},
	{machine.ErrUnstoppable, http.StatusConflict, fixed(message.ResourceInUse.With())},
	{firmware.ErrUnknown, http.StatusNotFound, message.ResourceMissingAtURI.With},
	{firmware.ErrNothing, http.StatusBadRequest, fixed(message.NoOperation.With())},
	{firmware.ErrWhen, http.StatusBadRequest, fixed(message.PropertyValueError.With("ApplyTime").About("#/" + resource.OperationApplyTime))},
	{firmware.ErrBusy, http.StatusServiceUnavailable, fixed(message.ResourceInUse.With())},
	{bmc.ErrTooManyJobs, http.StatusBadRequest, fixed(message.CreateLimitReachedForResource.With())},
	{bmc.ErrFollows, http.StatusConflict, fixed(message.PropertyValueConflict.With("DateTime", "NTP").About("#/DateTime"))},
	{bmc.ErrDown, http.StatusServiceUnavailable, fixed(message.ServiceTemporarilyUnavailable.With(retrySoon))},
	{bmc.ErrStorageFull, http.StatusInsufficientStorage, fixed(message.InsufficientStorage.With())},
	{bmc.ErrUnderWay, http.StatusConflict, fixed(message.ResourceInUse.With())},
	{bmc.ErrEnded, http.StatusConflict, fixed(message.ResourceInUse.With())},
	{bmc.ErrTooManyTasks, http.StatusServiceUnavailable, fixed(message.ResourceExhaustion.With("The task service"))},
	{bmc.ErrTooManySessions, http.StatusServiceUnavailable, fixed(message.SessionLimitExceeded.With())},
	{bmc.ErrFull, http.StatusBadRequest, fixed(message.CreateLimitReachedForResource.With())},
	{bmc.ErrDisabled, http.StatusServiceUnavailable, func(path string) message.Message { return message.ServiceDisabled.With(serviceOf(path)) }},
	{bmc.ErrTooManySubscriptions, http.StatusServiceUnavailable, fixed(message.EventSubscriptionLimitExceeded.With())},
	{bmc.ErrNotFound, http.StatusNotFound, message.ResourceMissingAtURI.With},
	{ErrBusy, http.StatusServiceUnavailable, fixed(message.ServiceTemporarilyUnavailable.With(retrySoon))},
	{context.Canceled, http.StatusServiceUnavailable, fixed(message.ServiceTemporarilyUnavailable.With(retrySoon))},
	{context.DeadlineExceeded, http.StatusServiceUnavailable, fixed(message.OperationTimeout.With())},
}

const retrySoon = "1" // seconds; the Retry-After of states that last a moment

// fixed returns a function that returns a message for every path.
func fixed(m message.Message) func(string) message.Message {
	return func(string) message.Message { return m }
}

// serviceOf returns the URI of the service that a URI is below:
// /redfish/v1/AccountService.
func serviceOf(path string) string {
	segments := strings.SplitN(path, "/", 5)
	return strings.Join(segments[:min(4, len(segments))], "/")
}

// errorResponse returns the status and the messages of the response to an error; 500
// for one that is not in the table.
func errorResponse(err error, path string) (status int, ms []message.Message) {
	var rejected *resource.RequestError
	if errors.As(err, &rejected) {
		return rejected.Status, rejected.Messages
	}
	var inner *resource.InnerError
	if errors.As(err, &inner) && len(inner.Messages) > 0 {
		return inner.Status, inner.Messages
	}
	for _, r := range errorResponses {
		if errors.Is(err, r.err) {
			return r.status, []message.Message{r.message(path)}
		}
	}
	return http.StatusInternalServerError, []message.Message{message.InternalError.With()}
}

// fail sends the response to an error. A response of 500 is logged.
func (x *request) fail(err error) {
	if errors.Is(err, resource.ErrLogin) {
		x.challenge(message.ResourceAtURIUnauthorized.With(x.r.URL.Path, "wrong user name or password"))
		return
	}
	var inner *resource.InnerError
	if errors.As(err, &inner) {
		x.sendInnerResponse(inner.InnerResponse)
		return
	}
	status, ms := errorResponse(err, x.r.URL.Path)
	switch status {
	case http.StatusServiceUnavailable:
		x.w.Header()["Retry-After"] = []string{retrySoon}
	case http.StatusInternalServerError:
		x.s.log.Error("request failed", "bmc", localAddress(x.r), "method", x.r.Method, "path", x.r.URL.Path, "err", err)
	}
	x.sendError(status, ms...)
}
