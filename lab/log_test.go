package lab

import (
	"bytes"
	"encoding/json"
	"log/slog"
	"testing"
	"testing/slogtest"
	"time"

	"github.com/metalab-dev/metalab/emulator/clock"
)

// Every record has the lab's time beside real time, outside of groups.
func TestLogRecordsHaveLabTime(t *testing.T) {
	c := clock.NewVirtual(time.Date(2031, 1, 2, 3, 4, 5, 0, time.UTC))
	var out bytes.Buffer
	log := slog.New(labTimeHandler{Handler: slog.NewJSONHandler(&out, nil), clock: c})
	for name, log := range map[string]*slog.Logger{
		"plain": log, "with attributes": log.With("host", "node-0"), "in a group": log.With("host", "node-0").WithGroup("job").With("id", 7),
	} {
		c.Advance(time.Hour)
		out.Reset()
		log.Warn("text", "key", "value")
		var got map[string]any
		if err := json.Unmarshal(out.Bytes(), &got); err != nil {
			t.Fatalf("%s: %v: %s", name, err, out.Bytes())
		}
		now, err := time.Parse(time.RFC3339, got[slog.TimeKey].(string))
		if err != nil || time.Since(now) > time.Minute || got[labTimeKey] != c.Now().Format(time.RFC3339Nano) {
			t.Errorf("%s: %s; want %s %s and the real time", name, out.Bytes(), labTimeKey, c.Now())
		}
	}
}

// The handler keeps slog's rules.
func TestLabTimeHandlerIsASlogHandler(t *testing.T) {
	var out bytes.Buffer
	h := labTimeHandler{Handler: slog.NewJSONHandler(&out, nil), clock: clock.NewVirtual(time.Date(2031, 1, 2, 3, 4, 5, 0, time.UTC))}
	err := slogtest.TestHandler(h, func() (all []map[string]any) {
		for line := range bytes.Lines(out.Bytes()) {
			var record map[string]any
			if err := json.Unmarshal(line, &record); err != nil {
				t.Fatal(err)
			}
			if record[labTimeKey] == nil {
				t.Errorf("a record without %s: %s", labTimeKey, line)
			}
			delete(record, labTimeKey)
			all = append(all, record)
		}
		return all
	})
	if err != nil {
		t.Error(err)
	}
}
