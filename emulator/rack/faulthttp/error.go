package faulthttp

import (
	"math"
	"net/http"
	"strconv"
	"strings"

	"github.com/metalab-dev/metalab/emulator/fault"
	"github.com/metalab-dev/metalab/emulator/redfish/message"
)

// fabricate makes a response in place of the service.
func fabricate(d fault.Decision, v message.Versions, path string) *heldResponse {
	a := &heldResponse{status: d.Status, header: http.Header{"Odata-Version": {"4.0"}, "Cache-Control": {"no-cache"}}}
	seconds := strconv.Itoa(int(math.Ceil(d.RetryAfter.Seconds())))
	if d.RetryAfter > 0 {
		a.header.Set("Retry-After", seconds)
	}
	if d.Status == http.StatusUnauthorized {
		a.header.Set("Www-Authenticate", `Basic realm="Redfish"`)
	}
	if d.Status == http.StatusNoContent || d.Status == http.StatusNotModified || d.Status == 0 {
		return a
	}
	a.header.Set("Content-Type", "application/json;charset=utf-8")
	body := []byte("{}")
	if d.Status >= 300 {
		body = v.Error(errorMessage(d, path, seconds))
	}
	a.body.Write(body)
	a.header.Set("Content-Length", strconv.Itoa(len(body)))
	return a
}

// errorMessage returns the message of an error response.
func errorMessage(d fault.Decision, path, seconds string) message.Message {
	m := message.GeneralError.With()
	switch known, ok := messages[d.Status]; {
	case ok:
		m = known(path, seconds)
	case d.Status >= 500:
		m = message.InternalError.With()
	}
	if d.Message != "" {
		m.Text = d.Message
	}
	if d.MessageID != "" {
		parts := strings.Split(d.MessageID, ".")
		m.Registry, m.Since, m.Args = new(*m.Registry), 0, nil
		m.Key = parts[len(parts)-1]
		if len(parts) > 2 {
			m.Registry.Prefix, m.Registry.Version = parts[0], strings.Join(parts[1:len(parts)-1], ".")
		}
	}
	return m
}

// messages are those that services send with a status.
var messages = map[int]func(path, seconds string) message.Message{
	http.StatusUnauthorized:          fixedMessage(message.NoValidSession.With()),
	http.StatusForbidden:             fixedMessage(message.InsufficientPrivilege.With()),
	http.StatusNotFound:              func(path, _ string) message.Message { return message.ResourceMissingAtURI.With(path) },
	http.StatusMethodNotAllowed:      fixedMessage(message.OperationNotAllowed.With()),
	http.StatusRequestTimeout:        fixedMessage(message.OperationTimeout.With()),
	http.StatusConflict:              fixedMessage(message.ResourceInUse.With()),
	http.StatusPreconditionFailed:    fixedMessage(message.PreconditionFailed.With()),
	http.StatusRequestEntityTooLarge: fixedMessage(message.PayloadTooLarge.With()),
	http.StatusPreconditionRequired:  fixedMessage(message.PreconditionRequired.With()),
	http.StatusTooManyRequests:       unavailable,
	http.StatusServiceUnavailable:    unavailable,
	http.StatusGatewayTimeout:        fixedMessage(message.OperationTimeout.With()),
}

func fixedMessage(m message.Message) func(string, string) message.Message {
	return func(string, string) message.Message { return m }
}

func unavailable(_, seconds string) message.Message {
	return message.ServiceTemporarilyUnavailable.With(seconds)
}
