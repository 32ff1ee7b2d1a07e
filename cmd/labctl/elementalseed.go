package main

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"time"

	metal3 "github.com/metal3-io/baremetal-operator/apis/metal3.io/v1alpha1"
	"github.com/spf13/cobra"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/util/wait"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/metalab-dev/metalab/cmd/usage"
	elementalv1 "github.com/metalab-dev/metalab/controller/api/elemental/v1beta1"
	"github.com/metalab-dev/metalab/controller/elemental/condition"
	"github.com/metalab-dev/metalab/emulator/rack/control"
	"github.com/metalab-dev/metalab/guest/elementalsim"
	"github.com/metalab-dev/metalab/lab"
	"github.com/metalab-dev/metalab/scenarios/outfile"
)

func newElementalSeed(o *options) *cobra.Command {
	var namespace, iso string
	var insert, netboot []string
	force := false
	c := &cobra.Command{
		Use:   "seed REGISTRATION --iso FILE | --netboot HOST,…",
		Short: "Let servers boot the system that registers them, from a medium or over the network",
		Long: `Let servers boot a system that registers and installs them: it runs elemental-agent register
--install with the address, the certificate authority and the token of an
ElementalRegistration.

With --iso the system is a medium in a file. Keep the file as the secret that its token is. With
--insert servers get the medium in their virtual CD drive, and the boot order disk, then CD.

With --netboot servers boot the system over the lab's network (PXE), and get the boot order disk,
then network. Nobody needs a BMC or a medium. The MAC addresses of their first NICs become the
annotation ` + elementalv1.NetworkBootAnnotation + ` of the registration: it alone says to whom the network gives
the token, and you may edit it. A server with a BareMetalHost is refused.

Either way, a server whose disk boots nothing registers itself, one that is installed boots its
disk, and one that was reset registers itself again.`,
		Example: `  labctl elemental seed fire --iso seed.iso
  labctl elemental seed fire --iso seed.iso --insert node-0,node-1 && labctl host power 'node-*' On
  labctl elemental seed fire --netboot node-0,node-1 && labctl host power 'node-*' On`,
		Args: usage.Arguments("REGISTRATION"),
		RunE: func(c *cobra.Command, args []string) error {
			to := outfile.File{Path: iso, Made: isSeed, Force: force}
			if iso != "" {
				if err := to.Check(); err != nil {
					return err
				}
			}
			kube, st, err := elementalClient(c, o)
			if err != nil {
				return err
			}
			r := &elementalv1.ElementalRegistration{}
			if err := kube.Get(c.Context(), client.ObjectKey{Namespace: namespace, Name: args[0]}, r); err != nil {
				return noRegistration(c.Context(), kube, namespace, args[0], err)
			}
			if iso == "" {
				return networkBoot(c.Context(), o, kube, r, netboot)
			}
			b, err := lab.SeedISO(r)
			if err != nil {
				return err
			}
			if err := to.Write(0o600, outfile.Bytes(b)); err != nil {
				return err
			}
			if len(insert) > 0 {
				if err := insertSeed(c.Context(), o, st, args[0], b, insert); err != nil {
					return err
				}
			}
			_, err = fmt.Fprintln(c.OutOrStdout(), iso)
			return err
		},
	}
	c.Flags().StringVar(&namespace, "namespace", lab.Namespace, "namespace of the registration")
	c.Flags().StringVar(&iso, "iso", "", "file to write the medium to")
	c.Flags().BoolVar(&force, "force", false, "replace FILE though it is no such medium")
	c.Flags().StringSliceVar(&insert, "insert", nil, "servers that get the medium, by commas; needs --iso")
	c.Flags().StringSliceVar(&netboot, "netboot", nil, "servers that boot over the network, by commas")
	c.MarkFlagsOneRequired("iso", "netboot")
	c.MarkFlagsMutuallyExclusive("iso", "netboot")
	c.MarkFlagsMutuallyExclusive("insert", "netboot")
	return c
}

// networkBoot lets servers boot the seed of a registration over the network. It returns when the
// network offers it.
func networkBoot(ctx context.Context, o *options, kube client.Client, r *elementalv1.ElementalRegistration, servers []string) error {
	labAPI := control.NewClient(o.state)
	var hosts metal3.BareMetalHostList
	if err := kube.List(ctx, &hosts); err != nil {
		return err
	}
	macs := r.NetworkBootMACs()
	for _, name := range servers {
		d, err := labAPI.Host(ctx, name)
		if err != nil {
			return err
		}
		if d.BootMACAddress == "" {
			return fmt.Errorf("%s has no NIC to boot from", name)
		}
		for i := range hosts.Items {
			if h := &hosts.Items[i]; strings.EqualFold(h.Spec.BootMACAddress, d.BootMACAddress) {
				return fmt.Errorf("%s has the BareMetalHost %s, which boots it: name another server, or delete that", name, h.Name)
			}
		}
		if !slices.ContainsFunc(macs, func(m string) bool { return strings.EqualFold(m, d.BootMACAddress) }) {
			macs = append(macs, d.BootMACAddress)
		}
	}
	before := r.DeepCopy()
	if r.Annotations == nil {
		r.Annotations = map[string]string{}
	}
	r.Annotations[elementalv1.NetworkBootAnnotation] = strings.Join(macs, ",")
	if err := kube.Patch(ctx, r, client.MergeFrom(before)); err != nil {
		return err
	}
	if err := awaitNetworkBoot(ctx, kube, r, len(macs), o.state); err != nil {
		return err
	}
	for _, name := range servers {
		if _, err := labAPI.Boot(ctx, name, control.Override{Order: "Hdd,Pxe"}); err != nil {
			return err
		}
	}
	return nil
}

// awaitNetworkBoot waits until the network offers the seed of a registration to so many NICs.
func awaitNetworkBoot(ctx context.Context, kube client.Client, r *elementalv1.ElementalRegistration, nics int, state string) error {
	const poll, patience = 100 * time.Millisecond, time.Minute
	last := "its controller has not answered: see " + filepath.Join(state, lab.LogFile)
	err := wait.PollUntilContextTimeout(ctx, poll, patience, true, func(ctx context.Context) (bool, error) {
		if err := kube.Get(ctx, client.ObjectKeyFromObject(r), r); err != nil {
			return false, err
		}
		c := condition.Get(r, elementalv1.NetworkBootReady)
		if c == nil {
			return false, nil
		}
		last = c.Message
		return condition.IsTrue(r, elementalv1.NetworkBootReady) && c.Message == elementalv1.NetworkBootMessage(nics), nil
	})
	if errors.Is(err, context.DeadlineExceeded) && ctx.Err() == nil {
		return fmt.Errorf("the registration %s is not offered over the network: %s", r.Name, last)
	}
	return err
}

// noRegistration explains the error of a registration that is not there.
func noRegistration(ctx context.Context, kube client.Client, namespace, name string, err error) error {
	if !apierrors.IsNotFound(err) {
		return withoutFamily(err)
	}
	var list elementalv1.ElementalRegistrationList
	if err := kube.List(ctx, &list, client.InNamespace(namespace)); err != nil {
		return err
	}
	if len(list.Items) == 0 {
		return fmt.Errorf("the namespace %s has no ElementalRegistration: create one (see labctl demo elemental --help), or name another --namespace", namespace)
	}
	var names []string
	for i := range list.Items {
		names = append(names, list.Items[i].Name)
	}
	return fmt.Errorf("the namespace %s has no ElementalRegistration %s: use one of %s, or another --namespace", namespace, name, strings.Join(names, ", "))
}

// isSeed reports whether a file is the medium of a registration: it starts the unit that registers.
func isSeed(name string) bool {
	return outfile.Contains(name, elementalsim.SeedUnit)
}

// seedFile is the name of the medium of a registration on the lab's image server.
func seedFile(registration string) string { return filepath.Base(seedPrefix + registration + ".iso") }

// seedPrefix begins the names of media on the lab's image server that labctl has put there. Users
// have files called seed-*.iso there.
const seedPrefix = "metalab-seed-"
