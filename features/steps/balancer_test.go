package steps

import (
	"net"
	"testing"
)

// Two scenarios never have an address in common, even when neither load balancer listens yet.
func TestBalancerAddressIsOfOneScenario(t *testing.T) {
	has := map[string]bool{}
	for range 100 {
		host, release, err := holdBalancer(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(release)
		if has[host] {
			t.Fatalf("holdBalancer() = %s twice", host)
		}
		has[host] = true
		l, err := net.Listen("tcp", net.JoinHostPort(host, apiPort))
		if err != nil {
			t.Errorf("the load balancer cannot listen at %s: %v", host, err)
			continue
		}
		l.Close()
	}
}
