package rack_test

import (
	"errors"
	"fmt"
	"io/fs"
	"os/exec"
	"path"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/metalab-dev/metalab/emulator/bmc"
	"github.com/metalab-dev/metalab/emulator/dialect"
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

// lackedKeys returns the keys of ipmi-config's category core that a BMC does not have, for
// which --checkout ends with 1 on real BMCs too. The keys of cipher suites are those that the
// dialect's record does not list, with its evidence; docs/vendors.md has them per dialect.
func lackedKeys(d *dialect.Record, sections []string) (keys []string) {
	keys = append(keys, "Lan_Conf_Security_Keys:K_R", // §22.25: a BMC with another source of random numbers has none
		"Lan_Conf:Secondary_RMCP_Port") // table 23-4: it is optional
	for id := range byte(16) {
		if !slices.Contains(d.IPMI.CipherSuites, id) {
			keys = append(keys, fmt.Sprint("Rmcpplus_Conf_Privilege:Maximum_Privilege_Cipher_Suite_Id_", id))
		}
	}
	// No model has IPMI messaging over its serial port (§6.3: channels are optional).
	for when := range strings.FieldsSeq("Volatile Non_Volatile") {
		for key := range strings.FieldsSeq("Access_Mode Enable_User_Level_Auth Enable_Per_Message_Auth Enable_Pef_Alerting Channel_Privilege_Limit") {
			keys = append(keys, "Serial_Channel:"+when+"_"+key)
		}
	}
	for _, user := range sections {
		if strings.HasPrefix(user, "User") {
			keys = append(keys, user+":Serial_Enable_IPMI_Msgs", user+":Serial_Enable_Link_Auth", user+":Serial_Enable_Restricted_to_Callback", user+":Serial_Privilege_Limit")
		}
	}
	for key := range strings.FieldsSeq("Enable_Basic_Mode Enable_PPP_Mode Enable_Terminal_Mode Connect_Mode Page_Blackout_Interval Call_Retry_Interval Enable_DTR_Hangup Flow_Control Bit_Rate") {
		keys = append(keys, "Serial_Conf:"+key)
	}
	return keys
}

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
			// With -v -v, ipmi-config names the keys that it could not read, and reads some more.
			lacked := lackedKeys(h.Dialect(), strings.Fields(sections))
			var unread []string
			all, _ := config("core", "--checkout", "-v", "-v")
			for line := range strings.Lines(all) {
				if _, key, found := strings.Cut(line, "## Unable to checkout "); found {
					key, _, _ = strings.Cut(strings.TrimSpace(key), " ")
					unread = append(unread, key)
				}
			}
			slices.Sort(unread)
			slices.Sort(lacked)
			if d := cmp.Diff(lacked, unread); d != "" {
				t.Errorf("keys that ipmi-config --checkout of core could not read (-want +got):\n%s", d)
			}
			// Without -v -v it ends with 1 for the keys of OEM authentication types, which it hides,
			// but not for a user's keys of the serial channel and the second port.
			whole := []string{"--checkout", "--filename", t.TempDir() + "/sections"}
			for _, s := range strings.Fields(sections) {
				partly := slices.ContainsFunc(lacked, func(key string) bool { return strings.HasPrefix(key, s+":") }) && s != "Lan_Conf" && !strings.HasPrefix(s, "User")
				if !partly && s != "Lan_Conf_Auth" {
					whole = append(whole, "-S", s)
				}
			}
			if out, code := config("core", whole...); code != 0 || out != "" {
				t.Errorf("ipmi-config --checkout of the sections of core that the BMC has whole ends with %d:\n%s", code, out)
			}
			if out, code := config("core", "--checkout", "-v", "-v", "--filename", t.TempDir()+"/types", "-S", "Lan_Conf_Auth"); code != 0 || out != "" {
				t.Errorf("ipmi-config --checkout of Lan_Conf_Auth ends with %d:\n%s", code, out)
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
