package bmc

import (
	"encoding/json"
	"strconv"
	"time"

	"github.com/metalab-dev/metalab/emulator/machine/event"
)

// AppendJSON appends what json.Marshal makes of an entry, to the byte, in a
// fraction of the time: every request that can change something leaves one.
func (e *Entry) AppendJSON(b []byte) ([]byte, error) {
	if e.Record != nil || e.At.Year() < 0 || e.At.Year() > 9999 {
		whole, err := json.Marshal(e)
		return append(b, whole...), err
	}
	b = strconv.AppendUint(append(b, `{"id":`...), e.ID, 10)
	b = e.At.AppendFormat(append(b, `,"at":"`...), time.RFC3339Nano)
	b = event.AppendText(append(b, `","kind":`...), e.Kind)
	b = event.AppendText(append(b, `,"subject":{"part":`...), e.Subject.Part)
	if e.Subject.ID != "" {
		b = event.AppendText(append(b, `,"id":`...), e.Subject.ID)
	}
	if e.Subject.In != "" {
		b = event.AppendText(append(b, `,"in":`...), e.Subject.In)
	}
	b = append(b, '}')
	for i, arg := range e.Args {
		if i == 0 {
			b = append(b, `,"args":[`...)
		} else {
			b = append(b, ',')
		}
		b = event.AppendText(b, arg)
	}
	if len(e.Args) > 0 {
		b = append(b, ']')
	}
	if e.Resolved {
		b = append(b, `,"resolved":true`...)
	}
	if e.Dump != "" {
		b = event.AppendText(append(b, `,"dump":`...), e.Dump)
	}
	return append(b, '}'), nil
}

// head is a log without its entries.
type head struct{ Log }

// AppendJSON appends what json.Marshal makes of it, to the byte.
func (h *head) AppendJSON(b []byte) ([]byte, error) {
	b = strconv.AppendUint(append(b, `{"next":`...), h.Next, 10)
	b = strconv.AppendUint(append(b, `,"first":`...), h.First, 10)
	b = strconv.AppendInt(append(b, `,"size":`...), int64(h.Size), 10)
	if h.Lost != 0 {
		b = strconv.AppendUint(append(b, `,"lost":`...), h.Lost, 10)
	}
	for _, t := range []struct {
		name string
		at   time.Time
	}{{`,"added":`, h.Added}, {`,"erased":`, h.Erased}} {
		if t.at.IsZero() {
			continue
		}
		var ok bool
		if b, ok = event.AppendTime(append(b, t.name...), t.at); !ok {
			_, err := json.Marshal(t.at) // which tells what is wrong with it
			return b, err
		}
	}
	if h.Off {
		b = append(b, `,"off":true`...)
	}
	return append(b, '}'), nil
}
