package rack_test

import (
	"errors"
	"io/fs"
	"os/exec"
	"path"
	"slices"
	"strings"
	"testing"

	"github.com/metalab-dev/metalab/emulator/bmc"
	"github.com/metalab-dev/metalab/emulator/rack"
	"github.com/metalab-dev/metalab/emulator/rack/rackfile"
	"github.com/metalab-dev/metalab/emulator/rack/racktest"
	"github.com/metalab-dev/metalab/fixtures"
	"github.com/metalab-dev/metalab/scenarios/prerequisites"
)

func TestFreeIPMI(t *testing.T) {
	_, tools := startTool(t, "- {count: 1, ipmi: {v15: [md5]}}\n")
	c := tools[0]
	free := func(program string, more ...string) (string, error) {
		prerequisites.Need(t, program)
		args := append([]string{"-h", c.at.String(), "-u", c.user, "-p", c.pass, "-l", "ADMIN"}, more...)
		out, err := exec.CommandContext(t.Context(), program, args...).CombinedOutput()
		return string(out), err
	}
	for _, how := range [][]string{{"-D", "LAN_2_0", "-I", "3"}, {"-D", "LAN_2_0", "-I", "17"}, {"-D", "LAN"}} {
		out, err := free("bmc-info", how...)
		if err != nil || !strings.Contains(out, "Device GUID") || !strings.Contains(out, "multi-session") {
			t.Errorf("bmc-info %v = %v\n%s", how, err, out)
		}
	}
}

// missingSections are the sections of ipmi-config's category core with keys that BMCs of
// racks do not have, for which --checkout ends with 1: OEM authentication types, the key K_R,
// cipher suites that a BMC does not support, a serial channel.
var missingSections = []string{"Lan_Conf_Auth", "Lan_Conf_Security_Keys", "Rmcpplus_Conf_Privilege", "Serial_Channel", "Serial_Conf"}

// modelOfEachDialect returns the first built-in profile of each dialect.
func modelOfEachDialect(t *testing.T) (names []string) {
	t.Helper()
	files, err := fs.Glob(fixtures.Profiles, "profiles/*.yaml")
	if err != nil {
		t.Fatal(err)
	}
	seen := map[string]bool{}
	for _, file := range files {
		p, _, err := rack.ReadProfile(nil, strings.TrimSuffix(path.Base(file), ".yaml"))
		if err != nil {
			t.Fatal(err)
		}
		if !seen[p.Dialect] {
			seen[p.Dialect] = true
			names = append(names, p.Name)
		}
	}
	if len(names) != len(rack.Dialects()) {
		t.Errorf("%d dialects have a model, want %d", len(names), len(rack.Dialects()))
	}
	return names
}

// TestIPMIConfigCommitsWhatItReads shows that every dialect's BMC accepts all values that it
// reports (I57, I58, I67, I68): ipmi-config reads them into a file and writes them back.
func TestIPMIConfigCommitsWhatItReads(t *testing.T) {
	prerequisites.Need(t, "ipmi-config")
	models := modelOfEachDialect(t)
	text := "kind: Lab\naccounts: [{name: ADMIN, password: ADMIN}]\nhosts:\n"
	for _, m := range models {
		text += "- {count: 1, profile: " + m + "}\n"
	}
	r, err := rackfile.Parse("rack.yaml", []byte(text))
	if err != nil {
		t.Fatal(err)
	}
	l := racktest.Start(t, rack.Config{Rack: &r})
	for i, h := range l.Hosts() {
		n := h.BMC().Network()
		n.IPMI.On = true // iRMC S6 and XCC2 are delivered with IPMI off
		if _, err := h.ApplyBMC(t.Context(), bmc.SetNetwork{Network: n}); err != nil {
			t.Fatal(err)
		}
		t.Run(models[i], func(t *testing.T) {
			at, ok := h.IPMI()
			if !ok {
				t.Fatal("there is no IPMI")
			}
			config := func(category string, more ...string) (string, int) {
				args := []string{"-D", "LAN_2_0", "-I", "17", "-h", at.String(), "-u", "ADMIN", "-p", "ADMIN", "-l", "ADMIN", "--category", category}
				out, err := exec.CommandContext(t.Context(), "ipmi-config", append(args, more...)...).CombinedOutput()
				if failed := (*exec.ExitError)(nil); errors.As(err, &failed) {
					return string(out), failed.ExitCode()
				} else if err != nil {
					t.Fatal(err)
				}
				return string(out), 0
			}
			sections, code := config("core", "--listsections")
			if code != 0 {
				t.Fatalf("ipmi-config --listsections ends with %d:\n%s", code, sections)
			}
			has := []string{"--checkout", "--filename", t.TempDir() + "/sections"}
			for _, s := range strings.Fields(sections) {
				if !slices.Contains(missingSections, s) {
					has = append(has, "-S", s)
				}
			}
			if out, code := config("core", has...); code != 0 || out != "" {
				t.Errorf("ipmi-config --checkout of sections of core ends with %d:\n%s", code, out)
			}
			for _, read := range []struct {
				category string
				code     int // with which --checkout ends
			}{{"core", 1}, {"dcmi", 0}} {
				file := t.TempDir() + "/config"
				if out, code := config(read.category, "--checkout", "--filename", file); code != read.code || out != "" {
					t.Errorf("ipmi-config --checkout of %s ends with %d:\n%s", read.category, code, out)
				}
				if out, code := config(read.category, "--commit", "--filename", file); code != 0 || out != "" {
					t.Errorf("ipmi-config --commit of %s ends with %d:\n%s", read.category, code, out)
				}
				if out, code := config(read.category, "--diff", "--filename", file); code != 0 || out != "" {
					t.Errorf("ipmi-config --diff of %s after its --commit ends with %d:\n%s", read.category, code, out)
				}
			}
		})
	}
}
