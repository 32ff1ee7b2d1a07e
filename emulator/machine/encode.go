package machine

import (
	"encoding/json"
	"strconv"
	"time"

	"github.com/metalab-dev/metalab/emulator/machine/event"
)

// AppendJSON appends what json.Marshal makes of the part, to the byte, in a
// fraction of the time: it is stored with most of what happens to a machine.
func (m *Main) AppendJSON(b []byte) ([]byte, error) {
	e := encoder{b: b}
	e.b = event.AppendText(append(e.b, `{"phase":`...), m.Phase)
	e.time(`,"since":`, m.Since)
	e.time(`,"deadline":`, m.Deadline)
	e.text(`,"progress":`, string(m.Progress))
	e.time(`,"progressAt":`, m.ProgressAt)
	e.flag(`,"again":true`, m.Again)
	if m.Asked != nil {
		e.any(`,"asked":`, m.Asked)
	}
	e.flag(`,"wasOn":true`, m.WasOn)
	e.flag(`,"noMains":true`, m.NoMains)
	e.text(`,"lost":`, string(m.Lost))
	e.duration(`,"onFor":`, m.OnFor)
	e.time(`,"onSince":`, m.OnSince)
	e.text(`,"cause":`, string(m.Cause))
	e.text(`,"restores":`, string(m.Restores))
	if m.Reset != nil {
		e.any(`,"reset":`, m.Reset)
	}
	e.b = event.AppendText(append(e.b, `,"override":{"enabled":`...), m.Override.Enabled)
	e.b = event.AppendText(append(e.b, `,"target":`...), m.Override.Target)
	e.b = event.AppendText(append(e.b, `,"mode":`...), m.Override.Mode)
	e.text(`,"path":`, m.Override.Path)
	e.text(`,"next":`, m.Override.Next)
	e.b = strconv.AppendUint(append(e.b, `},"boots":`...), m.Boots, 10)
	if m.Retries != 0 {
		e.b = strconv.AppendInt(append(e.b, `,"retries":`...), int64(m.Retries), 10)
	}
	e.duration(`,"bootTime":`, m.BootTime)
	if len(m.Tries) > 0 {
		e.any(`,"tries":`, m.Tries)
	}
	e.text(`,"app":`, string(m.App))
	if m.Image != nil {
		e.any(`,"image":`, m.Image)
	}
	if m.OS != nil {
		e.any(`,"os":`, m.OS)
	}
	return append(e.b, '}'), e.err
}

// encoder appends properties, which are named with what is before their values.
type encoder struct {
	b   []byte
	err error
}

// text appends a text that is not empty.
func (e *encoder) text(name, text string) {
	if text != "" {
		e.b = event.AppendText(append(e.b, name...), text)
	}
}

// flag appends what is true.
func (e *encoder) flag(whole string, is bool) {
	if is {
		e.b = append(e.b, whole...)
	}
}

// time appends a time that is not zero.
func (e *encoder) time(name string, t time.Time) {
	if t.IsZero() {
		return
	}
	var ok bool
	if e.b, ok = event.AppendTime(append(e.b, name...), t); !ok {
		e.any("", t) // which tells what is wrong with it
	}
}

// duration appends a duration that is not zero.
func (e *encoder) duration(name string, d Duration) {
	if d.Duration != 0 {
		e.b = event.AppendText(append(e.b, name...), d.String()) // µ is none that is plain
	}
}

// any appends what is seldom there.
func (e *encoder) any(name string, v any) {
	whole, err := json.Marshal(v)
	if err != nil && e.err == nil {
		e.err = err
	}
	e.b = append(append(e.b, name...), whole...)
}
