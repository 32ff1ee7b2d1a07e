// Package fault decides on injected faults. A Plan is a list of rules that say
// where, when and how something goes wrong, with their counts. The package owns
// the rules' notation, matching, counts and randomness, and rewrites bodies. It
// opens no connection and does not wait: servers ask Decide and do what the
// Decision says.
//
// A plan is stepped: time is an argument. Each random draw derives from the
// seed, the rule's ID, the BMC's name and the number of the draw at that BMC,
// so that the faults of one BMC depend neither on other BMCs nor on the order
// among them.
//
//	faults:
//	- {bmc: node-3, path: /redfish/v1/Systems/**, status: 503, retryAfter: 30s, count: 2}
//	- {method: [PATCH, POST], latency: "p50=300ms,p99=4s"}
//	- {bmc: "node-1?", drop: reset, probability: 0.05}
//	- {bmc: node-7, offline: true, from: 10m, until: 12m}
package fault

import (
	"encoding/json"
	"time"
)

// Site is the stage of processing at which a plan is asked.
type Site string

// The sites.
const (
	Connect Site = "connect" // a connection was accepted, nothing was read
	Request Site = "request" // the header of a request was read
	Task    Site = "task"    // the work of a task has ended, which is about to be reported

	// IPMI. A datagram's method is In or Out; a command's path is /ipmi/ with
	// its NetFn and number: /ipmi/00/02.
	Datagram Site = "datagram" // a datagram was received or is to be sent
	Command  Site = "command"  // a command was parsed and is to be executed
)

// Methods of a Datagram.
const (
	In  = "IN"
	Out = "OUT"
)

// Subject is what a decision is about.
type Subject struct {
	Site   Site
	BMC    string // host name
	Method string // HTTP method of a request, In or Out of a datagram
	Path   string // path of a request, or of the request that started a task
	Body   []byte // body of a request, where Plan.ReadsBodies
}

// Drop says how a connection ends without a complete response.
type Drop string

// The ways. BeforeTLS and Unanswered apply to a connection, the others to a
// request.
const (
	BeforeTLS  Drop = "connect" // reset before the first byte
	Unanswered Drop = "silent"  // accepted, then nothing
	Reset      Drop = "reset"   // reset instead of a response
	HalfClose  Drop = "close"   // the server closes its side without a response, and keeps reading
	Hang       Drop = "hang"    // no response, as long as the client waits
	MidBody    Drop = "body"    // reset in the middle of the body
)

var dropSites = map[Drop]Site{
	BeforeTLS: Connect, Unanswered: Connect, Reset: Request, HalfClose: Request, Hang: Request, MidBody: Request,
}

// Wire is a fault of a datagram on its way.
type Wire string

// The ways.
const (
	Lost    Wire = "lose"   // it is dropped
	Doubled Wire = "double" // it arrives twice
	Swapped Wire = "swap"   // it arrives after the next one
	Spoiled Wire = "spoil"  // one bit is flipped
	Late    Wire = "late"   // it arrives after the rule's latency
)

var wires = []Wire{Lost, Doubled, Swapped, Spoiled, Late}

// TLS is a fault of a handshake or of its certificate.
type TLS string

// The failures.
const (
	Refused    TLS = "refused"     // the handshake fails with an alert
	Expired    TLS = "expired"     // the certificate expired yesterday
	WrongName  TLS = "wrong-name"  // the certificate is for another address
	SelfSigned TLS = "self-signed" // the certificate is self-signed
	NotYet     TLS = "not-yet"     // the certificate is not valid yet, for some years
	SHA1       TLS = "sha1"        // the certificate has an SHA-1 signature, which clients reject
	OldTLS     TLS = "old"         // the BMC offers TLS 1.0 and 1.1 only
)

var tlsFaults = []TLS{Refused, Expired, WrongName, SelfSigned, NotYet, SHA1, OldTLS}

var drops = []Drop{BeforeTLS, Unanswered, Reset, HalfClose, Hang, MidBody}

// Drops returns the values of a rule's drop.
func Drops() []string { return texts(drops) }

// TLSFaults returns the values of a rule's tls.
func TLSFaults() []string { return texts(tlsFaults) }

// Wires returns the values of a rule's wire.
func Wires() []string { return texts(wires) }

func texts[T ~string](all []T) (out []string) {
	for _, t := range all {
		out = append(out, string(t))
	}
	return out
}

// Decision lists the faults to inject. The zero value means none.
type Decision struct {
	Rules   []string // IDs of the rules that hit, in order of the plan
	Counted bool     // a rule with After or Count changed its tally: a stored State must be stored again

	Offline bool // the BMC is off the network
	Drop    Drop
	TLS     TLS

	Delay       time.Duration // before the response
	Status      int           // status of an error response instead of the service's; 0: none
	RetryAfter  time.Duration
	Message     string // message of that response
	MessageID   string // MessageId of that response: "Base.1.22.GeneralError"
	Performed   bool   // the request is executed, although the response does not say so
	Stale       bool   // the response shows the state before the last change
	Stuck       bool   // the task does not end
	LengthError int    // error of Content-Length, in bytes

	Wire Wire // what happens to the datagram; with Late, Delay says how late
	Code byte // completion code of the response; 0: the correct one

	Headers []Headers // headers of the response, in the order of the rules

	rewrites []rewrite
}

// Nothing reports whether nothing goes wrong.
func (d *Decision) Nothing() bool { return len(d.Rules) == 0 }

// rewrite is what one rule does to a body.
type rewrite struct {
	body, contentType string
	replaced          bool
	patch             json.RawMessage
	set               []pointed
	invalid           bool
	cut               cut
}
