package network

import (
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	ipamv1 "github.com/metalab-dev/metalab/controller/api/ipam/v1alpha1"
)

// The network of a Machine is made of objects of its namespace, and an address is a Machine's by its owner:
// those that carry its name are left alone.
func TestNetworkStaysInItsNamespace(t *testing.T) {
	l := start(t, 5, 1)
	address := func(namespace, name, ip string) *ipamv1.IPaddr {
		return &ipamv1.IPaddr{
			ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name, Labels: map[string]string{machineLabel: "w-0"}},
			Spec:       ipamv1.IPaddrSpec{SubnetRef: "lcm", WantedAddress: ip, Interface: "0"},
		}
	}
	others := []*ipamv1.IPaddr{address("other", "ip-10-0-1-1", "10.0.1.1"), address(ns, "mine", "10.0.1.4")}
	for _, o := range others {
		l.must(l.Create(t.Context(), o))
	}
	l.must(l.Create(t.Context(), &ipamv1.Subnet{ObjectMeta: metav1.ObjectMeta{Namespace: "other", Name: "theirs"}, Spec: ipamv1.SubnetSpec{CIDR: "10.9.0.0/16"}}))
	l.pass(l.provider(nil), "w-0")
	h := get(l, "w-0", new(ipamv1.IpamHost))
	if h.Status.NetconfigV2State != ipamv1.ResultOK || !strings.Contains(string(h.Status.NetconfigV2.Raw), "10.0.1.1/16") {
		t.Errorf("the network is %+v, want the first free address of the namespace", h.Status)
	}
	for _, o := range others {
		l.must(l.Get(t.Context(), client.ObjectKeyFromObject(o), o))
	}
	l2 := get(l, "default", new(ipamv1.L2Template))
	l2.Spec.L3Layout = append(l2.Spec.L3Layout, ipamv1.L3Layout{SubnetName: "theirs"})
	l.must(l.Update(t.Context(), l2))
	l.pass(l.provider(nil), "w-0")
	if got := get(l, "w-0", new(ipamv1.IpamHost)).Status.L2RenderResult; !strings.Contains(got, `0 Subnets of the namespace fit, want one for "theirs"`) {
		t.Errorf("a Subnet of another namespace: %q", got)
	}
}
