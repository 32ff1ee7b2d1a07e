package conformance_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/metalab-dev/metalab/emulator/rack"
	"github.com/metalab-dev/metalab/emulator/rack/journal"
	"github.com/metalab-dev/metalab/emulator/rack/racktest"
	"github.com/metalab-dev/metalab/scenarios/conformance"
)

const systemURI = "/redfish/v1/Systems/1"

// read returns a resource of the first host, by a client of the test's own.
func read(t *testing.T, l *racktest.Rack, uri string) map[string]any {
	t.Helper()
	h := l.First()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, h.URL()+uri, nil)
	if err != nil {
		t.Fatal(err)
	}
	req.SetBasicAuth(l.Credentials(h))
	resp, err := l.Client.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	if err != nil || resp.StatusCode != http.StatusOK {
		t.Fatalf("GET %s: %d %s, %v", uri, resp.StatusCode, body, err)
	}
	var page map[string]any
	if err := json.Unmarshal(body, &page); err != nil {
		t.Fatalf("GET %s: %v", uri, err)
	}
	return page
}

// everything reads all resources below the service root, but log entries.
func everything(t *testing.T, l *racktest.Rack) map[string]any {
	t.Helper()
	all := map[string]any{}
	var walk func(v any)
	visit := func(uri string) {
		uri, _, _ = strings.Cut(uri, "#")
		if uri = strings.TrimSuffix(uri, "/"); all[uri] != nil || !strings.HasPrefix(uri, "/redfish/v1") || strings.Contains(uri, "/Entries") || strings.Contains(uri, "/JsonSchemas") || strings.Contains(uri, "/Registries") {
			return
		}
		page := read(t, l, uri)
		all[uri] = page
		walk(page)
	}
	walk = func(v any) {
		switch x := v.(type) {
		case map[string]any:
			if uri, ok := x["@odata.id"].(string); ok {
				visit(uri)
			}
			for _, y := range x {
				walk(y)
			}
		case []any:
			for _, y := range x {
				walk(y)
			}
		}
	}
	visit("/redfish/v1")
	return all
}

// A read-only run leaves each resource as it was, and writes nothing but the
// sessions that it opens and closes.
func TestReadOnlyRunChangesNothing(t *testing.T) {
	l := racktest.Start(t, rack.Config{})
	before := everything(t, l)
	if len(before) < 60 {
		t.Fatalf("%d resources were read", len(before))
	}
	mark := len(entries(t, l))
	execute(t, target(l))
	written := entries(t, l)[mark:]
	if len(written) < 100 {
		t.Fatalf("the journal has %d requests of the run", len(written))
	}
	for _, e := range written {
		switch {
		case e.Method == "" || e.Method == http.MethodGet || e.Method == http.MethodHead || e.Method == http.MethodOptions:
		case e.Method == http.MethodPost && strings.HasSuffix(strings.TrimSuffix(e.Path, "/"), "/Sessions"):
		case e.Method == http.MethodDelete && strings.Contains(e.Path, "/Sessions/"):
		default:
			t.Errorf("the run sent %s %s", e.Method, e.Path)
		}
	}
	if diff := cmp.Diff(before, everything(t, l)); diff != "" {
		t.Errorf("resources differ (-before +after):\n%s", diff)
	}
}

func entries(t *testing.T, l *racktest.Rack) []journal.Entry {
	t.Helper()
	all, _, err := l.Journal().Select(journal.Query{})
	if err != nil {
		t.Fatal(err)
	}
	return all
}

// A dry run at the highest level prints writes and sends none.
func TestDryRunSendsNoWrite(t *testing.T) {
	l := racktest.Start(t, rack.Config{})
	var out bytes.Buffer
	conf := target(l)
	conf.Level, conf.DryRun = conformance.Destructive, &out
	for id, r := range must(execute(t, conf)) {
		if r.Verdict != conformance.Skip {
			t.Errorf("%s: %s %q, want skip", id, r.Verdict, r.Reason)
		}
	}
	for _, e := range entries(t, l) {
		if e.Method != "" && e.Method != http.MethodGet && e.Method != http.MethodHead && e.Method != http.MethodOptions {
			t.Errorf("the dry run sent %s %s", e.Method, e.Path)
		}
	}
	for _, want := range []string{"PATCH " + systemURI + ` {"Boot":`, "POST " + systemURI + "/Actions/ComputerSystem.Reset"} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("the dry run does not print %s:\n%s", want, out.String())
		}
	}
	if password := conf.Password; strings.Contains(out.String(), password) {
		t.Error("the dry run prints the password")
	}
}

func must(all map[string]conformance.Result, _ *conformance.BMC) map[string]conformance.Result {
	return all
}

// tag writes the asset tag as a check does.
func tag(ctx context.Context, r *conformance.Run, text, undo string) error {
	_, err := r.Change(ctx, conformance.Change{
		Request: conformance.Request{Method: http.MethodPatch, URI: systemURI, Body: map[string]string{"AssetTag": text}},
		Undo:    []conformance.Undo{{Method: http.MethodPatch, URI: systemURI, Body: json.RawMessage(fmt.Sprintf(`{"AssetTag":%q}`, undo)), Match: true}},
	})
	return err
}

// writer is a check that writes the asset tag and then calls the test's function.
func writer(level conformance.Level, then func(context.Context, *conformance.Run)) conformance.Check {
	return conformance.Check{ID: "TAG-001", Level: level, Run: func(ctx context.Context, r *conformance.Run) conformance.Outcome {
		if err := tag(ctx, r, "changed", ""); err != nil {
			return conformance.Judge(err)
		}
		if then != nil {
			then(ctx, r)
		}
		return conformance.Judge(ctx.Err())
	}}
}

func withJournal(t *testing.T, conf conformance.Config, path string) conformance.Config {
	t.Helper()
	j, err := conformance.OpenJournal(path)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { j.Close() })
	conf.Journal = j
	return conf
}

func open(t *testing.T, conf conformance.Config) *conformance.BMC {
	t.Helper()
	b, err := conformance.Open(conf)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// A check's writes are taken back at its end, at a panic and at Ctrl-C.
func TestWritesAreTakenBack(t *testing.T) {
	l := racktest.Start(t, rack.Config{})
	for name, then := range map[string]func(context.CancelFunc) func(context.Context, *conformance.Run){
		"at the end": func(context.CancelFunc) func(context.Context, *conformance.Run) { return nil },
		"at a panic": func(context.CancelFunc) func(context.Context, *conformance.Run) {
			return func(context.Context, *conformance.Run) { panic("injected") }
		},
		"at Ctrl-C": func(stop context.CancelFunc) func(context.Context, *conformance.Run) {
			return func(context.Context, *conformance.Run) { stop() }
		},
	} {
		ctx, stop := context.WithCancel(t.Context())
		seen := ""
		conf := withJournal(t, target(l), filepath.Join(t.TempDir(), "restore.jsonl"))
		conf.Level = conformance.Reversible
		after := then(stop)
		open(t, conf).Execute(ctx, []conformance.Check{writer(conformance.Reversible, func(ctx context.Context, r *conformance.Run) {
			seen, _ = read(t, l, systemURI)["AssetTag"].(string)
			if after != nil {
				after(ctx, r)
			}
		})})
		stop()
		if seen != "changed" {
			t.Errorf("%s: the asset tag was %q meanwhile, want changed", name, seen)
		}
		if got, _ := read(t, l, systemURI)["AssetTag"].(string); got != "" {
			t.Errorf("%s: the asset tag is %q, want none", name, got)
		}
		if left := conf.Journal.Open(); len(left) != 0 {
			t.Errorf("%s: the journal has open writes: %v", name, left)
		}
	}
}

// The journal that a killed run leaves is enough to take its writes back.
func TestRestoreAfterACrash(t *testing.T) {
	l := racktest.Start(t, rack.Config{})
	dir := t.TempDir()
	live, crashed := filepath.Join(dir, "restore.jsonl"), filepath.Join(dir, "crashed.jsonl")
	conf := withJournal(t, target(l), live)
	conf.Level = conformance.Reversible
	open(t, conf).Execute(t.Context(), []conformance.Check{writer(conformance.Reversible, func(context.Context, *conformance.Run) {
		b, err := os.ReadFile(live) // as it is when the process is killed here
		if err == nil {
			err = os.WriteFile(crashed, append(b, `{"write": 9, "ti`...), 0o600) // in the middle of a line
		}
		if err != nil {
			t.Error(err)
		}
	})})
	again := withJournal(t, target(l), filepath.Join(dir, "again.jsonl"))
	again.Level = conformance.Reversible
	setup := open(t, again)
	setup.Execute(t.Context(), []conformance.Check{{ID: "TAG-002", Level: conformance.Reversible, Run: func(ctx context.Context, r *conformance.Run) conformance.Outcome {
		_, err := r.Change(ctx, conformance.Change{Request: conformance.Request{Method: http.MethodPatch, URI: systemURI, Body: map[string]string{"AssetTag": "changed"}}})
		return conformance.Judge(err)
	}}})
	if got, _ := read(t, l, systemURI)["AssetTag"].(string); got != "changed" {
		t.Fatalf("the asset tag is %q before the restore, want changed", got)
	}
	restore := withJournal(t, target(l), crashed)
	restore.Level = conformance.Reversible
	if n := len(restore.Journal.Open()); n != 1 {
		t.Fatalf("the journal of the crash has %d open writes, want 1", n)
	}
	if err := open(t, restore).RestoreAll(t.Context()); err != nil {
		t.Fatal(err)
	}
	if got, _ := read(t, l, systemURI)["AssetTag"].(string); got != "" {
		t.Errorf("the asset tag is %q after the restore, want none", got)
	}
	if n := len(restore.Journal.Open()); n != 0 {
		t.Errorf("the journal has %d open writes after the restore", n)
	}
}

// server answers as a BMC with one system, and counts its writes.
func server(t *testing.T, onWrite func(*http.Request)) (url string, writes func() int) {
	t.Helper()
	var mu sync.Mutex
	n := 0
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		switch {
		case r.Method == http.MethodPost && strings.HasSuffix(r.URL.Path, "/Sessions"):
			w.WriteHeader(http.StatusMethodNotAllowed)
		case r.Method != http.MethodGet:
			mu.Lock()
			n++
			mu.Unlock()
			if onWrite != nil {
				onWrite(r)
			}
			w.WriteHeader(http.StatusNoContent)
		case r.URL.Path == systemURI:
			fmt.Fprint(w, `{"Id": "1", "SerialNumber": "CN123", "SKU": "TAG7"}`)
		default:
			fmt.Fprintf(w, `{"Systems": {"@odata.id": "/redfish/v1/Systems"}, "Members": [{"@odata.id": %q}]}`, systemURI)
		}
	}))
	t.Cleanup(s.Close)
	return s.URL, func() int { mu.Lock(); defer mu.Unlock(); return n }
}

// A write is in the journal, on disk, before the BMC sees it.
func TestWriteIsJournaledBeforeItIsSent(t *testing.T) {
	path := filepath.Join(t.TempDir(), "restore.jsonl")
	var seen []string
	url, writes := server(t, func(*http.Request) {
		b, err := os.ReadFile(path)
		if err != nil {
			t.Error(err)
		}
		seen = append(seen, string(b))
	})
	conf := withJournal(t, conformance.Config{URL: url, Level: conformance.Reversible}, path)
	open(t, conf).Execute(t.Context(), []conformance.Check{writer(conformance.Reversible, nil)})
	if writes() != 2 || !strings.Contains(seen[0], `"uri":"`+systemURI+`"`) || !strings.Contains(seen[0], `"undo":[`) {
		t.Errorf("%d writes, the journal at the first was %q", writes(), seen)
	}
}

// Nothing is written above the level of the run, nor to a server with another serial
// number.
func TestWritesThatAreRefused(t *testing.T) {
	for name, tt := range map[string]struct {
		level  conformance.Level
		serial string
		check  conformance.Level
		writes int
		reason string
	}{
		"a read-only run":                 {conformance.ReadOnly, "", conformance.ReadOnly, 0, "does not allow this write"},
		"a check of a higher level":       {conformance.Reversible, "", conformance.Disruptive, 0, "needs --level disruptive"},
		"another server":                  {conformance.Disruptive, "OTHER", conformance.Disruptive, 0, `does not have the serial number "OTHER"`},
		"the right server":                {conformance.Disruptive, "CN123", conformance.Disruptive, 1, ""},
		"the right server by service tag": {conformance.Disruptive, "TAG7", conformance.Disruptive, 1, ""},
	} {
		url, writes := server(t, nil)
		conf := withJournal(t, conformance.Config{URL: url, Level: tt.level, Serial: tt.serial}, filepath.Join(t.TempDir(), "restore.jsonl"))
		got := open(t, conf).Execute(t.Context(), []conformance.Check{{ID: "TAG-003", Level: tt.check, Run: func(ctx context.Context, r *conformance.Run) conformance.Outcome {
			level := tt.check
			if level == conformance.ReadOnly {
				level = conformance.Reversible
			}
			_, err := r.Change(ctx, conformance.Change{Level: level, Request: conformance.Request{Method: http.MethodPost, URI: systemURI + "/Actions/ComputerSystem.Reset"}})
			return conformance.Judge(err)
		}}})
		if writes() != tt.writes || !strings.Contains(got[0].Reason, tt.reason) {
			t.Errorf("%s: %d writes, %s %q; want %d writes and %q", name, writes(), got[0].Verdict, got[0].Reason, tt.writes, tt.reason)
		}
	}
	refusal := new(conformance.Refusal)
	for name, conf := range map[string]conformance.Config{
		"no serial number":  {URL: "https://192.0.2.1", Level: conformance.Disruptive},
		"data not given up": {URL: "https://192.0.2.1", Level: conformance.Destructive, Serial: "CN123"},
	} {
		if _, err := conformance.Open(conf); !errors.As(err, &refusal) {
			t.Errorf("%s: Open error = %v, want a refusal", name, err)
		}
	}
}

func TestOneRunPerBMC(t *testing.T) {
	dir := t.TempDir()
	release, err := conformance.Lock(dir, "[fd00::1]:443")
	if err != nil {
		t.Fatal(err)
	}
	refusal := new(conformance.Refusal)
	if _, err := conformance.Lock(dir, "[fd00::1]:443"); !errors.As(err, &refusal) {
		t.Errorf("the second Lock error = %v, want a refusal", err)
	}
	other, err := conformance.Lock(dir, "[fd00::2]:443")
	if err != nil {
		t.Errorf("Lock of another BMC: %v", err)
	} else {
		other()
	}
	release()
	again, err := conformance.Lock(dir, "[fd00::1]:443")
	if err != nil {
		t.Fatalf("Lock after release: %v", err)
	}
	again()
}
