package report

import (
	"bytes"
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/metalab-dev/metalab/scenarios/conformance"
)

// FuzzHAR replaces what identifies a server in a body, and writes and reads the archive.
func FuzzHAR(f *testing.F) {
	f.Add([]byte(`{"SerialNumber":"CN7475123","UUID":"4c4c4544-0042-3110-8052-b4c04f4d3132","MACAddress":"00:11:22:33:44:55"}`), "https://192.0.2.7/redfish/v1/", 200)
	f.Add([]byte(`{"MACAddress":"aa:bb:cc:dd:ee:ff","Id":"nic-aa:bb:cc:dd:ee:ff"}`), "http://h/", 200) // without a digit
	f.Add([]byte("\xff\x00"), "https://h/?a=b&a=c", 500)
	f.Add([]byte(`{"HostName":"a\"b\\c1234","AssetTag":""}`), "%zz", 0)
	f.Fuzz(func(t *testing.T, body []byte, url string, status int) {
		x := conformance.Exchange{ID: 1, Check: "NET-001", Method: "GET", URL: url, Status: status, Body: body, Size: int64(len(body))}
		r := newRedactor(url, []conformance.Exchange{x})
		x = r.exchange(x)
		for _, m := range macs.FindAll(x.Body, -1) {
			if bytes.Contains(body, m) {
				t.Errorf("the body %q has the MAC address %q", x.Body, m)
			}
		}
		var b bytes.Buffer
		if err := HAR(&b, "test", []conformance.Exchange{x}); err != nil {
			t.Fatal(err)
		}
		path := filepath.Join(t.TempDir(), HARFile)
		if err := os.WriteFile(path, b.Bytes(), 0o600); err != nil {
			t.Fatal(err)
		}
		all, err := LoadHAR(path)
		if err != nil || len(all) != 1 {
			t.Fatalf("LoadHAR = %d exchanges, %v, want 1", len(all), err)
		}
		if got := all[0]; !bytes.Equal(got.Body, x.Body) || got.Status != status {
			t.Errorf("LoadHAR: (-want +got):\n%s", cmp.Diff(x.Body, got.Body))
		}
	})
}
