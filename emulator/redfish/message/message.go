// Package message owns what a Redfish service says besides resources: the
// messages of the standard's registries (DSP8011), which versions of them a
// service speaks, and the error response that carries them (DSP0266, "Error
// responses"). Keys, arguments and severities are the standard's, which
// clients act upon; the wording is our own. It knows no resource and no HTTP.
package message

import (
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
	Registry   *Registry
	Since      int    // minor version of the registry that first had it; the major one is 1
	Key        string // "PropertyUnknown"
	Severity   Severity
	Text       string // %1 to %5 stand for the arguments
	Resolution string
}

// The kinds of message, by the number of their arguments: With takes as many,
// so that the compiler counts them.
type (
	zero  Definition
	one   Definition
	two   Definition
	three Definition
	four  Definition
	five  Definition
)

// With makes the message.
func (d zero) With() Message { return Definition(d).Make() }

// With makes the message with its argument.
func (d one) With(a string) Message { return Definition(d).Make(a) }

// With makes the message with its arguments.
func (d two) With(a, b string) Message { return Definition(d).Make(a, b) }

// With makes the message with its arguments.
func (d three) With(a, b, c string) Message { return Definition(d).Make(a, b, c) }

// With makes the message with its arguments.
func (d four) With(a, b, c, e string) Message { return Definition(d).Make(a, b, c, e) }

// With makes the message with its arguments.
func (d five) With(a, b, c, e, f string) Message { return Definition(d).Make(a, b, c, e, f) }

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

// Definition implements Entry.
func (d four) Definition() (Definition, int) { return Definition(d), 4 }

// Definition implements Entry.
func (d five) Definition() (Definition, int) { return Definition(d), 5 }

// Fill makes a message whose arguments are data, as those of an event are: one
// that is missing is empty, one too many is left out.
func Fill(e Entry, args ...string) Message {
	d, n := e.Definition()
	all := make([]string, n)
	copy(all, args)
	return d.Make(all...)
}

// Message is one message with its arguments.
type Message struct {
	Registry   *Registry
	Since      int // as in its definition
	Key        string
	Args       []string
	Severity   Severity
	Text       string
	Resolution string
	Related    []string // JSON pointers to properties of the request: "#/Boot"
}

// maxArg bounds an argument, which often is what a client sent, in bytes.
const maxArg = 256

// Make makes the message with its arguments, of which there must be as many as
// the text names.
func (d Definition) Make(args ...string) Message {
	var fill []string
	for i, a := range args {
		if len(a) > maxArg {
			args[i] = strings.ToValidUTF8(a[:maxArg], "") + "…"
		}
		fill = append(fill, "%"+strconv.Itoa(i+1), args[i])
	}
	text := strings.NewReplacer(fill...).Replace(d.Text)
	return Message{
		Registry: d.Registry, Since: d.Since, Key: d.Key, Args: args,
		Severity: d.Severity, Text: text, Resolution: d.Resolution,
	}
}

// About returns the message with a JSON pointer to the property that it is
// about.
func (m Message) About(pointer string) Message {
	m.Related = []string{pointer}
	return m
}
