package manager

import (
	"context"
	"errors"

	metal3 "github.com/metal3-io/baremetal-operator/apis/metal3.io/v1alpha1"

	"github.com/metalab-dev/metalab/controller/inband"
	"github.com/metalab-dev/metalab/controller/netboot"
	"github.com/metalab-dev/metalab/controller/preprovisioning"
)

// addPreprovisioning adds the controller of PreprovisioningImages, where they are
// wanted.
func addPreprovisioning(ctx context.Context, s *Set) error {
	c := &s.cfg
	if !c.BuildPreprovisioningImage {
		return nil
	}
	if s.media == nil {
		return errors.New("it serves its images by the controller host: ask for that, too")
	}
	images, err := preprovisioning.New(preprovisioning.Config{
		Client: s.mgr.GetClient(), Builder: agentImages{s.media}, Clock: c.Clock, Enter: c.Enter, Workers: c.Workers,
	})
	if err != nil {
		return err
	}
	return images.Setup(ctx, s.mgr)
}

// agentImages are images of our agent. Those of an object boot an agent that gets
// no work: what a host really boots is made for that one boot, and signed.
type agentImages struct{ media *netboot.Server }

// preprovisioned is the boot that an object's image is for: none that ever comes.
const preprovisioned = "preprovisioning"

func (agentImages) Builds(f metal3.ImageFormat) bool {
	return f == metal3.ImageFormatISO || f == metal3.ImageFormatInitRD
}

// BuildsFor: the agent is built for one architecture, and so is its kernel.
func (agentImages) BuildsFor(architecture string) bool {
	return architecture == "" || architecture == "x86_64"
}

func (a agentImages) Build(_ context.Context, r preprovisioning.Request) (preprovisioning.Built, error) {
	if len(r.NetworkData) > 0 {
		return preprovisioning.Built{}, &preprovisioning.InvalidError{Why: "the agent's image takes no network data: clear preprovisioningNetworkDataName, and have DHCP configure it"}
	}
	b := inband.Boot{Host: r.Owner, ID: preprovisioned}
	if r.Format == metal3.ImageFormatISO {
		return preprovisioning.Built{URL: a.media.ISO(b)}, nil
	}
	kernel, initrd := a.media.Linux(b)
	return preprovisioning.Built{URL: initrd, KernelURL: kernel, KernelParams: netboot.Cmdline}, nil
}
