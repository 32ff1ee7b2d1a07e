package report_test

import (
	"bytes"
	"encoding/json"
	"encoding/xml"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/santhosh-tekuri/jsonschema/v6"

	"github.com/metalab-dev/metalab/emulator/rack"
	"github.com/metalab-dev/metalab/emulator/rack/rackfile"
	"github.com/metalab-dev/metalab/emulator/rack/racktest"
	"github.com/metalab-dev/metalab/scenarios/conformance"
	"github.com/metalab-dev/metalab/scenarios/conformance/report"
)

const password = `pa"ss-word-12`

// checked runs the read-only checks on an emulated BMC.
func checked(t *testing.T) (report.Run, *racktest.Rack) {
	t.Helper()
	r := rackfile.Default(1)
	r.Accounts = []rackfile.Account{{Name: "admin", Password: password, Role: "Administrator"}}
	l := racktest.Start(t, rack.Config{Rack: &r})
	h := l.First()
	b, err := conformance.Open(conformance.Config{URL: h.URL(), Username: "admin", Password: password, CAs: l.CAs(), Rate: 1e6})
	if err != nil {
		t.Fatal(err)
	}
	began := time.Now()
	results := b.Execute(t.Context(), conformance.Checks())
	i, err := b.Identify(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return report.Run{
		Tool: "test", Name: "node-0", URL: h.URL(), Identity: i, Level: conformance.ReadOnly, Began: began, Took: time.Since(began),
		Profiles: conformance.Profiles, Results: results, Exchanges: b.Exchanges(),
	}, l
}

// No file of a report holds the password, a token, or what identifies the server.
func TestReportsHoldNoSecret(t *testing.T) {
	run, l := checked(t)
	var needles []string
	for _, x := range run.Exchanges {
		for _, name := range []string{"SerialNumber", "UUID", "MACAddress"} {
			var page map[string]any
			if json.Unmarshal(x.Body, &page) == nil {
				if s, _ := page[name].(string); s != "" {
					needles = append(needles, s)
				}
			}
		}
		if x.RequestHeader.Get("Authorization") != "" && x.RequestHeader.Get("Authorization") != "REDACTED" {
			t.Errorf("exchange %d holds the header Authorization: %q", x.ID, x.RequestHeader.Get("Authorization"))
		}
	}
	if len(needles) < 3 {
		t.Fatalf("the run has read %v of what identifies the server", needles)
	}
	quoted, _ := json.Marshal(password)
	needles = append(needles, password, strings.Trim(string(quoted), `"`), "pa&#34;ss", l.First().Address().Addr().String())
	dir := t.TempDir()
	d, evidence := report.New(run)
	names, err := report.Files(dir, d, evidence, "")
	if err != nil {
		t.Fatal(err)
	}
	if len(names) != 7 {
		t.Errorf("Files wrote %v, want 7 files", names)
	}
	for _, name := range names {
		b, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		for _, n := range needles {
			if bytes.Contains(b, []byte(n)) {
				t.Errorf("%s holds %q", filepath.Base(name), n)
			}
		}
	}
}

func TestReportIsValidByItsSchema(t *testing.T) {
	run, _ := checked(t)
	run.Results[0].Outcome = conformance.Failed("broken").Quirky("power-settle-409").With("a fact", "%d", 7)
	run.Unrestored = []string{"BOOT-002: PATCH /redfish/v1/Systems/1"}
	d, _ := report.New(run)
	var b bytes.Buffer
	if err := report.JSON(&b, d); err != nil {
		t.Fatal(err)
	}
	if err := validate(t, b.Bytes()); err != nil {
		t.Error(err)
	}
	broken := bytes.Replace(b.Bytes(), []byte(`"verdict": "fail"`), []byte(`"verdict": "bad"`), 1)
	if validate(t, broken) == nil {
		t.Error("the schema accepts the verdict bad")
	}
}

func validate(t *testing.T, b []byte) error {
	t.Helper()
	schema, err := jsonschema.UnmarshalJSON(bytes.NewReader(report.Schema))
	if err != nil {
		t.Fatal(err)
	}
	c := jsonschema.NewCompiler()
	if err := c.AddResource("report", schema); err != nil {
		t.Fatal(err)
	}
	s, err := c.Compile("report")
	if err != nil {
		t.Fatal(err)
	}
	v, err := jsonschema.UnmarshalJSON(bytes.NewReader(b))
	if err != nil {
		t.Fatal(err)
	}
	return s.Validate(v)
}

// document has one check of each verdict.
func document() *report.Document {
	check := func(id string, v conformance.Verdict, reason string) report.Check {
		return report.Check{ID: id, Title: "title of " + id, Verdict: v, Reason: reason, Step: conformance.Boot, Predicts: "boot <fails>", Remedy: "fix it", Evidence: []int{}}
	}
	return &report.Document{
		Schema: report.Version, Target: report.Target{Title: "Acme X1, BMC 1.0"}, Summary: map[string]int{"pass": 1, "fail": 1, "warn": 1, "skip": 1, "error": 1},
		Quirks: []conformance.Quirk{{Name: "power-settle-409", Values: map[string]string{"for": "30s"}}, {Name: "vmedia-patch-only"}},
		Checks: []report.Check{
			check("PWR-001", conformance.Pass, ""), check("VM-001", conformance.Fail, "no <slot>\x00"), check("PWR-003", conformance.Warn, "slow"),
			check("VM-002", conformance.Skip, "after VM-001 (fail)"), check("VM-003", conformance.Broken, "no route"),
		},
	}
}

func TestJUnitHasASuiteForEachGroup(t *testing.T) {
	var b bytes.Buffer
	if err := report.JUnit(&b, document()); err != nil {
		t.Fatal(err)
	}
	var got struct {
		Suites []struct {
			Name     string `xml:"name,attr"`
			Tests    int    `xml:"tests,attr"`
			Failures int    `xml:"failures,attr"`
			Errors   int    `xml:"errors,attr"`
			Skipped  int    `xml:"skipped,attr"`
			Cases    []struct {
				Class   string `xml:"classname,attr"`
				Skipped *struct {
					Message string `xml:"message,attr"`
				} `xml:"skipped"`
			} `xml:"testcase"`
		} `xml:"testsuite"`
	}
	if err := xml.Unmarshal(b.Bytes(), &got); err != nil {
		t.Fatal(err)
	}
	if len(got.Suites) != 2 || got.Suites[1].Name != "VM" || got.Suites[1].Tests != 3 || got.Suites[1].Failures != 1 || got.Suites[1].Errors != 1 || got.Suites[1].Skipped != 1 {
		t.Fatalf("JUnit has the suites %+v", got.Suites)
	}
	if c := got.Suites[1].Cases[1]; c.Class != "VM-002" || c.Skipped == nil || c.Skipped.Message != "after VM-001 (fail)" {
		t.Errorf("VM-002 is %+v", c)
	}
}

func TestHTMLEscapesWhatTheBMCSends(t *testing.T) {
	d := document()
	d.Target.Title = `<script>alert(1)</script>`
	var b bytes.Buffer
	if err := report.HTML(&b, d, nil); err != nil {
		t.Fatal(err)
	}
	for _, bad := range []string{"<script>", "no <slot>", "http://", "https://"} {
		if strings.Contains(b.String(), bad) {
			t.Errorf("the page holds %q", bad)
		}
	}
}

func TestQuirksAreARackFile(t *testing.T) {
	var b bytes.Buffer
	if err := report.Quirks(&b, document(), ""); err != nil {
		t.Fatal(err)
	}
	r, err := rackfile.Parse("quirks.yaml", b.Bytes())
	if err != nil {
		t.Fatalf("%v in\n%s", err, b.String())
	}
	if diff := cmp.Diff([]string{"power-settle-409 for=30s", "vmedia-patch-only"}, r.Hosts[0].Quirks); diff != "" {
		t.Errorf("quirks (-want +got):\n%s", diff)
	}
}

func TestDiffNamesIntroducedFixedAndUnchanged(t *testing.T) {
	from, to := document(), document()
	to.Checks[0].Verdict = conformance.Fail // PWR-001
	to.Checks[2].Verdict = conformance.Pass // PWR-003
	to.Checks[4].Verdict = conformance.Pass // VM-003 could not be made before
	to.Quirks = to.Quirks[:1]
	d := report.Diff(from, to)
	ids := func(all []report.Change) (out []string) {
		for _, c := range all {
			out = append(out, c.ID)
		}
		return out
	}
	got := map[string][]string{"introduced": ids(d.Introduced), "fixed": ids(d.Fixed), "unchanged": ids(d.Unchanged), "incomplete": d.Incomplete, "quirks": d.Quirks.Fixed}
	want := map[string][]string{"introduced": {"PWR-001"}, "fixed": {"PWR-003"}, "unchanged": {"VM-001"}, "incomplete": {"VM-003"}, "quirks": {"vmedia-patch-only"}}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("Diff (-want +got):\n%s", diff)
	}
}

// What report.json and evidence.har hold makes the same reports again.
func TestReportsAreMadeAgain(t *testing.T) {
	run, _ := checked(t)
	d, evidence := report.New(run)
	dir := t.TempDir()
	if _, err := report.Files(dir, d, evidence, ""); err != nil {
		t.Fatal(err)
	}
	read := func() map[string]string {
		all := map[string]string{}
		for _, name := range []string{"report.json", "report.html", "report.md", "junit.xml", "ocp.jsonl"} {
			b, err := os.ReadFile(filepath.Join(dir, name))
			if err != nil {
				t.Fatal(err)
			}
			all[name] = string(b)
		}
		return all
	}
	before := read()
	again, err := report.Load(filepath.Join(dir, report.JSONFile))
	if err != nil {
		t.Fatal(err)
	}
	if evidence, err = report.LoadHAR(filepath.Join(dir, report.HARFile)); err != nil {
		t.Fatal(err)
	}
	if _, err := report.Files(dir, again, evidence, ""); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(before, read()); diff != "" {
		t.Errorf("the second reports differ (-first +second):\n%s", diff)
	}
}
