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
	"slices"
	"strings"
	"unicode"

	"github.com/metalab-dev/metalab/controller/bmc"
)

var errClosed = errors.New("redfish: the client is closed")

// maxText bounds what an error quotes of an answer, in bytes: it ends up in
// the status of a host.
const maxText = 600

// statusError is an answer that is no success.
type statusError struct {
	request    string // method and URI
	status     int
	text       string   // what the service said
	ids        []string // its message IDs without registry and version, e.g. PropertyUnknown
	arguments  []string // of its messages, and the properties that they name
	messages   []message
	challenges []string // WWW-Authenticate
	kind       error    // of package bmc; nil when the caller can do nothing special
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

// unsupported says that a service does not offer a verb at all.
func unsupported(verb, why string) error {
	return fmt.Errorf("redfish: %w", &bmc.UnsupportedError{Verb: verb, Why: why})
}

// has reports whether the service sent one of these messages.
func (e *statusError) has(ids ...string) bool {
	return slices.ContainsFunc(e.ids, func(id string) bool { return slices.Contains(ids, id) })
}

// kinds maps the statuses that mean the same in every answer.
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

// messageKinds are the messages that say more than their status.
var messageKinds = map[string]error{
	"ActionNotSupported":            bmc.ErrUnsupported, // 400 or 404 (Base registry)
	"ActionParameterNotSupported":   bmc.ErrUnsupported,
	"ActionParameterValueNotInList": bmc.ErrUnsupported,
	"PropertyValueNotInList":        bmc.ErrUnsupported,
	"PropertyNotWritable":           bmc.ErrUnsupported,
	"FileTransferProtocolMismatch":  bmc.ErrUnsupported, // iBMC takes no http
	"LicenseKeyRequired":            bmc.ErrUnsupported, // iLO, 403 or 400
	"OemLicenseNotPassed":           bmc.ErrUnsupported, // Supermicro, 403
	"SWC0700":                       bmc.ErrBusy,        // "iDRAC is not ready", as 400 (quadsproject/badfish issue 129)
	"SYS518":                        bmc.ErrBusy,        // iDRAC: data sources unavailable

	"UnableToModifyDuringSystemPOST": bmc.ErrBusy,    // iLO, 400 (bugs.launchpad.net/ironic bug 2136275)
	"InvalidOperationForSystemState": bmc.ErrBusy,    // iLO, 400 (sushy's retry-ilo-not-ready-error note)
	"ResetInProgress":                bmc.ErrBusy,    // iLO
	"RAC0679":                        bmc.ErrBusy,    // iDRAC: a job runs
	"SYS011":                         bmc.ErrPending, // iDRAC: settings are committed, and not applied
	"LC068":                          bmc.ErrPending, // iDRAC: likewise (quadsproject/badfish issue 30)
}

// explain makes an error of a request that brought no success.
func (c *client) explain(ctx context.Context, request string, rec *record, err error) error {
	if rec.status == 0 || rec.status/100 == 2 {
		return c.explainFailure(ctx, request, rec, err)
	}
	e := &statusError{request: request, status: rec.status, kind: kinds[rec.status], challenges: rec.header.Values("WWW-Authenticate")}
	var texts []string
	e.messages = extendedInfo(rec.body)
	for _, m := range e.messages {
		texts = append(texts, m.String())
		e.ids = append(e.ids, m.key())
		e.arguments = append(e.arguments, m.arguments()...)
		if kind, ok := messageKinds[m.key()]; ok {
			e.kind = kind
		}
	}
	if texts == nil && rec.status/100 == 3 {
		texts = []string{"redirected to " + rec.header.Get("Location")}
	}
	e.text = c.clean(strings.Join(texts, "; "))
	return e
}

// explainFailure is for a request without an answer, or with one that gofish
// could not read.
func (c *client) explainFailure(ctx context.Context, request string, rec *record, err error) error {
	if e := new(url.Error); errors.As(err, &e) {
		err = e.Err // without the URL, which request tells
	}
	switch {
	case errors.Is(ctx.Err(), context.Canceled):
		return fmt.Errorf("redfish: %s: %w", request, ctx.Err())
	case ctx.Err() != nil:
		return fmt.Errorf("redfish: %w: %s: %w", bmc.ErrUnreachable, request, ctx.Err())
	case rec.status != 0: // as 2xx
		return fmt.Errorf("redfish: %s: what answers is no Redfish service: %w", request, bmc.ErrUnsupported)
	case untrusted(err):
		return fmt.Errorf("redfish: %w: %s: %s", bmc.ErrUntrusted, request, c.clean(err.Error()))
	}
	return fmt.Errorf("redfish: %w: %s: %s", bmc.ErrUnreachable, request, c.clean(err.Error()))
}

func untrusted(err error) bool {
	var (
		verification *tls.CertificateVerificationError
		authority    x509.UnknownAuthorityError
		host         x509.HostnameError
		invalid      x509.CertificateInvalidError
	)
	return errors.As(err, &verification) || errors.As(err, &authority) || errors.As(err, &host) || errors.As(err, &invalid)
}

// clean makes text fit for the status of a host: one line of printable text
// without the account's password, which some services repeat in their errors.
func (c *client) clean(text string) string {
	for _, secret := range []string{c.credentials.Password, basicToken(c.credentials)} {
		if secret != "" {
			text = strings.ReplaceAll(text, secret, "…")
		}
	}
	text = strings.Map(func(r rune) rune {
		if unicode.IsControl(r) {
			return ' '
		}
		return r
	}, strings.ToValidUTF8(text, "�"))
	if text = strings.TrimSpace(text); len(text) > maxText {
		text = strings.ToValidUTF8(text[:maxText], "") + "…"
	}
	return text
}

// message is a Redfish message (schema Message.v1_0_0 and later).
type message struct {
	ID      string            `json:"MessageId"`
	Text    string            `json:"Message"`
	Args    []json.RawMessage `json:"MessageArgs"` // strings; numbers in some services
	Related []string          `json:"RelatedProperties"`

	Severity string `json:"MessageSeverity"`
	Worth    string `json:"Severity"` // what it was called before Message 1.1
}

// good reports whether the message tells of a success.
func (m message) good() bool { return m.key() == "Success" || m.Severity == "OK" || m.Worth == "OK" }

// key is the message's own name: Base.1.8.PropertyUnknown has PropertyUnknown.
func (m message) key() string {
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
	// iLO sends the text only when asked to.
	if len(m.Args) == 0 {
		return m.ID
	}
	return m.ID + " " + strings.Join(m.arguments(), ", ")
}

// extendedInfo reads the messages of an error (DSP0266 §8.6). Some iDRACs send
// one object, or a string, where a list belongs; some services no JSON at all.
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
	return messagesOf(doc.Error.Info, doc.Error.Message)
}

// messagesOf reads a list of messages in whatever form it comes, else makes
// one of the text.
func messagesOf(info json.RawMessage, text string) []message {
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
