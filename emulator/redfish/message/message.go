// Package message owns what a Redfish service says besides resources: the
// messages of the Base registry (DSP8011) and the error response that carries
// them (DSP0266, "Error responses"). Keys, arguments and severities are the
// standard's, which clients act upon; the wording is our own. It knows no
// resource and no HTTP.
package message

import (
	"bytes"
	"encoding/json"
	"strconv"
	"strings"
)

// Severity is how bad a message is; the values are Redfish's Resource.Health.
type Severity string

// The severities.
const (
	OK       Severity = "OK"
	Warning  Severity = "Warning"
	Critical Severity = "Critical"
)

// Definition is one message of a registry.
type Definition struct {
	Key        string // "PropertyUnknown"
	Severity   Severity
	Text       string // %1 to %3 stand for the arguments
	Resolution string
}

// The kinds of message, by the number of their arguments: With takes as many,
// so that the compiler counts them.
type (
	zero  Definition
	one   Definition
	two   Definition
	three Definition
)

// With makes the message.
func (d zero) With() Message { return Definition(d).message() }

// With makes the message with its argument.
func (d one) With(a string) Message { return Definition(d).message(a) }

// With makes the message with its arguments.
func (d two) With(a, b string) Message { return Definition(d).message(a, b) }

// With makes the message with its arguments.
func (d three) With(a, b, c string) Message { return Definition(d).message(a, b, c) }

// Entry is a definition of a registry with the number of its arguments.
type Entry interface {
	Definition() (Definition, int)
}

// Definition implements Entry.
func (d zero) Definition() (Definition, int) { return Definition(d), 0 }

// Definition implements Entry.
func (d one) Definition() (Definition, int) { return Definition(d), 1 }

// Definition implements Entry.
func (d two) Definition() (Definition, int) { return Definition(d), 2 }

// Definition implements Entry.
func (d three) Definition() (Definition, int) { return Definition(d), 3 }

// Message is one message with its arguments.
type Message struct {
	Key        string
	Args       []string
	Severity   Severity
	Text       string
	Resolution string
	Related    []string // JSON pointers to properties of the request: "#/Boot"
}

// maxArg bounds an argument, which often is what a client sent, in bytes.
const maxArg = 256

func (d Definition) message(args ...string) Message {
	var fill []string
	for i, a := range args {
		if len(a) > maxArg {
			args[i] = strings.ToValidUTF8(a[:maxArg], "") + "…"
		}
		fill = append(fill, "%"+strconv.Itoa(i+1), args[i])
	}
	text := strings.NewReplacer(fill...).Replace(d.Text)
	return Message{Key: d.Key, Args: args, Severity: d.Severity, Text: text, Resolution: d.Resolution}
}

// About returns the message with a JSON pointer to the property that it is
// about.
func (m Message) About(pointer string) Message {
	m.Related = []string{pointer}
	return m
}

// wire is the form of Message.v1_3_0.Message.
type wire struct {
	Type       string   `json:"@odata.type"`
	ID         string   `json:"MessageId"`
	Text       string   `json:"Message"`
	Args       []string `json:"MessageArgs,omitempty"`
	Related    []string `json:"RelatedProperties,omitempty"`
	Severity   Severity `json:"MessageSeverity"`
	Old        Severity `json:"Severity"` // before Message 1.1
	Resolution string   `json:"Resolution"`
}

func (m Message) wire(registry string) wire {
	return wire{
		Type: "#Message.v1_3_0.Message", ID: registry + "." + m.Key, Text: m.Text, Args: m.Args, Related: m.Related,
		Severity: m.Severity, Old: m.Severity, Resolution: m.Resolution,
	}
}

// ExtendedInfo is the value of an @Message.ExtendedInfo annotation; registry is
// the prefix of a MessageId, "Base.1.22".
func ExtendedInfo(registry string, ms ...Message) any {
	out := make([]wire, len(ms))
	for i, m := range ms {
		out[i] = m.wire(registry)
	}
	return out
}

// Error is the body of an error response. One message speaks for itself;
// several stand under GeneralError.
func Error(registry string, ms ...Message) []byte {
	head := GeneralError.With()
	if len(ms) == 1 {
		head = ms[0]
	}
	var body struct {
		Error struct {
			Code     string `json:"code"`
			Message  string `json:"message"`
			Extended any    `json:"@Message.ExtendedInfo"`
		} `json:"error"`
	}
	body.Error.Code, body.Error.Message = registry+"."+head.Key, head.Text
	body.Error.Extended = ExtendedInfo(registry, ms...)
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if err := e.Encode(body); err != nil {
		panic(err) // strings only: they always encode
	}
	return bytes.TrimSuffix(b.Bytes(), []byte("\n"))
}
