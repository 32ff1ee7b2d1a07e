package machine

import (
	"encoding/json"
	"strconv"
	"time"

	"github.com/metalab-dev/metalab/emulator/machine/event"
)

// AppendJSON appends what json.Marshal makes of the part, to the byte, in a
// fraction of the time: it is stored with most of what happens to a machine.
func (own *Main) AppendJSON(b []byte) ([]byte, error) {
	e := encoder{b: b}
	e.b = event.AppendText(append(e.b, `{"phase":`...), own.Phase)
	e.time(`,"since":`, own.Since)
	e.time(`,"deadline":`, own.Deadline)
	e.text(`,"progress":`, string(own.Progress))
	e.time(`,"progressAt":`, own.ProgressAt)
	e.flag(`,"again":true`, own.RestartAfterOff)
	if own.PendingReset != nil {
		e.any(`,"asked":`, own.PendingReset)
	}
	e.flag(`,"wasOn":true`, own.WasOn)
	e.flag(`,"noMains":true`, own.ACCut)
	e.text(`,"lost":`, string(own.PowerLoss))
	e.duration(`,"onFor":`, own.PoweredFor)
	e.time(`,"onSince":`, own.OnSince)
	e.text(`,"cause":`, string(own.Cause))
	e.text(`,"restores":`, string(own.RestoreCause))
	if own.Reset != nil {
		e.any(`,"reset":`, own.Reset)
	}
	e.b = event.AppendText(append(e.b, `,"override":{"enabled":`...), own.Override.Enabled)
	e.b = event.AppendText(append(e.b, `,"target":`...), own.Override.Target)
	e.b = event.AppendText(append(e.b, `,"mode":`...), own.Override.Mode)
	e.text(`,"path":`, own.Override.Path)
	e.text(`,"next":`, own.Override.BootNext)
	if own.Override.LocalDrive {
		e.b = append(e.b, `,"own":true`...)
	}
	e.b = strconv.AppendUint(append(e.b, `},"boots":`...), own.Boots, 10)
	if own.Retries != 0 {
		e.b = strconv.AppendInt(append(e.b, `,"retries":`...), int64(own.Retries), 10)
	}
	e.duration(`,"bootTime":`, own.BootTime)
	if len(own.PendingSources) > 0 {
		e.any(`,"tries":`, own.PendingSources)
	}
	e.text(`,"app":`, string(own.FirmwareApp))
	if own.SuspendedImage != nil {
		e.any(`,"image":`, own.SuspendedImage)
	}
	if own.OS != nil {
		e.any(`,"os":`, own.OS)
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
