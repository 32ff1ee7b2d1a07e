// Package event is what an emulated server tells of itself: that something
// happened, when, to which part, and that the work of a task has begun or ended.
// It is data that everybody above the models may read; it does not know who
// does, nor how a protocol words it.
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

// Subject is the part that something happened to.
type Subject struct {
	Part Part   `json:"part"`
	ID   string `json:"id,omitempty"` // within its kind; "" of what there is one of
	In   string `json:"in,omitempty"` // ID of what it is part of, where IDs need that: the controller of a volume
}

// Note is an event that belongs into a log.
type Note struct {
	At      time.Time `json:"at"`
	Kind    Kind      `json:"kind"`
	Subject Subject   `json:"subject"`
	Args    []string  `json:"args,omitempty"` // that fill the text of the kind: %1, %2
}

// Time implements Event.
func (n Note) Time() time.Time { return n.At }

// Severity is how bad it is.
func (n Note) Severity() Severity { return Kinds[n.Kind].Severity }

// Text says for people what happened.
func (n Note) Text() string {
	var fill []string
	for i, a := range n.Args {
		fill = append(fill, "%"+strconv.Itoa(i+1), a)
	}
	return strings.NewReplacer(fill...).Replace(Kinds[n.Kind].Text)
}

// TaskRunning tells that the work of a task has begun, or goes on, and when it will
// be done if nothing comes between.
type TaskRunning struct {
	At    time.Time
	Task  string // ID of the task, which the command was given
	Until time.Time
}

// Time implements Event.
func (e TaskRunning) Time() time.Time { return e.At }

// TaskWaiting tells that the work of a task will begin when something else has
// happened: the machine's next reset, say.
type TaskWaiting struct {
	At   time.Time
	Task string
}

// Time implements Event.
func (e TaskWaiting) Time() time.Time { return e.At }

// TaskMessage is a note that belongs to a task rather than into a log.
type TaskMessage struct {
	Task string
	Note
}

// Restart tells that a part restarts by itself, as its new firmware needs.
type Restart struct {
	At      time.Time
	Subject Subject
}

// Time implements Event.
func (e Restart) Time() time.Time { return e.At }

// Boot tells that the machine was reset: its firmware begins.
type Boot struct{ At time.Time }

// Time implements Event.
func (e Boot) Time() time.Time { return e.At }

// TaskPaused tells that the work of a task rests; Running tells that it goes on.
type TaskPaused struct {
	At   time.Time
	Task string
}

// Time implements Event.
func (e TaskPaused) Time() time.Time { return e.At }

// ACPower tells that the mains have gone or come back.
type ACPower struct {
	At time.Time
	On bool
}

// Time implements Event.
func (e ACPower) Time() time.Time { return e.At }

// TaskDone tells that the work of a task has ended.
type TaskDone struct {
	At        time.Time
	Task      string
	Fault     string   // for people, lower case; "" when it went well
	Cancelled bool     // it was stopped because somebody wanted that
	Made      *Subject // what it has made; nil when that is nothing
	// Told is what whoever waits for the task shall be told beside that: what
	// was wrong, or what is left to do. Protocols map the kinds to messages.
	Messages []Note
}

// Time implements Event.
func (e TaskDone) Time() time.Time { return e.At }
