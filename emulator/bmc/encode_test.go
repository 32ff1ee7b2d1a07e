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

func TestTheHeadOfALogIsEncodedAsTheLibraryDoes(t *testing.T) {
	at := time.Date(2031, 1, 2, 3, 4, 5, 60, time.FixedZone("", 5400))
	for _, l := range []Log{{}, {Next: 3, First: 2, Size: 1, Lost: 1 << 60, Added: at, Erased: at.UTC(), Off: true, Chunks: []*Chunk{{Number: 1}}}, {Added: at}} {
		want, err := json.Marshal(new(Log{Next: l.Next, First: l.First, Size: l.Size, Lost: l.Lost, Added: l.Added, Erased: l.Erased, Off: l.Off}))
		if err != nil {
			t.Fatal(err)
		}
		if got, err := l.Head().(*head).AppendJSON(nil); err != nil || string(got) != string(want) {
			t.Errorf("AppendJSON() = %s, %v\nwant %s", got, err, want)
		}
	}
	l := Log{Added: at.AddDate(9000, 0, 0)}
	if _, err := l.Head().(*head).AppendJSON(nil); err == nil {
		t.Error("AppendJSON() takes a time that no JSON has")
	}
}
