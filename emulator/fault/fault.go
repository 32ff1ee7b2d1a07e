// Package fault is a plan of what goes wrong: rules that say to whom, when and
// how, and the decisions that follow from them. It owns how a rule is written,
// what it matches, its counts and its chance, and what it does to the bytes of
// a body. It opens no connection and waits for nothing: who serves asks with
// Decide and does what the Decision says.
//
// A plan is stepped: time is an argument. Chance is drawn from the seed, the
// rule's ID, the BMC's name and the number of the draw at that BMC, so that what
// happens to one BMC depends neither on the others nor on the order among them.
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

// Site is where in the life of a request a plan is asked.
type Site string

// The sites.
const (
	Connect Site = "connect" // a connection was accepted; nothing was read yet
	Request Site = "request" // the head of a request was read
	Task    Site = "task"    // the work of a task is done; its end is to be told

	// Of IPMI. A datagram's method is In or Out; the path of a command is
	// /ipmi/ with its NetFn and number: /ipmi/00/02.
	Datagram Site = "datagram" // one came, or is to be sent
	Command  Site = "command"  // one was understood, and is to be carried out
)

// Methods of a Datagram.
const (
	In  = "IN"
	Out = "OUT"
)

// Subject is what a decision is about.
type Subject struct {
	Site   Site
	BMC    string // name of the host
	Method string // of a request
	Path   string // of a request, or of the one that made a task
}

// Drop is how a connection ends without what the client waits for.
type Drop string

// The ways. BeforeTLS and Unanswered happen to a connection, the others to a
// request.
const (
	BeforeTLS  Drop = "connect" // it is reset before the first byte
	Unanswered Drop = "silent"  // it is accepted, and nothing more happens
	Reset      Drop = "reset"   // it is reset instead of an answer
	HalfClose  Drop = "close"   // the server ends its side without an answer, and goes on reading
	Hang       Drop = "hang"    // no answer, for as long as the client waits
	MidBody    Drop = "body"    // it is reset in the middle of the body
)

var dropSites = map[Drop]Site{
	BeforeTLS: Connect, Unanswered: Connect, Reset: Request, HalfClose: Request, Hang: Request, MidBody: Request,
}

// Wire is what becomes of a datagram on its way.
type Wire string

// The ways.
const (
	Lost    Wire = "lose"   // it does not arrive
	Doubled Wire = "double" // it arrives twice
	Swapped Wire = "swap"   // it arrives after the one that follows it
	Spoiled Wire = "spoil"  // a bit of it is another
	Late    Wire = "late"   // it arrives after the rule's latency
)

var wires = []Wire{Lost, Doubled, Swapped, Spoiled, Late}

// TLS is how a handshake fails, or what is wrong with the certificate.
type TLS string

// The failures.
const (
	Refused    TLS = "refused"     // the handshake ends with an alert
	Expired    TLS = "expired"     // the certificate was valid until yesterday
	WrongName  TLS = "wrong-name"  // the certificate is for another address
	SelfSigned TLS = "self-signed" // the certificate is signed by itself
	NotYet     TLS = "not-yet"     // the certificate will be valid in some years
	SHA1       TLS = "sha1"        // the certificate is signed over a digest that nobody trusts any longer
)

var tlsFaults = []TLS{Refused, Expired, WrongName, SelfSigned, NotYet, SHA1}

// Decision is what shall go wrong. The zero value is nothing.
type Decision struct {
	Rules   []string // IDs of the rules that hit, in the plan's order
	Counted bool     // a rule with After or Count took note: a State that is stored should be stored anew

	Offline bool // the BMC is not there
	Drop    Drop
	TLS     TLS

	Delay       time.Duration // before all else of the answer
	Status      int           // of an answer that is made instead of the right one; 0 is none
	RetryAfter  time.Duration
	Message     string // text of that answer's error
	MessageID   string // that it bears: "Base.1.22.GeneralError"
	Performed   bool   // what was asked is done, although the answer does not say so
	Stale       bool   // the answer is as it was before the last change
	Stuck       bool   // the task does not end
	LengthError int    // bytes that Content-Length is wrong by

	Wire Wire // what becomes of the datagram; of a Late one Delay says how late
	Code byte // completion code that a command is answered with; 0 is the right one

	rewrites []rewrite
}

// Nothing says whether all goes right.
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
