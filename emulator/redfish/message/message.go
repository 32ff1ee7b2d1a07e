// Package message holds the messages of the standard's message registries (DSP8011),
// selects the registry version of a service, and encodes error responses (DSP0266,
// "Error responses"). Keys, arguments and severities are those of the standard, since
// clients depend on them; the texts are not. It knows neither resources nor HTTP.
package message

import (
	"strconv"
	"strings"
)

// Severity is the severity of a message; the values are those of Resource.Health.
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
	Since      int    // minor version of the registry that added it; the major version is 1
	Key        string // "PropertyUnknown"
	Severity   Severity
	Text       string // %1 to %5 are replaced by the arguments
	Resolution string
}

// The types of definitions by number of arguments: With has as many parameters, so
// that the compiler checks the number.
type (
	zero  Definition
	one   Definition
	two   Definition
	three Definition
	four  Definition
	five  Definition
)

// With returns the message.
func (d zero) With() Message { return Definition(d).Make() }

// With returns the message with its argument.
func (d one) With(a string) Message { return Definition(d).Make(a) }

// With returns the message with its arguments.
func (d two) With(a, b string) Message { return Definition(d).Make(a, b) }

// With returns the message with its arguments.
func (d three) With(a, b, c string) Message { return Definition(d).Make(a, b, c) }

// With returns the message with its arguments.
func (d four) With(a, b, c, e string) Message { return Definition(d).Make(a, b, c, e) }

// With returns the message with its arguments.
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

// Fill returns a message whose number of arguments is known at run time alone, as for
// events: missing arguments are empty, excess ones are dropped.
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

// maxArg is the maximum length of an argument in bytes; clients send many of them.
const maxArg = 256

// emptyArg stands for an argument that is an empty text: a client that shows the
// arguments shows that there is one.
const emptyArg = `""`

// Make returns the message with its arguments. Their number must be that of the
// placeholders in the text. An empty argument becomes two quotation marks.
func (d Definition) Make(args ...string) Message {
	var fill []string
	for i, a := range args {
		if a == "" {
			args[i] = emptyArg
		}
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

// About returns the message with a JSON pointer to the property of the request that
// it refers to (RelatedProperties).
func (m Message) About(pointer string) Message {
	m.Related = []string{pointer}
	return m
}
