package firmware

import (
	"errors"
	"fmt"
	"strings"
)

// Errors that services map to their own codes.
var (
	// ErrUnknown means that there is no such component, update or password.
	ErrUnknown = errors.New("firmware: no such thing")
	// ErrBusy means that what is under way cannot be stopped or joined.
	ErrBusy = errors.New("firmware: busy")
	// ErrNothing means that there is nothing to be applied.
	ErrNothing = errors.New("firmware: nothing waits to be applied")
	// ErrWhen means that something cannot be applied at the time asked for.
	ErrWhen = errors.New("firmware: apply time")
)

// Fault is what is wrong with a value that an attribute shall have.
type Fault string

// The faults of values.
const (
	Unknown    Fault = "no such attribute"
	Fixed      Fault = "read-only"           // nobody can set it
	Governed   Fault = "set by other values" // By says by which
	ByAction   Fault = "set by an action"    // a password
	WrongType  Fault = "wrong type"
	NotInList  Fault = "not in the list"
	OutOfRange Fault = "out of range"
	TooShort   Fault = "too short"
	TooLong    Fault = "too long"
	NoMatch    Fault = "not of the form"       // of the pattern
	NeedsReset Fault = "takes effect by reset" // and was to be applied at once
	Twice      Fault = "given twice"
)

// AttributeError is a value that an attribute cannot have.
type AttributeError struct {
	Name  string
	Value Value
	Fault Fault
	By    string     // attribute whose value governs this one
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

// AttributeErrors are all that is wrong with a change; nothing of it was done.
type AttributeErrors []*AttributeError

// Error implements error.
func (e AttributeErrors) Error() string {
	var all []string
	for _, one := range e {
		all = append(all, one.Error())
	}
	return strings.Join(all, "; ")
}

// PasswordError means that a change needs a password that was not given, or
// another one.
type PasswordError struct {
	Name    string // attribute of the password that is asked for
	Missing bool   // none was given
}

// Error implements error.
func (e *PasswordError) Error() string {
	if e.Missing {
		return fmt.Sprintf("firmware: password %s: must be given", e.Name)
	}
	return fmt.Sprintf("firmware: password %s: wrong", e.Name)
}
