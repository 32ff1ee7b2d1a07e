package main

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/metalab-dev/metalab/cmd/usage"
	"github.com/metalab-dev/metalab/controller/netboot/ramdisk"
)

// agentImage holds the flags of image build agent.
type agentImage struct {
	ramdisk.Config
	packages string
	fetch    string
	scratch  string // directory for downloads
}

func newAgentImage(o *options) *cobra.Command {
	var a agentImage
	c := &cobra.Command{
		Use:   "agent DIR",
		Short: "Build the image that real servers boot: a kernel with the agent",
		Long: `Build the image that real servers boot: a kernel with the agent, as an ISO for
virtual media and as files for network boot. Emulated servers do not need it.

Kernel, drivers and boot loaders come from packages of Debian or a derived
distribution: from the directory of --packages or, without it, from apt-get
download. lab-controller --agent-image DIR and labctl up --agent-image DIR serve
the image.`,
		Example: `  # from the packages of this machine's distribution
  labctl image build agent ./agent
  # with a kernel of yours
  labctl image build agent ./agent --kernel bzImage --initrd drivers.img --packages ./debs`,
		Args: usage.Arguments("DIR"),
		RunE: func(c *cobra.Command, args []string) error {
			err := a.complete(c)
			if a.scratch != "" {
				defer os.RemoveAll(a.scratch)
			}
			if err != nil {
				return err
			}
			made, err := ramdisk.Build(c.Context(), a.Config, args[0])
			if err != nil {
				return err
			}
			return o.output.print(c.OutOrStdout(), made, [][]string{
				{"dir", made.Dir}, {"kernel", made.Kernel}, {"drivers", strconv.Itoa(made.Drivers)}, {"boots", strings.Join(made.Boots, "; ")},
			})
		},
	}
	f := c.Flags()
	f.StringVar(&a.Agent, "agent", "", "lab-agent, linked statically (default: the one beside labctl)")
	f.StringVar(&a.packages, "packages", "", "directory with .deb files: linux-image-…, isolinux, syslinux-common, systemd-boot-efi, ipxe")
	f.StringVar(&a.fetch, "kernel-package", ramdisk.DefaultKernel, "package of the kernel that is downloaded")
	f.StringVar(&a.Kernel, "kernel", "", "kernel file, instead of the one in a package")
	f.StringVar(&a.Initrd, "initrd", "", "initrd that is unpacked before the agent: drivers for your own kernel")
	return c
}

// complete finds the inputs that no flag names.
func (a *agentImage) complete(c *cobra.Command) error {
	if a.Agent == "" {
		self, err := os.Executable()
		if err != nil {
			return err
		}
		a.Agent = filepath.Join(filepath.Dir(self), "lab-agent")
	}
	if _, err := os.Stat(a.Agent); err != nil {
		return usage.New(fmt.Errorf("--agent: %w", err))
	}
	if a.packages == "" && a.Kernel != "" {
		return usage.New(errors.New("--packages: is required with --kernel: the boot loaders come from there"))
	}
	if a.packages != "" {
		var err error
		a.Packages, err = filepath.Glob(filepath.Join(a.packages, "*.deb"))
		return err
	}
	dir, err := os.MkdirTemp("", "metalab-packages-")
	if err != nil {
		return err
	}
	a.scratch = dir
	a.Packages, err = ramdisk.Download(c.Context(), a.fetch, dir)
	return err
}
