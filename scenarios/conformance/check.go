// Package conformance tells whether a BMC, real or emulated, can be provisioned:
// it is a table of checks of Redfish and IPMI, each with the failure that it
// predicts and the remedy, and it runs them against an address and credentials.
// It knows the wire and nothing of the emulator, the controllers or the agent;
// what checks need beyond an address (media, DHCP, a provisioner) is declared
// here as interfaces and passed in.
package conformance

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"time"
)

// Level is the effect of a check on the server. Levels are ordered: a run does all
// checks up to its own.
type Level string

// The levels.
const (
	ReadOnly    Level = "read-only"   // GET and its own session
	Reversible  Level = "reversible"  // writes and restores; the host does not notice
	Disruptive  Level = "disruptive"  // the host or the BMC restarts; data stays
	Destructive Level = "destructive" // erases disks, flashes firmware, resets the configuration
)

// Levels are all levels in order.
var Levels = []Level{ReadOnly, Reversible, Disruptive, Destructive}

// Allows reports whether a run at level l may do what needs level other.
func (l Level) Allows(other Level) bool { return l.rank() >= other.rank() }

func (l Level) rank() int {
	for i, known := range Levels {
		if l == known {
			return i
		}
	}
	return 0 // an unknown level allows no more than reading
}

// Protocol is the protocol of a check's requests.
type Protocol string

// The protocols.
const (
	Redfish       Protocol = "Redfish"
	IPMI          Protocol = "IPMI"
	Both          Protocol = "Redfish and IPMI"
	RedfishAgent  Protocol = "Redfish and agent"
	EveryProtocol Protocol = "all"
)

// Step is a step of provisioning which a failed check lets fail.
type Step string

// The steps in the order in which provisioning takes them.
const (
	Register  Step = "register"
	Inspect   Step = "inspect"
	Prepare   Step = "prepare" // firmware, BIOS settings, RAID
	Boot      Step = "boot"
	Provision Step = "provision"
	Day2      Step = "day 2"
)

// Steps are all steps in order.
var Steps = []Step{Register, Inspect, Prepare, Boot, Provision, Day2}

// Check is one row of the table.
type Check struct {
	ID       string // such as PWR-001; stable
	Title    string // what holds
	Level    Level
	Protocol Protocol
	Step     Step   // first step of provisioning that the failure breaks
	Predicts string // the failure that a client sees later
	Remedy   string // the operator's way out

	// After lists the checks without which this one tells nothing: unless each
	// has passed (or has only a warning), this one is skipped with their IDs.
	After []string
	// Needs lists the facilities of the check beyond the address of the Redfish service.
	Needs []Facility

	// Run is the check; nil: it is not built yet, and its verdict is skip.
	Run func(context.Context, *Run) Outcome
}

// Group is the part of a check's ID before the dash.
func (c Check) Group() string {
	for i, r := range c.ID {
		if r == '-' {
			return c.ID[:i]
		}
	}
	return c.ID
}

// Verdict is the outcome of a check.
type Verdict string

// The verdicts.
const (
	Pass   Verdict = "pass"
	Fail   Verdict = "fail"
	Warn   Verdict = "warn"  // clients work all the same, or with a workaround
	Skip   Verdict = "skip"  // there was nothing to check; the reason says why
	Broken Verdict = "error" // the tool or the network failed; the BMC is not at fault
)

// NotBuilt is the reason of a skipped check that has no function.
const NotBuilt = "not built"

// Outcome is the result of a check.
type Outcome struct {
	Verdict Verdict
	Reason  string            // why it did not pass, or a remark
	Advice  string            // replaces the check's remedy when this one is more exact
	Quirks  []Quirk           // deviations that a client must work around
	Facts   map[string]string // measurements and findings, for the report and for diff
}

// Quirk is a deviation of the BMC, by the name that quirks.yaml gives it. An
// emulated BMC with the same quirk behaves alike.
type Quirk struct {
	Name   string            `json:"name"`
	Values map[string]string `json:"values,omitempty"` // such as for=10s
}

// Passed is the outcome of a check that holds. The note may be empty.
func Passed(format string, args ...any) Outcome {
	return Outcome{Verdict: Pass, Reason: fmt.Sprintf(format, args...)}
}

// Failed is the outcome of a check that does not hold.
func Failed(format string, args ...any) Outcome {
	return Outcome{Verdict: Fail, Reason: fmt.Sprintf(format, args...)}
}

// Warned is the outcome of a check that does not hold, with which clients cope.
func Warned(format string, args ...any) Outcome {
	return Outcome{Verdict: Warn, Reason: fmt.Sprintf(format, args...)}
}

// Skipped is the outcome of a check that has nothing to check.
func Skipped(format string, args ...any) Outcome {
	return Outcome{Verdict: Skip, Reason: fmt.Sprintf(format, args...)}
}

// With adds a fact to the outcome.
func (o Outcome) With(name, format string, args ...any) Outcome {
	facts := map[string]string{name: fmt.Sprintf(format, args...)}
	for k, v := range o.Facts {
		if _, there := facts[k]; !there {
			facts[k] = v
		}
	}
	o.Facts = facts
	return o
}

// Quirky adds a quirk without values to the outcome.
func (o Outcome) Quirky(names ...string) Outcome {
	for _, n := range names {
		o.Quirks = append(o.Quirks[:len(o.Quirks):len(o.Quirks)], Quirk{Name: n})
	}
	return o
}

// Judge turns an error into an outcome: none passes, a Finding is the BMC's
// fault, ErrLevel, a Refusal and a NothingThere skip, and everything else is an error of the
// tool or the network.
func Judge(err error) Outcome {
	finding, nothing, refusal := new(Finding), NothingThere(""), new(Refusal)
	switch {
	case err == nil:
		return Outcome{Verdict: Pass}
	case errors.As(err, &finding):
		return Outcome{Verdict: Fail, Reason: err.Error()}
	case errors.As(err, &nothing):
		return Outcome{Verdict: Skip, Reason: err.Error()}
	case errors.Is(err, ErrLevel), errors.As(err, &refusal):
		return Outcome{Verdict: Skip, Reason: err.Error()}
	}
	return Outcome{Verdict: Broken, Reason: err.Error()}
}

// Finding is an error that the BMC is responsible for: it answered, and the
// answer is wrong.
type Finding struct {
	Text   string
	Status int // HTTP status of the response that it is about; 0 where it is about none, or several
}

func (f *Finding) Error() string { return f.Text }

// Findingf returns a Finding.
func Findingf(format string, args ...any) error { return &Finding{Text: fmt.Sprintf(format, args...)} }

// forbidden reports whether an error is a Finding about a response 403. Its text would not
// tell: the number may be part of a port.
func forbidden(err error) bool {
	f := new(Finding)
	return errors.As(err, &f) && f.Status == http.StatusForbidden
}

// NothingThere is an error that says what the BMC does not have, and need not
// have: the check is skipped.
type NothingThere string

func (n NothingThere) Error() string { return string(n) }

// ErrLevel means that the run's level forbids a write.
var ErrLevel = errors.New("the level of the run does not allow this write")

// Result is the outcome of one check of a BMC.
type Result struct {
	Check
	Outcome
	Evidence []int // IDs of exchanges
	Began    time.Time
	Took     time.Duration
}
