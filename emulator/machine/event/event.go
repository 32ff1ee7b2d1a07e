// Package event defines the events of an emulated server: log entries, and the
// beginning and end of the work of tasks. Events are data for every layer above
// the models; the package does not know who reads them, nor how a protocol
// words them.
package event

import (
	"strconv"
	"strings"
	"time"
)

// Event is something that happened.
type Event interface{ Time() time.Time }

// Severity says how bad something is; the values are Redfish's Health (DSP2046,
// Resource.Health).
type Severity string

// The severities.
const (
	OK       Severity = "OK"
	Warning  Severity = "Warning"
	Critical Severity = "Critical"
)

// Subject is the part that an event is about.
type Subject struct {
	Part Part   `json:"part"`
	ID   string `json:"id,omitempty"` // within its kind; "" when there is only one
	In   string `json:"in,omitempty"` // ID of the part that contains it, where IDs are unique only there: the controller of a volume
}

// Note is an event for a log.
type Note struct {
	At      time.Time `json:"at"`
	Kind    Kind      `json:"kind"`
	Subject Subject   `json:"subject"`
	Args    []string  `json:"args,omitempty"` // replace %1, %2 in the kind's text
}

// Time implements Event.
func (n Note) Time() time.Time { return n.At }

// Severity returns the severity of the note's kind.
func (n Note) Severity() Severity { return Kinds[n.Kind].Severity }

// Text returns the note's message for display.
func (n Note) Text() string {
	var fill []string
	for i, a := range n.Args {
		fill = append(fill, "%"+strconv.Itoa(i+1), a)
	}
	return strings.NewReplacer(fill...).Replace(Kinds[n.Kind].Text)
}

// TaskRunning reports that the work of a task begins or resumes, and when it is
// expected to end.
type TaskRunning struct {
	At    time.Time
	Task  string // ID of the task, from the command
	Until time.Time
}

// Time implements Event.
func (e TaskRunning) Time() time.Time { return e.At }

// TaskWaiting reports that the work of a task waits for a condition, for
// example the machine's next reset.
type TaskWaiting struct {
	At   time.Time
	Task string
}

// Time implements Event.
func (e TaskWaiting) Time() time.Time { return e.At }

// TaskMessage is a note for a task's messages rather than for a log.
type TaskMessage struct {
	Task string
	Note
}

// Restart reports that a part restarts because of its new firmware.
type Restart struct {
	At      time.Time
	Subject Subject
}

// Time implements Event.
func (e Restart) Time() time.Time { return e.At }

// Boot reports that the machine was reset and its firmware starts.
type Boot struct{ At time.Time }

// Time implements Event.
func (e Boot) Time() time.Time { return e.At }

// TaskPaused reports that the work of a task is paused; TaskRunning reports
// that it resumes.
type TaskPaused struct {
	At   time.Time
	Task string
}

// Time implements Event.
func (e TaskPaused) Time() time.Time { return e.At }

// ACPower reports that AC power was lost or has returned.
type ACPower struct {
	At time.Time
	On bool
}

// Time implements Event.
func (e ACPower) Time() time.Time { return e.At }

// TaskDone reports that the work of a task has ended.
type TaskDone struct {
	At        time.Time
	Task      string
	Fault     string   // for display, lower case; "": success
	Cancelled bool     // stopped by a request
	Made      *Subject // what it has created; nil: nothing
	// Messages are further messages for the task's client: what was wrong, or
	// what remains to be done. Protocols map their kinds to messages.
	Messages []Note
}

// Time implements Event.
func (e TaskDone) Time() time.Time { return e.At }
