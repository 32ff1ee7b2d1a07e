package cloudinit

import (
	"bytes"
	"embed"
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path"
	"slices"
	"strings"
	"testing"

	"github.com/metalab-dev/metalab/scenarios/prerequisites"
	"github.com/metalab-dev/metalab/scenarios/sample"
)

//go:embed testdata/network
var networkCases embed.FS

// caseNICs are the NICs of the server that the cases are for: MAC0 to MAC3 in their texts.
var caseNICs = map[string]string{
	"52:54:00:00:00:10": "enp1s0", "52:54:00:00:00:11": "enp2s0", "52:54:00:00:00:12": "eno3", "52:54:00:00:ab:cd": "eno4",
}

// readCase returns a case of testdata/network: network_data.json, or network-config.
func readCase(t testing.TB, name string) Instance {
	t.Helper()
	b, err := networkCases.ReadFile("testdata/network/" + name)
	if err != nil {
		t.Fatal(err)
	}
	text := string(b)
	for n, mac := range slices.Sorted(maps.Keys(caseNICs)) {
		text = strings.ReplaceAll(text, fmt.Sprintf("MAC%dUPPER", n), strings.ToUpper(mac))
		text = strings.ReplaceAll(text, fmt.Sprintf("MAC%d", n), mac)
	}
	i := Instance{Source: NoCloud, NetworkData: []byte(text), NICs: caseNICs}
	if path.Ext(name) == ".json" {
		i.Source = ConfigDrive
	}
	return i
}

func caseNames(t testing.TB) (out []string) {
	t.Helper()
	entries, err := networkCases.ReadDir("testdata/network")
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		out = append(out, e.Name())
	}
	return out
}

// networkCase is a case for testdata/netplan.py.
type networkCase struct {
	Name    string            `json:"name"`
	Source  string            `json:"source"`
	Text    string            `json:"text"`
	NICs    map[string]string `json:"nics"`
	Netplan *string           `json:"netplan"`
}

// Whatever the network data are, netplan's file is that of Debian 12's cloud-init; where it writes
// none, there is none, and a reason. One process of Python compares all cases.
func TestNetplanIsThatOfDebiansCloudInit(t *testing.T) {
	python := prerequisites.Need(t, "cloud-init 22.4.2")
	var cases []networkCase
	for _, name := range sample.Rows(t, "the network data of cloud-init", 40, caseNames(t)) {
		i := readCase(t, name)
		files, r := Root{}, Result{}
		applyNetwork(i, files, &r)
		c := networkCase{Name: name, Source: i.Source, Text: string(i.NetworkData), NICs: i.NICs}
		if f, ok := files[netplanFile]; ok {
			text := string(f.Content)
			c.Netplan = &text
		} else if len(r.Ignored) == 0 {
			t.Errorf("%s: no file is written, without a reason", name)
		}
		cases = append(cases, c)
	}
	question, err := json.Marshal(cases)
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), python, "-W", "ignore", "testdata/netplan.py")
	cmd.Stdin, cmd.Stderr = bytes.NewReader(question), os.Stderr
	answer, err := cmd.Output()
	if err != nil {
		t.Fatal(err)
	}
	var found []struct{ Name, Want, Got, Why string }
	if err := json.Unmarshal(answer, &found); err != nil {
		t.Fatal(err)
	}
	differs := map[string]bool{}
	for _, f := range found {
		if differs[f.Name] = true; networkDifferences[f.Name] == "" {
			t.Errorf("%s:\n got %s\nwant %s %s", f.Name, f.Got, f.Want, f.Why)
		}
	}
	for _, c := range cases {
		if networkDifferences[c.Name] != "" && !differs[c.Name] {
			t.Errorf("%s no longer differs from cloud-init: drop it from networkDifferences", c.Name)
		}
	}
}

func TestDifferencesFromCloudInitAreDocumented(t *testing.T) {
	page, err := os.ReadFile("../../docs/cloud-init.md")
	if err != nil {
		t.Fatal(err)
	}
	text := strings.Join(strings.Fields(string(page)), " ")
	for name, reason := range networkDifferences {
		if !slices.Contains(caseNames(t), name) || !strings.Contains(text, reason) {
			t.Errorf("%s: it is no case, or docs/cloud-init.md does not say %q", name, reason)
		}
	}
}
