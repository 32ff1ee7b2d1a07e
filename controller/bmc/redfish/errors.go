package redfish

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"unicode"

	"github.com/metalab-dev/metalab/controller/bmc"
)

var errClosed = errors.New("redfish: the client is closed")

// maxErrorText bounds the bytes that an error quotes of a response, because errors
// end up in the status of a host.
const maxErrorText = 600

// statusError is a response other than 2xx.
type statusError struct {
	request    string // method and URI
	status     int
	text       string   // messages of the service
	ids        []string // IDs of the messages without registry and version, e.g. PropertyUnknown
	arguments  []string // arguments and related properties of the messages
	messages   []message
	challenges []string // values of WWW-Authenticate
	kind       error    // error of package bmc; nil when callers cannot act on it
}

func (e *statusError) Error() string {
	s := "redfish: "
	if e.kind != nil {
		s += e.kind.Error() + ": "
	}
	s += fmt.Sprintf("%s: %d %s", e.request, e.status, http.StatusText(e.status))
	if e.text != "" {
		s += ": " + e.text
	}
	return s
}

func (e *statusError) Unwrap() error { return e.kind }

// unsupported returns the error for a method of bmc.Client that the service does
// not offer.
func unsupported(verb, why string) error {
	return fmt.Errorf("redfish: %w", &bmc.UnsupportedError{Verb: verb, Why: why})
}

// has reports whether the response has one of these messages.
func (e *statusError) has(ids ...string) bool {
	return slices.ContainsFunc(e.ids, func(id string) bool { return slices.Contains(ids, id) })
}

// kinds maps the statuses that have one meaning in all responses.
var kinds = map[int]error{
	http.StatusUnauthorized:       bmc.ErrUnauthorized,
	http.StatusForbidden:          bmc.ErrUnauthorized,
	http.StatusMethodNotAllowed:   bmc.ErrUnsupported,
	http.StatusNotImplemented:     bmc.ErrUnsupported,
	http.StatusTooManyRequests:    bmc.ErrUnreachable,
	http.StatusBadGateway:         bmc.ErrUnreachable,
	http.StatusServiceUnavailable: bmc.ErrUnreachable,
	http.StatusGatewayTimeout:     bmc.ErrUnreachable,
}

// messageKinds maps the messages that are more specific than their status.
var messageKinds = map[string]error{
	"ActionNotSupported":            bmc.ErrUnsupported, // with 400 or 404 (Base registry)
	"ActionParameterNotSupported":   bmc.ErrUnsupported,
	"ActionParameterValueNotInList": bmc.ErrUnsupported,
	"PropertyValueNotInList":        bmc.ErrUnsupported,
	"PropertyNotWritable":           bmc.ErrUnsupported,
	"FileTransferProtocolMismatch":  bmc.ErrUnsupported, // iBMC fetches no http URL
	"LicenseKeyRequired":            bmc.ErrUnsupported, // iLO, with 403 or 400
	"OemLicenseNotPassed":           bmc.ErrUnsupported, // Supermicro, with 403
	"SWC0700":                       bmc.ErrBusy,        // "iDRAC is not ready", with 400 (quadsproject/badfish issue 129)
	"SYS518":                        bmc.ErrBusy,        // iDRAC: data sources are unavailable

	"UnableToModifyDuringSystemPOST": bmc.ErrBusy,    // iLO, with 400 (bugs.launchpad.net/ironic bug 2136275)
	"InvalidOperationForSystemState": bmc.ErrBusy,    // iLO, with 400 (sushy's retry-ilo-not-ready-error note)
	"ResetInProgress":                bmc.ErrBusy,    // iLO
	"RAC0679":                        bmc.ErrBusy,    // iDRAC: a job is running
	"SYS011":                         bmc.ErrPending, // iDRAC: settings are committed and not yet applied
	"LC068":                          bmc.ErrPending, // iDRAC: the same (quadsproject/badfish issue 30)
}

// responseError returns the error for a request that did not end with a 2xx
// response.
func (c *client) responseError(ctx context.Context, request string, rec *outcome, err error) error {
	if rec.status == 0 || rec.status/100 == 2 {
		return c.transportError(ctx, request, rec, err)
	}
	e := &statusError{request: request, status: rec.status, kind: kinds[rec.status], challenges: rec.header.Values("WWW-Authenticate")}
	var texts []string
	e.messages = extendedInfo(rec.body)
	for _, m := range e.messages {
		texts = append(texts, m.String())
		e.ids = append(e.ids, m.name())
		e.arguments = append(e.arguments, m.arguments()...)
		if kind, ok := messageKinds[m.name()]; ok {
			e.kind = kind
		}
	}
	if texts == nil && rec.status/100 == 3 {
		texts = []string{"redirected to " + rec.header.Get("Location")}
	}
	e.text = c.sanitize(strings.Join(texts, "; "))
	return e
}

// transportError returns the error for a request without a response, or with a 2xx
// response that gofish could not decode.
func (c *client) transportError(ctx context.Context, request string, rec *outcome, err error) error {
	if e := new(url.Error); errors.As(err, &e) {
		err = e.Err // the request has the URL already
	}
	switch {
	case errors.Is(ctx.Err(), context.Canceled):
		return fmt.Errorf("redfish: %s: %w", request, ctx.Err())
	case ctx.Err() != nil:
		return fmt.Errorf("redfish: %w: %s: %w", bmc.ErrUnreachable, request, ctx.Err())
	case rec.status != 0: // a 2xx status
		return fmt.Errorf("redfish: %s: the response is not from a Redfish service: %w", request, bmc.ErrUnsupported)
	case isUntrusted(err):
		return fmt.Errorf("redfish: %w: %s: %s", bmc.ErrUntrusted, request, c.sanitize(err.Error()))
	}
	return fmt.Errorf("redfish: %w: %s: %s", bmc.ErrUnreachable, request, c.sanitize(err.Error()))
}

func isUntrusted(err error) bool {
	var (
		verification *tls.CertificateVerificationError
		authority    x509.UnknownAuthorityError
		host         x509.HostnameError
		invalid      x509.CertificateInvalidError
	)
	return errors.As(err, &verification) || errors.As(err, &authority) || errors.As(err, &host) || errors.As(err, &invalid)
}

// The user information and the query of a URL in a text.
var (
	userInformation = regexp.MustCompile(`(://)[^\s"'<>/?#@]*@`)
	query           = regexp.MustCompile(`(://[^\s"'<>?]+\?)[^\s"'<>]+`)
)

// sanitize makes text fit for the status of a host: one line of printable text, at
// most maxErrorText bytes, without the account's password and the secrets of URLs,
// such as the token of a boot medium, which some services repeat in their errors.
func (c *client) sanitize(text string) string {
	for _, secret := range []string{c.credentials.Password, basicToken(c.credentials)} {
		if secret != "" {
			text = strings.ReplaceAll(text, secret, "…")
		}
	}
	text = query.ReplaceAllString(userInformation.ReplaceAllString(text, "${1}…@"), "${1}…")
	text = strings.Map(func(r rune) rune {
		if unicode.IsControl(r) {
			return ' '
		}
		return r
	}, strings.ToValidUTF8(text, "�"))
	if text = strings.TrimSpace(text); len(text) > maxErrorText {
		text = strings.ToValidUTF8(text[:maxErrorText], "") + "…"
	}
	return text
}

// message is a Redfish message (schema Message.v1_0_0 and later).
type message struct {
	ID      string            `json:"MessageId"`
	Text    string            `json:"Message"`
	Args    []json.RawMessage `json:"MessageArgs"` // strings; in some services numbers
	Related []string          `json:"RelatedProperties"`

	Severity    string `json:"MessageSeverity"`
	OldSeverity string `json:"Severity"` // name of MessageSeverity before Message 1.1
}

// success reports whether the message reports a success.
func (m message) success() bool {
	return m.name() == "Success" || m.Severity == "OK" || m.OldSeverity == "OK"
}

// name returns the message's key without registry and version: PropertyUnknown for
// Base.1.8.PropertyUnknown.
func (m message) name() string {
	return m.ID[strings.LastIndexByte(m.ID, '.')+1:]
}

func (m message) arguments() []string {
	args := slices.Clone(m.Related)
	for _, a := range m.Args {
		args = append(args, strings.Trim(string(a), `"`))
	}
	return args
}

func (m message) String() string {
	if m.Text != "" {
		return m.Text
	}
	// iLO sends the text only on request.
	if len(m.Args) == 0 {
		return m.ID
	}
	return m.ID + " " + strings.Join(m.arguments(), ", ")
}

// extendedInfo reads the messages of an error response (DSP0266 §8.6). Some iDRACs
// send an object or a string in place of the list, and some services send no JSON.
func extendedInfo(body []byte) []message {
	var doc struct {
		Error struct {
			Message string          `json:"message"`
			Info    json.RawMessage `json:"@Message.ExtendedInfo"`
		} `json:"error"`
	}
	if err := decode(body, &doc); err != nil {
		if text := strings.TrimSpace(string(body)); text != "" && !strings.HasPrefix(text, "<") {
			return []message{{Text: text}}
		}
		return nil
	}
	return parseMessages(doc.Error.Info, doc.Error.Message)
}

// parseMessages decodes a list of messages, a single message or a string. If info
// is none of these, it makes a message of text.
func parseMessages(info json.RawMessage, text string) []message {
	var (
		list []message
		one  message
		word string
	)
	switch {
	case decode(info, &list) == nil && len(list) > 0:
		return list
	case decode(info, &one) == nil && one.ID+one.Text != "":
		return []message{one}
	case json.Unmarshal(info, &word) == nil && word != "":
		return []message{{Text: word}}
	case text != "":
		return []message{{Text: text}}
	}
	return nil
}
