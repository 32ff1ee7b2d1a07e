package firmware

import (
	"errors"
	"fmt"
	"strings"
)

// Errors that services map to their own codes.
var (
	// ErrUnknown means that a component, update or password does not exist.
	ErrUnknown = errors.New("firmware: no such thing")
	// ErrBusy means that work in progress cannot be stopped or joined.
	ErrBusy = errors.New("firmware: busy")
	// ErrNothing means that nothing is pending.
	ErrNothing = errors.New("firmware: nothing waits to be applied")
	// ErrWhen means that the apply time is not possible.
	ErrWhen = errors.New("firmware: apply time")
)

// Fault is why an attribute cannot have a value.
type Fault string

// The faults of values.
const (
	Unknown    Fault = "no such attribute"
	Fixed      Fault = "read-only"           // never writable
	Governed   Fault = "set by other values" // By says by which
	ByAction   Fault = "set by an action"    // a password
	WrongType  Fault = "wrong type"
	NotInList  Fault = "not in the list"
	OutOfRange Fault = "out of range"
	TooShort   Fault = "too short"
	TooLong    Fault = "too long"
	NoMatch    Fault = "not of the form"       // does not match the pattern
	NeedsReset Fault = "takes effect by reset" // but should be applied at once
	Twice      Fault = "given twice"
)

// AttributeError reports a value that an attribute cannot have.
type AttributeError struct {
	Name  string
	Value Value
	Fault Fault
	By    string     // attribute whose value determines this one
	Of    *Attribute // nil when unknown
}

// Error implements error.
func (e *AttributeError) Error() string {
	if e.By != "" {
		return fmt.Sprintf("firmware: attribute %s: %s: %s", e.Name, e.Fault, e.By)
	}
	if e.Of != nil && e.Of.Type == PasswordType {
		return fmt.Sprintf("firmware: attribute %s: %s", e.Name, e.Fault)
	}
	return fmt.Sprintf("firmware: attribute %s: %s: %s", e.Name, e.Value, e.Fault)
}

// AttributeErrors are all errors of a change, of which nothing was applied.
type AttributeErrors []*AttributeError

// Error implements error.
func (e AttributeErrors) Error() string {
	var all []string
	for _, one := range e {
		all = append(all, one.Error())
	}
	return strings.Join(all, "; ")
}

// PasswordError means that a change needs a password, which is missing or
// wrong.
type PasswordError struct {
	Name    string // attribute of the password
	Missing bool   // none was given
}

// Error implements error.
func (e *PasswordError) Error() string {
	if e.Missing {
		return fmt.Sprintf("firmware: password %s: must be given", e.Name)
	}
	return fmt.Sprintf("firmware: password %s: wrong", e.Name)
}
