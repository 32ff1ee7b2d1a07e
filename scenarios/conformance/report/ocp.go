package report

import (
	"encoding/json"
	"fmt"
	"io"
	"time"

	"github.com/metalab-dev/metalab/scenarios/conformance"
)

// artifact is one line of OCP's Test and Validation output, version 2.0: one of its
// three parts is set.
type artifact struct {
	Schema   *ocpVersion    `json:"schemaVersion,omitempty"`
	Run      map[string]any `json:"testRunArtifact,omitempty"`
	Step     map[string]any `json:"testStepArtifact,omitempty"`
	Sequence int            `json:"sequenceNumber"`
	Time     time.Time      `json:"timestamp"`
}

type ocpVersion struct {
	Major int `json:"major"`
	Minor int `json:"minor"`
}

// ocpStatus maps verdicts to the status of a step.
var ocpStatus = map[conformance.Verdict]string{
	conformance.Pass: "COMPLETE", conformance.Fail: "COMPLETE", conformance.Warn: "COMPLETE", conformance.Skip: "SKIP", conformance.Broken: "ERROR",
}

// ocpType maps verdicts to the type of a diagnosis.
var ocpType = map[conformance.Verdict]string{conformance.Pass: "PASS", conformance.Fail: "FAIL", conformance.Warn: "UNKNOWN"}

// OCP writes the report as JSON lines of OCP's Test and Validation output: each
// check is a step with a diagnosis.
func OCP(w io.Writer, d *Document) error {
	sequence, at := 0, d.Began
	enc := json.NewEncoder(w)
	put := func(a artifact) error {
		a.Sequence, a.Time = sequence, at.UTC()
		sequence++
		if err := enc.Encode(a); err != nil {
			return fmt.Errorf("ocp: %w", err)
		}
		return nil
	}
	i := d.Target.Identity
	start := map[string]any{
		"name": "labctl conformance", "version": d.Tool, "commandLine": "labctl conformance run --level " + string(d.Level), "parameters": map[string]any{"level": d.Level},
		"dutInfo": map[string]any{
			"dutInfoId": "server", "name": d.Target.Title,
			"softwareInfos": []any{
				map[string]any{"softwareInfoId": "bmc", "name": "BMC " + i.BMCModel, "version": i.BMCVersion, "softwareType": "FIRMWARE"},
				map[string]any{"softwareInfoId": "bios", "name": "BIOS", "version": i.BIOSVersion, "softwareType": "FIRMWARE"},
			},
		},
	}
	lines := []artifact{{Schema: &ocpVersion{Major: 2}}, {Run: map[string]any{"testRunStart": start}}}
	result := "PASS"
	for n, c := range d.Checks {
		id := fmt.Sprintf("%d", n)
		step := func(name string, v any) {
			lines = append(lines, artifact{Step: map[string]any{"testStepId": id, name: v}})
		}
		step("testStepStart", map[string]any{"name": c.ID + " " + c.Title})
		switch c.Verdict {
		case conformance.Broken:
			step("error", map[string]any{"symptom": "tool-or-network", "message": c.Reason})
		case conformance.Skip:
			step("log", map[string]any{"severity": "INFO", "message": "skipped: " + c.Reason})
		default:
			step("diagnosis", map[string]any{"verdict": c.ID + "-" + string(c.Verdict), "type": ocpType[c.Verdict], "message": c.Reason})
		}
		step("testStepEnd", map[string]any{"status": ocpStatus[c.Verdict]})
		if c.Verdict == conformance.Fail {
			result = "FAIL"
		}
	}
	status := "COMPLETE"
	if d.Summary[string(conformance.Broken)] > 0 {
		status, result = "ERROR", "NOT_APPLICABLE"
	}
	lines = append(lines, artifact{Run: map[string]any{"testRunEnd": map[string]any{"status": status, "result": result}}})
	for _, a := range lines {
		if err := put(a); err != nil {
			return err
		}
		at = at.Add(time.Microsecond)
	}
	return nil
}
