package network

import (
	"cmp"
	"encoding/base64"
	"net/netip"
	"slices"
	"strings"

	"sigs.k8s.io/yaml"

	ipamv1 "github.com/metalab-dev/metalab/controller/api/ipam/v1alpha1"
	"github.com/metalab-dev/metalab/controller/mosk/provider/network/layout"
)

// netplan returns a configuration as the file that netplan reads. A server has it where network data
// cannot express the configuration (layout.NeedsFile).
func netplan(config []byte) ([]ipamv1.NetconfigFile, error) {
	text, err := yaml.JSONToYAML([]byte(`{"network":` + string(config) + `}`))
	if err != nil {
		return nil, err
	}
	return []ipamv1.NetconfigFile{{Path: ipamv1.NetplanFile, Content: base64.StdEncoding.EncodeToString(text)}}, nil
}

// services returns the addresses of each service that a label of a Subnet names.
func services(t *layout.Template, needs []layout.Need, addresses map[layout.Need]netip.Addr, subnets []ipamv1.Subnet) map[string][]ipamv1.ServiceAddress {
	var out map[string][]ipamv1.ServiceAddress
	for _, need := range needs {
		i := slices.IndexFunc(subnets, func(s ipamv1.Subnet) bool { return s.Name == need.Subnet })
		if i < 0 {
			continue
		}
		for label := range subnets[i].Labels { // in any order: each list is sorted
			if service, ok := strings.CutPrefix(label, ipamv1.ServiceLabelPrefix); ok {
				if out == nil {
					out = map[string][]ipamv1.ServiceAddress{}
				}
				out[service] = append(out[service], ipamv1.ServiceAddress{IfName: t.Interface(need), IPAddress: addresses[need].String()})
			}
		}
	}
	for _, list := range out {
		slices.SortFunc(list, func(a, b ipamv1.ServiceAddress) int {
			return cmp.Or(strings.Compare(a.IfName, b.IfName), strings.Compare(a.IPAddress, b.IPAddress))
		})
	}
	return out
}
