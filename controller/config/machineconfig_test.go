package config

import (
	"bytes"
	"flag"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

var update = flag.Bool("update", false, "copy the definitions of the family machineconfig from their module")

// machineConfigDefinitions are the definitions of the family machineconfig, by the names that
// they have here, with their files in the module github.com/openshift/api. Of the variants that
// the module has of a definition, these are of a cluster with the default feature set and its own
// control plane.
var machineConfigDefinitions = map[string]string{
	"machineconfiguration.openshift.io_controllerconfigs.yaml":  "machineconfiguration/v1/zz_generated.crd-manifests/0000_80_machine-config_01_controllerconfigs-Default.crd.yaml",
	"machineconfiguration.openshift.io_machineconfignodes.yaml": "machineconfiguration/v1/zz_generated.crd-manifests/0000_80_machine-config_01_machineconfignodes-SelfManagedHA-Default.crd.yaml",
	"machineconfiguration.openshift.io_machineconfigpools.yaml": "machineconfiguration/v1/zz_generated.crd-manifests/0000_80_machine-config_01_machineconfigpools-SelfManagedHA.crd.yaml",
	"machineconfiguration.openshift.io_machineconfigs.yaml":     "machineconfiguration/v1/zz_generated.crd-manifests/0000_80_machine-config_01_machineconfigs.crd.yaml",
	"machineconfiguration.openshift.io_machineosbuilds.yaml":    "machineconfiguration/v1/zz_generated.crd-manifests/0000_80_machine-config_01_machineosbuilds.crd.yaml",
	"machineconfiguration.openshift.io_machineosconfigs.yaml":   "machineconfiguration/v1/zz_generated.crd-manifests/0000_80_machine-config_01_machineosconfigs.crd.yaml",
	"operator.openshift.io_machineconfigurations.yaml":          "operator/v1/zz_generated.crd-manifests/0000_80_machine-config_01_machineconfigurations.crd.yaml",
}

// TestMachineConfigDefinitionsAreThoseOfTheModule compares the definitions of the family with
// the files of the module at the version that go.mod requires. With -update it copies them.
func TestMachineConfigDefinitionsAreThoseOfTheModule(t *testing.T) {
	out, err := exec.Command("go", "list", "-m", "-f", "{{.Dir}}", "github.com/openshift/api").Output()
	module := strings.TrimSpace(string(out))
	if err != nil || module == "" {
		t.Fatalf("go list -m github.com/openshift/api = %q, %v; want the directory of the module", out, err)
	}
	const dir = "machineconfig/crd"
	if *update {
		if err := os.RemoveAll(dir); err != nil {
			t.Fatal(err)
		}
		if err := os.MkdirAll(dir, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	for name, from := range machineConfigDefinitions {
		want, err := os.ReadFile(filepath.Join(module, from))
		if err != nil {
			t.Fatal(err)
		}
		if *update {
			if err := os.WriteFile(filepath.Join(dir, name), want, 0o644); err != nil {
				t.Fatal(err)
			}
			continue
		}
		if got, err := os.ReadFile(filepath.Join(dir, name)); err != nil || !bytes.Equal(got, want) {
			t.Errorf("%s/%s, error %v, is not the module's file %s: run go generate ./controller/config", dir, name, err, from)
		}
	}
	if files, err := os.ReadDir(dir); err != nil || len(files) != len(machineConfigDefinitions) {
		t.Errorf("%s has %d files, %v; want %d", dir, len(files), err, len(machineConfigDefinitions))
	}
}
