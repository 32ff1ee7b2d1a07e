package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	metal3 "github.com/metal3-io/baremetal-operator/apis/metal3.io/v1alpha1"
	"github.com/spf13/cobra"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/client-go/tools/clientcmd"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/metalab-dev/metalab/emulator/rack/control"
	"github.com/metalab-dev/metalab/lab"
)

func newDemo(o *options) *cobra.Command {
	speed, profile, wait := "", "", 10*time.Minute
	c := &cobra.Command{
		Use:   "demo",
		Short: "Provision one server and leave the lab up",
		Long: `Start the lab if none is up, apply the Secret and the BareMetalHost of its first
server, provision it with the lab's own image, and show each state.`,
		Example: "  labctl demo\n  labctl demo --speed max\n  labctl demo --profile dell-r760\n  labctl demo day2\n  labctl demo elemental\n  labctl demo layering",
		RunE: func(c *cobra.Command, _ []string) error {
			ctx, cancel := context.WithTimeout(c.Context(), wait)
			defer cancel()
			out := c.OutOrStdout()
			if _, err := control.NewClient(o.state).Status(ctx); errors.Is(err, control.ErrNoLab) {
				o.showEnding(c.ErrOrStderr())
				args := []string{"up"}
				if speed != "" {
					args = append(args, "--speed="+speed)
				}
				if profile != "" {
					args = append(args, "--profile="+profile)
				}
				if err := launch(ctx, o, args, out); err != nil {
					return err
				}
			}
			return demo(ctx, o, profile, out)
		},
	}
	c.AddCommand(newDemoDay2(o), newDemoElemental(o), newDemoLayering(o))
	c.Flags().StringVar(&speed, "speed", "", "speed of the lab's time, when the lab is not up yet: 60x, or max")
	c.Flags().StringVar(&profile, "profile", "", "model of the server: "+strings.Join(lab.Profiles(), ", ")+", or a file or folder as for labctl up; with a lab that is up, one of its models")
	must(c.RegisterFlagCompletionFunc("profile", cobra.FixedCompletions(lab.Profiles(), cobra.ShellCompDirectiveDefault)))
	c.Flags().DurationVar(&wait, "timeout", wait, "total time to wait")
	return o.staysUp(c)
}

func demo(ctx context.Context, o *options, profile string, out io.Writer) error {
	st, hosts, err := inspect(ctx, o)
	if err != nil {
		return err
	}
	if st.Kubeconfig == "" {
		return errors.New("this lab has no Kubernetes API: it was made with --no-kube")
	}
	c, err := kubeClient(st.Kubeconfig)
	if err != nil {
		return err
	}
	chosen, err := ofProfile(hosts, profile)
	if err != nil {
		return err
	}
	secret, host := lab.Objects(chosen)
	// Not every model has its first disk where the controllers look by default.
	host.Spec.RootDeviceHints = &metal3.RootDeviceHints{MinSizeGigabytes: demoDisk}
	image := st.Images + lab.DemoImage
	raw := "raw"
	host.Spec.Image = &metal3.Image{URL: image, Checksum: image + ".sha256", ChecksumType: metal3.SHA256, DiskFormat: &raw}
	if err := apply(ctx, c, secret, host); err != nil {
		return err
	}
	fmt.Fprintf(out, "\n%s: %s\n", host.Name, host.Spec.BMC.Address)
	if err := follow(ctx, c, host, out); err != nil {
		return err
	}
	return epilogue(ctx, o, host.Name, out)
}

// demoDisk is the minimum size of the disk for the image in GB.
const demoDisk = 4

// ofProfile returns the first server of a model. For no model, or a model in a file,
// it returns the first of all servers.
func ofProfile(hosts []control.Host, profile string) (control.Host, error) {
	for _, h := range hosts {
		if profile == "" || isPath(profile) || h.Profile == profile {
			return h, nil
		}
	}
	return control.Host{}, fmt.Errorf("this lab has no server of the model %s: stop it with labctl down, or give --state another folder", profile)
}

func kubeClient(kubeconfig string) (client.WithWatch, error) {
	cfg, err := clientcmd.BuildConfigFromFlags("", kubeconfig)
	if err != nil {
		return nil, fmt.Errorf("kubeconfig: %w", err)
	}
	scheme, err := lab.Scheme()
	if err != nil {
		return nil, err
	}
	c, err := client.NewWithWatch(cfg, client.Options{Scheme: scheme})
	if err != nil {
		return nil, fmt.Errorf("kubernetes: %w", err)
	}
	return c, nil
}

// apply creates the objects, or sets the image of an existing host.
func apply(ctx context.Context, c client.Client, secret *corev1.Secret, host *metal3.BareMetalHost) error {
	if err := c.Create(ctx, secret); err != nil && !apierrors.IsAlreadyExists(err) {
		return err
	}
	want := host.DeepCopy()
	err := c.Create(ctx, host)
	if !apierrors.IsAlreadyExists(err) {
		return err
	}
	if err := c.Get(ctx, client.ObjectKeyFromObject(want), host); err != nil {
		return err
	}
	before := host.DeepCopy()
	host.Spec.Online, host.Spec.Image, host.Spec.RootDeviceHints = true, want.Spec.Image, want.Spec.RootDeviceHints
	if err := c.Patch(ctx, host, client.MergeFrom(before)); err != nil {
		return err
	}
	return nil
}

// follow prints the host's states until it is provisioned.
func follow(ctx context.Context, c client.WithWatch, host *metal3.BareMetalHost, out io.Writer) error {
	w, err := c.Watch(ctx, &metal3.BareMetalHostList{}, client.InNamespace(host.Namespace), client.MatchingFields{"metadata.name": host.Name})
	if err != nil {
		return err
	}
	defer w.Stop()
	start, last, lastError := time.Now(), metal3.ProvisioningState("none yet"), ""
	for {
		select {
		case <-ctx.Done():
			return fmt.Errorf("%s is still %s: %w", host.Name, last, ctx.Err())
		case ev, ok := <-w.ResultChan():
			h, is := ev.Object.(*metal3.BareMetalHost)
			if !ok || !is {
				return fmt.Errorf("the API server ended the watch of %s", host.Name)
			}
			at := time.Since(start).Seconds()
			if h.Status.ErrorMessage != "" && h.Status.ErrorMessage != lastError {
				fmt.Fprintf(out, "%7.1fs  %s: %s\n", at, h.Status.ErrorType, h.Status.ErrorMessage)
			}
			lastError = h.Status.ErrorMessage
			if s := h.Status.Provisioning.State; s != last && s != "" {
				last = s
				fmt.Fprintf(out, "%7.1fs  %s\n", at, s)
			}
			if last == metal3.StateProvisioned && h.Status.Provisioning.Image.URL == host.Spec.Image.URL {
				return nil
			}
		}
	}
}

func epilogue(ctx context.Context, o *options, name string, out io.Writer) error {
	st, hosts, err := inspect(ctx, o)
	if err != nil {
		return err
	}
	for _, h := range hosts {
		if h.Name == name {
			o.say(out, "\n%s is provisioned; its power is %s. The lab is still up: labctl down ends it.\n", name, h.Power)
		}
	}
	fmt.Fprintf(out, "  export KUBECONFIG=%s\n", st.Kubeconfig)
	return nil
}
