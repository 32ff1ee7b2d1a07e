package steps

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/metalab-dev/metalab/scenarios/conformance"
)

func TestBMCIsTakenByItsCredentialsFile(t *testing.T) {
	dir := t.TempDir()
	for name, text := range map[string]string{
		"password": "secret\n",
		"whole":    "{username: admin, passwordFile: password, insecure: true, ipmi: 192.0.2.8, serial: S1, loseData: true}",
		"unknown":  "{username: admin, password: secret}",
		"no user":  "{passwordFile: password}",
		"no PEM":   "{username: admin, passwordFile: password, ca: password}",
		"gone":     "{username: admin, passwordFile: none}",
	} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	s := &scenario{}
	if err := s.takeBMC("192.0.2.7", filepath.Join(dir, "whole")); err != nil {
		t.Fatal(err)
	}
	want := conformance.Config{URL: "https://192.0.2.7", Username: "admin", Password: "secret", Insecure: true, IPMI: "192.0.2.8:623", Serial: "S1", LoseData: true}
	got := s.checked.conf
	if got.URL != want.URL || got.Username != want.Username || got.Password != want.Password || got.Insecure != want.Insecure ||
		got.IPMI != want.IPMI || got.Serial != want.Serial || got.LoseData != want.LoseData {
		t.Errorf("the BMC is %+v, want %+v", got, want)
	}
	for _, tt := range []struct{ address, file, text string }{
		{"192.0.2.7", "unknown", "password"},
		{"192.0.2.7", "no user", "username and passwordFile must be there"},
		{"192.0.2.7", "no PEM", "holds no certificate"},
		{"192.0.2.7", "gone", "none: no such file"},
		{"192.0.2.7", "missing", "missing: no such file"},
		{"https://", "whole", "is not like https://192.0.2.7"},
	} {
		if err := s.takeBMC(tt.address, filepath.Join(dir, tt.file)); err == nil || !strings.Contains(err.Error(), tt.text) {
			t.Errorf("%s with the file %q: %v, want an error with %q", tt.address, tt.file, err, tt.text)
		}
	}
}
