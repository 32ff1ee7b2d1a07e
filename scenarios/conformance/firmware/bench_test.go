package firmware

import (
	"io"
	"net/http"
	"testing"

	"github.com/metalab-dev/metalab/controller/bmc"
)

// sent is the registry as the BMC of a server sends it.
func sent(t *testing.T, profile string) []byte {
	l := start(t, profile)
	h := l.First()
	id := h.Machine().Profile.Firmware.Model.Registry().ID
	user, password := l.Credentials(h)
	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, h.URL()+"/redfish/v1/Registries/"+id+"/"+id+".json", nil)
	if err != nil {
		t.Fatal(err)
	}
	req.SetBasicAuth(user, password)
	resp, err := l.Client.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	if err != nil || resp.StatusCode != http.StatusOK {
		t.Fatal(resp.Status, err)
	}
	return body
}

// A thousand BMCs that each send their registry of a thousand settings whole,
// without an ETag to go by, cost one that is parsed.
func TestRegistriesOfAThousandServersAreOne(t *testing.T) {
	for _, profile := range []string{"dense", "vast"} {
		body := sent(t, profile)
		var shared bmc.Registries
		parsed := 0
		var first *bmc.AttributeRegistry
		for range 1000 {
			r, err := shared.Store(bmc.RegistryKey{ID: profile}, "", append([]byte(nil), body...), func([]byte) (*bmc.AttributeRegistry, error) {
				parsed++
				return bmc.NewAttributeRegistry(profile, nil), nil
			})
			if first == nil {
				first = r
			}
			if err != nil || r != first {
				t.Fatalf("registry %p, %v; want %p", r, err, first)
			}
		}
		if parsed != 1 {
			t.Errorf("%s: %d of %d bytes were parsed, want one", profile, parsed, len(body))
		}
	}
}
