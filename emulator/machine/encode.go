package machine

import (
	"encoding/json"
	"strconv"
	"time"

	"github.com/metalab-dev/metalab/emulator/machine/event"
)

// AppendJSON appends what json.Marshal makes of the part, to the byte, in a
// fraction of the time: it is stored with most of what happens to a machine.
func (s *Main) AppendJSON(b []byte) ([]byte, error) {
	e := encoder{b: b}
	e.b = event.AppendText(append(e.b, `{"phase":`...), s.Phase)
	e.time(`,"since":`, s.Since)
	e.time(`,"deadline":`, s.Deadline)
	e.text(`,"progress":`, string(s.Progress))
	e.time(`,"progressAt":`, s.ProgressAt)
	e.flag(`,"again":true`, s.RestartAfterOff)
	if s.PendingReset != nil {
		e.any(`,"asked":`, s.PendingReset)
	}
	e.flag(`,"wasOn":true`, s.WasOn)
	e.flag(`,"noMains":true`, s.ACCut)
	e.text(`,"lost":`, string(s.PowerLoss))
	e.duration(`,"onFor":`, s.PoweredFor)
	e.time(`,"onSince":`, s.OnSince)
	e.text(`,"cause":`, string(s.Cause))
	e.text(`,"restores":`, string(s.RestoreCause))
	if s.Reset != nil {
		e.any(`,"reset":`, s.Reset)
	}
	e.b = event.AppendText(append(e.b, `,"override":{"enabled":`...), s.Override.Enabled)
	e.b = event.AppendText(append(e.b, `,"target":`...), s.Override.Target)
	e.b = event.AppendText(append(e.b, `,"mode":`...), s.Override.Mode)
	e.text(`,"path":`, s.Override.Path)
	e.text(`,"next":`, s.Override.BootNext)
	if s.Override.LocalDrive {
		e.b = append(e.b, `,"own":true`...)
	}
	e.b = strconv.AppendUint(append(e.b, `},"boots":`...), s.Boots, 10)
	if s.Retries != 0 {
		e.b = strconv.AppendInt(append(e.b, `,"retries":`...), int64(s.Retries), 10)
	}
	e.duration(`,"bootTime":`, s.BootTime)
	if len(s.PendingSources) > 0 {
		e.any(`,"tries":`, s.PendingSources)
	}
	e.text(`,"app":`, string(s.FirmwareApp))
	if s.SuspendedImage != nil {
		e.any(`,"image":`, s.SuspendedImage)
	}
	if s.OS != nil {
		e.any(`,"os":`, s.OS)
	}
	return append(e.b, '}'), e.err
}

// encoder appends JSON properties; a name includes the separators that precede
// the value.
type encoder struct {
	b   []byte
	err error
}

// text appends a non-empty text.
func (e *encoder) text(name, text string) {
	if text != "" {
		e.b = event.AppendText(append(e.b, name...), text)
	}
}

// flag appends a property that is true.
func (e *encoder) flag(whole string, is bool) {
	if is {
		e.b = append(e.b, whole...)
	}
}

// time appends a non-zero time.
func (e *encoder) time(name string, t time.Time) {
	if t.IsZero() {
		return
	}
	var ok bool
	if e.b, ok = event.AppendTime(append(e.b, name...), t); !ok {
		e.any("", t) // json.Marshal returns the right error
	}
}

// duration appends a non-zero duration.
func (e *encoder) duration(name string, d Duration) {
	if d.Duration != 0 {
		e.b = event.AppendText(append(e.b, name...), d.String()) // "µ" needs no escape but is not ASCII
	}
}

// any appends a rare property by encoding/json.
func (e *encoder) any(name string, v any) {
	whole, err := json.Marshal(v)
	if err != nil && e.err == nil {
		e.err = err
	}
	e.b = append(append(e.b, name...), whole...)
}
