package steps

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"

	metal3 "github.com/metal3-io/baremetal-operator/apis/metal3.io/v1alpha1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/metalab-dev/metalab/scenarios/world"
)

// nics returns the NICs of the host's HardwareData.
func (s *scenario) nics(ctx context.Context) ([]metal3.NIC, error) {
	var hd metal3.HardwareData
	if err := s.kube.Get(ctx, client.ObjectKey{Namespace: world.Namespace, Name: s.server.Name}, &hd); err != nil {
		return nil, err
	}
	return hd.Spec.HardwareDetails.NIC, nil
}

func (s *scenario) inspectionFoundSwitches(ctx context.Context) error {
	found, err := s.nics(ctx)
	if err != nil {
		return err
	}
	withLLDP := 0
	for i, n := range s.machine().Identity.NICs {
		port := n.Switch
		if port == nil {
			continue
		}
		withLLDP++
		got := found[i]
		if got.LLDP == nil || got.LLDP.SwitchSystemName != port.Name || got.LLDP.SwitchID == "" || got.LLDP.PortID == "" {
			return fmt.Errorf("NIC %s is cabled to %s; the agent heard %+v", n.Name, port.Name, got.LLDP)
		}
		same := int(got.VLANID) == port.VLAN && len(got.VLANs) == len(port.VLANs)
		for j := range got.VLANs {
			same = same && int(got.VLANs[j].ID) == port.VLANs[j].ID && got.VLANs[j].Name == port.VLANs[j].Name
		}
		if !same {
			return fmt.Errorf("NIC %s has the VLANs %+v, the agent heard %d and %+v", n.Name, port, got.VLANID, got.VLANs)
		}
	}
	if withLLDP == 0 {
		return errors.New("the server is cabled to nothing that would tell")
	}
	return nil
}

func (s *scenario) inspectionFoundPXE(ctx context.Context, want string) error {
	found, err := s.nics(ctx)
	if err != nil {
		return err
	}
	var got []string
	for _, n := range found {
		if n.PXE {
			got = append(got, strconv.Quote(n.Name))
		}
	}
	if have := strings.Join(got, ", "); have != want && (have != "" || want != "no NIC") {
		return fmt.Errorf("it was loaded through %q", have)
	}
	return nil
}
