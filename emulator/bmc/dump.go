package bmc

import (
	"bytes"
	"compress/gzip"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"time"

	"github.com/metalab-dev/metalab/emulator/machine/event"
)

// Dumps holds the BMC's diagnostic dumps.
type Dumps struct {
	Next uint64 `json:"next"`
	List []Dump `json:"list"`
}

// Dump is a diagnostic dump.
type Dump struct {
	ID   string `json:"id"`
	Data []byte `json:"data"` // JSON, gzip (RFC 1952)
}

// Find returns the dump with an ID.
func (d *Dumps) Find(id string) (Dump, bool) {
	if d == nil || id == "" {
		return Dump{}, false
	}
	for _, x := range d.List {
		if x.ID == id {
			return x, true
		}
	}
	return Dump{}, false
}

// maxDumps is how many dumps are stored; the oldest is dropped first.
const maxDumps = 2

// CollectDump collects a diagnostic dump. It opens a task, which TaskOpened
// reports; at its end a log entry refers to the dump.
type CollectDump struct {
	Task OpenTask
	Log  LogName
}

func (c CollectDump) apply(b *BMC, now time.Time) ([]Event, error) {
	if _, err := b.logNamed(c.Log); err != nil {
		return nil, err
	}
	return b.beginWork(now, c.Task, Work{Do: collecting, In: c.Log}, b.spec.Collect)
}

// collected ends the task of a dump.
func (b *BMC) collected(now time.Time, j Task) event.TaskDone {
	done := event.TaskDone{At: now, Task: j.ID}
	data, err := b.dump(now)
	if err != nil {
		done.Fault = err.Error()
		return done
	}
	d := &Dumps{Next: 1}
	if b.st.Dumps != nil {
		d = new(*b.st.Dumps)
	}
	dump := Dump{ID: strconv.FormatUint(d.Next, 10), Data: data}
	d.Next++
	d.List = append(slices.Clone(d.List), dump)
	d.List = d.List[max(0, len(d.List)-maxDumps):]
	b.st.Dumps = d
	ev := b.write(j.Work.In, Entry{
		Note: event.Note{At: now, Kind: event.DumpCollected, Subject: event.Subject{Part: event.BMC}, Args: []string{"Manager"}},
		Dump: dump.ID,
	})
	var id uint64
	switch ev := ev.(type) {
	case Logged:
		id = ev.Entry.ID
	case Audited:
		id = ev.Entry.ID
	}
	if id == 0 {
		done.Fault = "the log is full"
		b.dropDumps()
		return done
	}
	done.Made = &event.Subject{Part: logs[j.Work.In].part, ID: strconv.FormatUint(id, 10)}
	return done
}

// dump returns the BMC's state without secrets.
func (b *BMC) dump(now time.Time) ([]byte, error) {
	v := b.View()
	raw, err := json.MarshalIndent(map[string]any{
		"time": now, "clock": v.Clock, "access": v.Access, "sessions": v.Logins, "media": v.Media,
		"jobs": v.Tasks, "events": slices.Collect(v.Log.Entries()), "audit": slices.Collect(v.Audit.Entries()),
	}, "", " ")
	if err != nil {
		return nil, fmt.Errorf("bmc: dump: %w", err)
	}
	var out bytes.Buffer
	z := gzip.NewWriter(&out)
	if _, err := z.Write(raw); err != nil {
		return nil, fmt.Errorf("bmc: dump: %w", err)
	}
	if err := z.Close(); err != nil {
		return nil, fmt.Errorf("bmc: dump: %w", err)
	}
	return out.Bytes(), nil
}

// dropDumps deletes the dumps that no log entry refers to.
func (b *BMC) dropDumps() {
	if b.st.Dumps == nil {
		return
	}
	led := map[string]bool{}
	for _, is := range logs {
		for e := range (*is.in(&b.st)).Entries() {
			led[e.Dump] = true
		}
	}
	if slices.ContainsFunc(b.st.Dumps.List, func(d Dump) bool { return !led[d.ID] }) {
		d := *b.st.Dumps
		d.List = slices.DeleteFunc(slices.Clone(d.List), func(d Dump) bool { return !led[d.ID] })
		b.st.Dumps = &d
	}
}
