package steps

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	metal3 "github.com/metal3-io/baremetal-operator/apis/metal3.io/v1alpha1"
	"k8s.io/apimachinery/pkg/api/equality"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/metalab-dev/metalab/lab"
)

// nics returns the NICs of the host's HardwareData.
func (s *scenario) nics(ctx context.Context) ([]metal3.NIC, error) {
	var hd metal3.HardwareData
	if err := s.kube.Get(ctx, client.ObjectKey{Namespace: lab.Namespace, Name: s.server.Name}, &hd); err != nil {
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
		if i >= len(found) {
			return fmt.Errorf("the inspection found %d NICs, and not %s", len(found), n.Name)
		}
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
	if len(found) == 0 {
		return errors.New("the inspection found no NIC")
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

// shows waits until the status and the HardwareData of the host have the same hardware,
// and no differs.
func (s *scenario) shows(ctx context.Context, differs func(metal3.HardwareDetails) string) error {
	return eventually(ctx, "the host shows its hardware", func(ctx context.Context) (bool, string, error) {
		h, err := s.read(ctx)
		if err != nil || h.Status.HardwareDetails == nil {
			return false, "nothing", err
		}
		var hd metal3.HardwareData
		if err := s.kube.Get(ctx, client.ObjectKeyFromObject(h), &hd); err != nil {
			return false, "no HardwareData", client.IgnoreNotFound(err)
		}
		if !equality.Semantic.DeepEqual(h.Status.HardwareDetails, hd.Spec.HardwareDetails) {
			return false, "HardwareData with other hardware", nil
		}
		why := differs(*h.Status.HardwareDetails)
		return why == "", why, nil
	})
}

func (s *scenario) showsBMCHardware(ctx context.Context) error {
	return s.shows(ctx, func(d metal3.HardwareDetails) string {
		v := s.machine()
		p := v.Profile
		var macs, serials, gotMACs, gotSerials []string
		for _, n := range v.Identity.NICs {
			macs = append(macs, n.MAC)
		}
		for _, dev := range v.Storage.Devices() {
			if dev.Drive != nil {
				serials = append(serials, dev.Drive.Serial)
			}
		}
		for _, n := range d.NIC {
			gotMACs = append(gotMACs, n.MAC)
		}
		for _, d := range d.Storage {
			gotSerials = append(gotSerials, d.SerialNumber)
			if d.SizeBytes == 0 || d.Model == "" {
				return fmt.Sprintf("disk %+v", d)
			}
		}
		slices.Sort(gotMACs)
		slices.Sort(macs)
		slices.Sort(gotSerials)
		slices.Sort(serials)
		for _, one := range []struct{ what, got, want string }{
			{"manufacturer", d.SystemVendor.Manufacturer, p.Manufacturer},
			{"product", d.SystemVendor.ProductName, p.Model},
			{"BIOS version", d.Firmware.BIOS.Version, p.BIOS.Version},
			{"arch", d.CPU.Arch, p.Processors.Arch},
			{"CPU model", d.CPU.Model, p.Processors.Model},
			{"CPUs", fmt.Sprint(d.CPU.Count), fmt.Sprint(p.Processors.Sockets * p.Processors.Threads)},
			{"RAM", fmt.Sprint(d.RAMMebibytes), fmt.Sprint(p.MemoryMiB)},
			{"NICs", fmt.Sprint(gotMACs), fmt.Sprint(macs)},
			{"disks", fmt.Sprint(gotSerials), fmt.Sprint(serials)},
		} {
			if one.got != one.want {
				return fmt.Sprintf("%s %s, the server's is %s", one.what, one.got, one.want)
			}
		}
		if d.SystemVendor.SerialNumber == "" || d.CPU.ClockMegahertz == 0 {
			return fmt.Sprintf("serial number %q, %v MHz", d.SystemVendor.SerialNumber, d.CPU.ClockMegahertz)
		}
		return ""
	})
}

func (s *scenario) showsIPMIHardware(ctx context.Context) error {
	return s.shows(ctx, func(d metal3.HardwareDetails) string {
		v := s.machine()
		want := metal3.HardwareSystemVendor{Manufacturer: v.Profile.Manufacturer, ProductName: v.Profile.Model, SerialNumber: v.Identity.Serial}
		if d.SystemVendor != want || d.Firmware.BIOS.Version != v.Profile.BIOS.Version {
			return fmt.Sprintf("%+v, BIOS %s; the server is %+v with BIOS %s", d.SystemVendor, d.Firmware.BIOS.Version, want, v.Profile.BIOS.Version)
		}
		return ""
	})
}
