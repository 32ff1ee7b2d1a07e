package journal

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/metalab-dev/metalab/emulator/fault"
)

var t0 = time.Date(2031, 1, 2, 3, 4, 5, 0, time.UTC)

func at(s int) time.Time { return t0.Add(time.Duration(s) * time.Second) }

func get(s int, host, path string, status int) Entry {
	return Entry{At: at(s), Host: host, Kind: Request, Method: "GET", Path: path, Status: status, User: "admin"}
}

// paths identifies entries by their paths or kinds.
func paths(t *testing.T, j *Journal, q Query) (out []string) {
	t.Helper()
	all, _, err := j.Select(q)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range all {
		out = append(out, e.Host+e.Path+e.What)
	}
	return out
}

func TestEntriesOfOneTimeAreSortedByHost(t *testing.T) {
	j, k := New(Config{}), New(Config{})
	entries := []Entry{get(1, "b", "/1", 200), get(1, "b", "/2", 200), get(1, "a", "/3", 200), get(2, "b", "/4", 200), get(2, "a", "/5", 200)}
	for _, i := range []int{0, 1, 2, 3, 4} {
		j.Add(entries[i])
	}
	for _, i := range []int{2, 0, 1, 4, 3} {
		k.Add(entries[i])
	}
	want := []string{"a/3", "b/1", "b/2", "a/5", "b/4"}
	for _, j := range []*Journal{j, k} {
		if d := cmp.Diff(want, paths(t, j, Query{})); d != "" {
			t.Errorf("Select() (-want +got):\n%s", d)
		}
	}
}

func TestJournalIsBounded(t *testing.T) {
	j := New(Config{Entries: 10})
	for i := range 100 {
		j.Add(get(i/7, "a", fmt.Sprint("/", i), 200))
	}
	got := paths(t, j, Query{})
	if len(got) < 10 || len(got) > 17 || got[len(got)-1] != "a/99" || got[0] != fmt.Sprint("a/", 100-len(got)) {
		t.Errorf("entries = %v", got)
	}
	if n := j.Dropped(); int(n) != 100-len(got) {
		t.Errorf("Dropped() = %d of 100, and %d are there", n, len(got))
	}
	for range 1000 { // all with the same time
		j.Add(get(99, "a", "/x", 200))
	}
	if got := paths(t, j, Query{}); len(got) > 20 {
		t.Errorf("%d entries, want at most 20", len(got))
	}
	const room = 200_000
	b := New(Config{Bytes: room})
	for i := range 20_000 {
		b.Add(get(i, "a", "/"+strings.Repeat("x", i%200), 200))
		if b.bytes > room {
			t.Fatalf("after %d entries it holds %d bytes, want at most %d", i, b.bytes, room)
		}
	}
	if got := paths(t, b, Query{}); len(got) < 500 || got[len(got)-1] != "a/"+strings.Repeat("x", 19_999%200) {
		t.Errorf("%d entries in %d bytes", len(got), room)
	}
}

func TestDroppedEntriesDoNotDependOnArrivalOrder(t *testing.T) {
	var dumps [2]string
	for run := range dumps {
		j := New(Config{Entries: 5})
		for i := range 9 {
			hosts := []string{"a", "b"}
			for h := range hosts {
				j.Add(get(i, hosts[(h+run)%2], "/", 200))
			}
		}
		all, _, err := j.Select(Query{})
		if err != nil {
			t.Fatal(err)
		}
		b, err := Lines(all)
		if err != nil {
			t.Fatal(err)
		}
		dumps[run] = string(b)
	}
	if d := cmp.Diff(dumps[0], dumps[1]); d != "" {
		t.Errorf("(-one +other):\n%s", d)
	}
}

func TestLongTextsAreTruncated(t *testing.T) {
	j := New(Config{})
	j.Add(get(1, "a", "/"+strings.Repeat("ä", 5000), 404))
	all, _, _ := j.Select(Query{})
	if n := len(all[0].Path); n > maxText+3 || !strings.HasSuffix(all[0].Path, "ä…") {
		t.Errorf("path of %d bytes, ends with %q", n, all[0].Path[n-8:])
	}
}

func TestSelect(t *testing.T) {
	j := New(Config{})
	j.Add(get(1, "node-0", "/redfish/v1", 200))
	j.Add(Entry{At: at(1), Host: "node-0", Kind: Request, Method: "POST", Path: "/redfish/v1/Systems/1/Actions/ComputerSystem.Reset", Status: 204, User: "op"})
	j.Add(Entry{At: at(2), Host: "node-0", Kind: Event, What: "power.on"})
	j.Add(get(3, "node-1", "/redfish/v1/Systems/1", 503))
	j.Add(get(4, "node-1", "/redfish/v1/Systems/1", 0))
	j.Add(Entry{At: at(5), Kind: Control, What: "fault.add"})
	reset := "node-0/redfish/v1/Systems/1/Actions/ComputerSystem.Reset"
	tests := []struct {
		name string
		q    Query
		want []string
	}{
		{"all", Query{}, []string{"node-0/redfish/v1", reset, "node-0power.on", "node-1/redfish/v1/Systems/1", "node-1/redfish/v1/Systems/1", "fault.add"}},
		{"host", Query{Host: "*-0"}, []string{"node-0/redfish/v1", reset, "node-0power.on"}},
		{"method", Query{Method: "POST"}, []string{reset}},
		{"path", Query{Path: "/redfish/v1/Systems/**"}, []string{reset, "node-1/redfish/v1/Systems/1", "node-1/redfish/v1/Systems/1"}},
		{"status", Query{Status: "204"}, []string{reset}},
		{"class", Query{Status: "2xx"}, []string{"node-0/redfish/v1", reset}},
		{"no answer", Query{Status: "none"}, []string{"node-1/redfish/v1/Systems/1"}},
		{"user", Query{User: "op"}, []string{reset}},
		{"kind", Query{Kind: Event}, []string{"node-0power.on"}},
		{"what", Query{What: "power.*"}, []string{"node-0power.on"}},
		{"since", Query{Since: at(4)}, []string{"node-1/redfish/v1/Systems/1", "fault.add"}},
		{"last", Query{Last: 1}, []string{"fault.add"}},
		{"after", Query{After: 5}, []string{"fault.add"}},
		{"nothing", Query{Host: "x"}, nil},
	}
	for _, tt := range tests {
		if d := cmp.Diff(tt.want, paths(t, j, tt.q)); d != "" {
			t.Errorf("%s (-want +got):\n%s", tt.name, d)
		}
	}
	for _, q := range []Query{{Host: "["}, {What: "["}, {Kind: "x"}, {Status: "many"}, {Status: "6xx"}, {Status: "99"}, {Path: "x"}, {Last: -1}} {
		if _, _, err := j.Select(q); !errors.As(err, new(*FieldError)) {
			t.Errorf("Select(%+v) = %v, want an error", q, err)
		}
	}
}

func TestWaitReturnsWhenAnEntryIsAdded(t *testing.T) {
	j := New(Config{})
	j.Add(get(1, "a", "/1", 200))
	_, mark, err := j.Select(Query{})
	if err != nil {
		t.Fatal(err)
	}
	gone, cancel := context.WithCancel(t.Context())
	cancel()
	if err := j.Wait(gone, mark); !errors.Is(err, context.Canceled) {
		t.Errorf("Wait() = %v", err)
	}
	heard := make(chan error)
	for range 2 {
		go func() { heard <- j.Wait(t.Context(), mark) }()
	}
	j.Add(get(1, "a", "/2", 200))
	for range 2 {
		if err := <-heard; err != nil {
			t.Error(err)
		}
	}
	if d := cmp.Diff([]string{"a/2"}, paths(t, j, Query{After: mark})); d != "" {
		t.Errorf("after the mark (-want +got):\n%s", d)
	}
}

// Packing and unpacking keeps every field of an entry.
func TestPackedEntriesUnpackUnchanged(t *testing.T) {
	full := Entry{
		At: time.Date(1969, 12, 31, 23, 0, 0, 5, time.UTC), Real: time.Date(2024, 1, 2, 3, 4, 5, 6, time.UTC), Host: "a", Kind: Request, From: "::1", Method: "GET", Path: "/ä", Status: 200,
		User: "u", Session: "s", Took: fault.Duration{Duration: time.Hour}, In: 1 << 40, Out: 7, Faults: []string{"f", ""}, What: "w", Text: "t",
	}
	v := reflect.ValueOf(full)
	for i := range v.NumField() {
		if v.Field(i).IsZero() {
			t.Errorf("the test leaves out %s", v.Type().Field(i).Name)
		}
	}
	j := New(Config{})
	j.Add(full)
	j.Add(get(9, "b", "/", 200)) // archives the first
	got, _, err := j.Select(Query{})
	if err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff([]Entry{full, get(9, "b", "/", 200)}, got); d != "" {
		t.Errorf("(-want +got):\n%s", d)
	}
}

func TestLines(t *testing.T) {
	e := get(1, "a", "/x", 200)
	e.Took, e.Out, e.Faults = fault.Duration{Duration: 1500 * time.Millisecond}, 12, []string{"slow"}
	got, err := Lines([]Entry{e, {At: at(2), Host: "a", Kind: Event, What: "power.on", Text: "The system was switched on."}})
	want := `{"time":"2031-01-02T03:04:06Z","host":"a","kind":"request","method":"GET","path":"/x","status":200,"user":"admin","took":"1.5s","out":12,"faults":["slow"]}
{"time":"2031-01-02T03:04:07Z","host":"a","kind":"event","what":"power.on","text":"The system was switched on."}
`
	if d := cmp.Diff(want, string(got)); d != "" || err != nil {
		t.Errorf("Lines() (-want +got):\n%s%v", d, err)
	}
}

// On a clock with now time, each entry has it beside the lab's time.
func TestEntriesHaveRealTime(t *testing.T) {
	now := time.Date(2024, 5, 6, 7, 8, 9, 0, time.UTC)
	for _, has := range []bool{true, false} {
		j := New(Config{Real: func() (time.Time, bool) { return now.Local(), has }})
		j.Add(get(1, "a", "/x", 200))
		got, _, err := j.Select(Query{})
		if err != nil {
			t.Fatal(err)
		}
		want := get(1, "a", "/x", 200)
		text := `{"time":"2031-01-02T03:04:06Z",`
		if has {
			want.Real = now
			text += `"realTime":"2024-05-06T07:08:09Z",`
		}
		if d := cmp.Diff([]Entry{want}, got); d != "" {
			t.Errorf("now time %t: Select() (-want +got):\n%s", has, d)
		}
		if lines, err := Lines(got); err != nil || !strings.HasPrefix(string(lines), text+`"host":"a"`) {
			t.Errorf("now time %t: Lines() = %s, %v, want %s…", has, lines, err, text)
		}
	}
}

func BenchmarkAdd(b *testing.B) {
	j := New(Config{})
	e := get(1, "node-1", "/redfish/v1/Systems/1", 200)
	b.ReportAllocs()
	for b.Loop() {
		e.At = e.At.Add(time.Microsecond)
		j.Add(e)
	}
}
