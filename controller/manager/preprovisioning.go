package manager

import (
	"context"
	"errors"

	metal3 "github.com/metal3-io/baremetal-operator/apis/metal3.io/v1alpha1"

	"github.com/metalab-dev/metalab/controller/inband"
	"github.com/metalab-dev/metalab/controller/metal3/preprovisioning"
	"github.com/metalab-dev/metalab/controller/netboot"
)

// addPreprovisioning adds the controller of PreprovisioningImages, if
// Config.BuildPreprovisioningImage is set.
func addPreprovisioning(ctx context.Context, s *Set) error {
	c := &s.cfg
	if !c.BuildPreprovisioningImage {
		return nil
	}
	if s.media == nil {
		return errors.New("it serves its images through the controller host: select host, too")
	}
	images, err := preprovisioning.New(preprovisioning.Config{
		Client: s.mgr.GetClient(), Builder: agentImages{s.media}, Work: s.cfg.work(),
	})
	if err != nil {
		return err
	}
	return images.Setup(ctx, s.mgr)
}

// agentImages is a preprovisioning.Builder of images with our agent. The agent of such
// an image gets no work: a host boots an image that is made and signed for that one
// boot.
type agentImages struct{ media *netboot.Server }

// preprovisioned is the boot ID in the images of agentImages. No host ever expects it.
const preprovisioned = "preprovisioning"

func (agentImages) Builds(f metal3.ImageFormat) bool {
	return f == metal3.ImageFormatISO || f == metal3.ImageFormatInitRD
}

// BuildsFor implements preprovisioning.Builder: the agent and its kernel are built for
// x86-64 only.
func (agentImages) BuildsFor(architecture string) bool {
	return architecture == "" || architecture == "x86_64"
}

func (a agentImages) Build(_ context.Context, r preprovisioning.Request) (preprovisioning.Built, error) {
	if len(r.NetworkData) > 0 {
		return preprovisioning.Built{}, &preprovisioning.InvalidError{Why: "the agent's image does not support network data: clear preprovisioningNetworkDataName, and configure the agent's network by DHCP"}
	}
	b := inband.Boot{Host: r.Owner, ID: preprovisioned}
	if r.Format == metal3.ImageFormatISO {
		return preprovisioning.Built{URL: a.media.ISO(b)}, nil
	}
	kernel, initrd := a.media.Linux(b)
	return preprovisioning.Built{URL: initrd, KernelURL: kernel, KernelParams: netboot.Cmdline}, nil
}
