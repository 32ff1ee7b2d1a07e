package bmc

import (
	"encoding/json"
	"testing"
	"time"

	"github.com/metalab-dev/metalab/emulator/machine/event"
)

func FuzzAnEntryIsEncodedAsTheLibraryDoes(f *testing.F) {
	f.Add(uint64(1), int64(0), "asked", "PATCH", "/redfish/v1/<&>\"\\\u2028\x7f\xff", "", true, []byte(nil))
	f.Add(uint64(1<<63), int64(1_900_000_000_123_456_789), "", "", "ü\n", "3", false, []byte{1, 2})
	f.Add(uint64(0), int64(-1<<62), "x", "a", "b", "c", false, []byte(nil))
	f.Fuzz(func(t *testing.T, id uint64, at int64, kind, arg, other, dump string, resolved bool, record []byte) {
		zone := time.UTC
		if resolved {
			zone = time.FixedZone("", 5400)
		}
		for _, args := range [][]string{nil, {}, {arg}, {arg, other, ""}} {
			e := Entry{ID: id, Note: event.Note{
				At: time.Unix(0, at).In(zone), Kind: event.Kind(kind), Subject: event.Subject{Part: event.Part(arg), ID: other, In: dump}, Args: args,
			}, Resolved: resolved, Dump: dump, Record: record}
			want, err := json.Marshal(&e)
			if err != nil {
				t.Fatal(err)
			}
			if got, err := e.AppendJSON([]byte("x")); err != nil || string(got) != "x"+string(want) {
				t.Errorf("AppendJSON() = %s, %v\nwant %s", got[1:], err, want)
			}
		}
	})
}
