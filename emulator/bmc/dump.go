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

// Dumps are what a BMC has collected of itself for people who look for faults.
type Dumps struct {
	Next uint64 `json:"next"`
	List []Dump `json:"list"`
}

// Dump is one such collection.
type Dump struct {
	ID   string `json:"id"`
	Data []byte `json:"data"` // JSON, compressed (RFC 1952)
}

// Find is the dump with an ID.
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

// maxDumps bounds how many dumps are kept; the oldest goes first.
const maxDumps = 2

// CollectDump collects what the BMC knows of itself. It is a job, which JobOpened
// tells; in its end an entry of the log leads to the dump.
type CollectDump struct {
	Task OpenTask
	Log  LogName
}

func (c CollectDump) apply(b *BMC, now time.Time) ([]Event, error) {
	if _, err := b.book(c.Log); err != nil {
		return nil, err
	}
	return b.begin(now, c.Task, Work{Do: collecting, In: c.Log}, b.spec.Collect)
}

// collected is the end of collecting.
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
	done.Made = &event.Subject{Part: books[j.Work.In].part, ID: strconv.FormatUint(id, 10)}
	return done
}

// dump is all that the BMC knows, without secrets.
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

// dropDumps drops the dumps that no entry leads to.
func (b *BMC) dropDumps() {
	if b.st.Dumps == nil {
		return
	}
	led := map[string]bool{}
	for _, is := range books {
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
