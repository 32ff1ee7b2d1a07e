package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	metal3 "github.com/metal3-io/baremetal-operator/apis/metal3.io/v1alpha1"
	mcv1 "github.com/openshift/api/machineconfiguration/v1"
	"github.com/spf13/cobra"
	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/metalab-dev/metalab/controller/config"
	"github.com/metalab-dev/metalab/controller/machineconfig"
	"github.com/metalab-dev/metalab/emulator/rack/control"
	"github.com/metalab-dev/metalab/lab"
)

// layeringNodes is how many nodes the demonstration's pool has.
const layeringNodes = 3

// Names of the demonstration's objects.
const (
	layeringConfig = "50-demo"
	layeringFile   = "/etc/demo.conf"
	layeringUnit   = "demo.service"
	workerLabel    = "node-role.kubernetes.io/worker"
)

func newDemoLayering(o *options) *cobra.Command {
	speed, wait := "", 15*time.Minute
	c := &cobra.Command{
		Use:   "layering",
		Short: "Give three nodes a file, a unit and a kernel argument by an OS image, and leave the lab up",
		Long: `Start a lab with the family machineconfig if none is up, and provision three servers as
nodes of the pool worker, each with a machine-config daemon. Then create a MachineConfig with a
file, a unit and a kernel argument, and a MachineOSConfig: show the rendered configuration, the
log and the digest of the image that is built of it, and each state of each node, until all have
booted the image.`,
		Example: "  labctl demo layering\n  labctl demo layering --speed max",
		RunE: func(c *cobra.Command, _ []string) error {
			ctx, cancel := context.WithTimeout(c.Context(), wait)
			defer cancel()
			if _, err := control.NewClient(o.state).Status(ctx); errors.Is(err, control.ErrNoLab) {
				o.showEnding(c.ErrOrStderr())
				args := []string{"up", "--with=" + config.MachineConfig}
				if speed != "" {
					args = append(args, "--speed="+speed)
				}
				if err := launch(ctx, o, args, c.OutOrStdout()); err != nil {
					return err
				}
			}
			return demoLayering(ctx, o, c.OutOrStdout())
		},
	}
	c.Flags().StringVar(&speed, "speed", "", "speed of the lab's time, when the lab is not up yet: 60x, or max")
	c.Flags().DurationVar(&wait, "timeout", wait, "total time to wait")
	return c
}

// layering is a running demonstration.
type layering struct {
	*day2 // prints and waits as day2 does
	rest  *rest.Config
}

func demoLayering(ctx context.Context, o *options, out io.Writer) error {
	st, hosts, err := inspect(ctx, o)
	if err != nil {
		return err
	}
	if st.Kubeconfig == "" {
		return errors.New("this lab has no Kubernetes API: it was made with --no-kube")
	}
	if len(hosts) < layeringNodes {
		return fmt.Errorf("this lab has %d servers, and layering needs %d: give --state another folder, or stop the lab with labctl down", len(hosts), layeringNodes)
	}
	api, err := clientcmd.BuildConfigFromFlags("", st.Kubeconfig)
	if err != nil {
		return fmt.Errorf("kubeconfig: %w", err)
	}
	kube, err := kubeClient(st.Kubeconfig)
	if err != nil {
		return err
	}
	d := &layering{&day2{o: o, kube: kube, out: out, began: time.Now(), shown: map[string]string{}}, api}
	if _, err := nodesOfPool(ctx, kube, machineconfig.WorkerPool); err != nil {
		return err
	}
	var names []string
	for _, h := range hosts[:layeringNodes] {
		names = append(names, h.Name)
		if err := d.provision(ctx, st, h); err != nil {
			return err
		}
	}
	for _, step := range []func(context.Context, []string) error{d.join, d.first, d.layer} {
		if err := step(ctx, names); err != nil {
			return err
		}
	}
	return d.proof(ctx, st, names[0])
}

// provision applies a host whose user data make it a node.
func (d *layering) provision(ctx context.Context, st control.Status, h control.Host) error {
	account := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: lab.NodeAccounts, Name: h.Name}}
	if err := d.kube.Create(ctx, account); err != nil && !apierrors.IsAlreadyExists(err) {
		return err
	}
	token := &authenticationv1.TokenRequest{}
	if err := d.kube.SubResource("token").Create(ctx, account, token); err != nil {
		return fmt.Errorf("token of %s: %w", h.Name, err)
	}
	text, err := lab.NodeData{Name: h.Name, API: d.rest, Token: token.Status.Token, Units: []string{"lab-agent-node", "lab-agent-mcd"}}.CloudConfig()
	if err != nil {
		return err
	}
	data := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: lab.Namespace, Name: h.Name + "-user-data"}, StringData: map[string]string{"userData": text}}
	secret, host := lab.Objects(h)
	host.Spec.RootDeviceHints = &metal3.RootDeviceHints{MinSizeGigabytes: demoDisk}
	host.Spec.UserData = &corev1.SecretReference{Namespace: data.Namespace, Name: data.Name}
	image, raw := st.Images+lab.DemoImage, "raw"
	host.Spec.Image = &metal3.Image{URL: image, Checksum: image + ".sha256", ChecksumType: metal3.SHA256, DiskFormat: &raw}
	for _, o := range []client.Object{data, secret, host} {
		if err := d.kube.Create(ctx, o); err != nil && !apierrors.IsAlreadyExists(err) {
			return err
		}
	}
	return nil
}

// join waits until the servers are nodes, and puts them into the pool.
func (d *layering) join(ctx context.Context, names []string) error {
	return d.until(ctx, "the servers are nodes", func() (bool, error) {
		ready := 0
		for _, name := range names {
			n := &corev1.Node{}
			err := d.kube.Get(ctx, client.ObjectKey{Name: name}, n)
			if apierrors.IsNotFound(err) {
				h := &metal3.BareMetalHost{}
				if err := d.kube.Get(ctx, client.ObjectKey{Namespace: lab.Namespace, Name: name}, h); err != nil {
					return false, err
				}
				if s := string(h.Status.Provisioning.State); s != "" {
					d.show("host "+name, s)
				}
				continue
			}
			if err != nil {
				return false, err
			}
			if _, ok := n.Labels[workerLabel]; !ok {
				before := n.DeepCopy()
				n.Labels[workerLabel] = ""
				if err := d.kube.Patch(ctx, n, client.MergeFrom(before)); err != nil {
					return false, err
				}
			}
			d.show("node "+name, "joins the pool "+machineconfig.WorkerPool)
			ready++
		}
		return ready == len(names), nil
	})
}

// states shows the states of nodes, and reports whether all have a configuration and an image.
func (d *layering) states(ctx context.Context, names []string, config string, layered bool) (bool, error) {
	nodes, err := nodesOfPool(ctx, d.kube, machineconfig.WorkerPool)
	if err != nil {
		return false, err
	}
	done := 0
	for _, n := range nodes {
		if !slices.Contains(names, n.Node) {
			continue
		}
		text := cmp.Or(n.State, "new")
		if n.Desired != n.Current {
			text += " to " + n.Desired
		}
		if n.DesiredImage != n.CurrentImage && n.DesiredImage != "" {
			text += " with the image " + shortImage(n.DesiredImage)
		}
		if n.Reason != "" {
			text += ": " + n.Reason
		}
		if strings.TrimSpace(text) != "" {
			d.show("node "+n.Node, text)
		}
		if n.State == machineconfig.Done && n.Current == config && n.Desired == config && n.CurrentImage == n.DesiredImage && (n.CurrentImage != "") == layered {
			done++
		}
	}
	return done == len(names), nil
}

// shortImage returns the digest of an image with as many digits as people compare.
func shortImage(image string) string {
	_, digest, _ := strings.Cut(image, "@")
	return digest[:min(len(digest), len("sha256:")+12)]
}

func (d *layering) pool(ctx context.Context) (*mcv1.MachineConfigPool, error) {
	p := &mcv1.MachineConfigPool{}
	return p, d.kube.Get(ctx, client.ObjectKey{Name: machineconfig.WorkerPool}, p)
}

// first waits until the nodes have the pool's first configuration.
func (d *layering) first(ctx context.Context, names []string) error {
	return d.until(ctx, "the nodes have the first configuration", func() (bool, error) {
		p, err := d.pool(ctx)
		if err != nil || p.Spec.Configuration.Name == "" {
			return false, err
		}
		d.show("rendered configuration", p.Spec.Configuration.Name)
		// A lab that was up before may be layered already.
		done, err := d.states(ctx, names, p.Spec.Configuration.Name, false)
		if done || err != nil {
			return done, err
		}
		return d.states(ctx, names, p.Spec.Configuration.Name, true)
	})
}

// layer creates the configuration, and waits until all nodes have booted its image.
func (d *layering) layer(ctx context.Context, names []string) error {
	before, err := d.pool(ctx)
	if err != nil {
		return err
	}
	pull, err := d.registry(ctx)
	if err != nil {
		return err
	}
	for _, o := range layeringObjects(pull) {
		if err := d.kube.Create(ctx, o); err != nil && !apierrors.IsAlreadyExists(err) {
			return fmt.Errorf("%s %s: %w", o.GetObjectKind().GroupVersionKind().Kind, o.GetName(), err)
		}
	}
	fmt.Fprintf(d.out, "\nCreated MachineConfig %s: the file %s, the unit %s and the kernel argument demo=1; and MachineOSConfig %s\n\n", layeringConfig, layeringFile, layeringUnit, machineconfig.WorkerPool)
	logged := map[string]bool{}
	return d.until(ctx, "the nodes have booted the image", func() (bool, error) {
		p, err := d.pool(ctx)
		if err != nil {
			return false, err
		}
		name := p.Spec.Configuration.Name
		if !slices.ContainsFunc(p.Spec.Configuration.Source, func(r corev1.ObjectReference) bool { return r.Name == layeringConfig }) {
			return false, nil
		}
		if name != before.Spec.Configuration.Name {
			d.show("rendered configuration", name)
		}
		if err := d.builds(ctx, logged); err != nil {
			return false, err
		}
		return d.states(ctx, names, name, true)
	})
}

// builds shows the builds of the pool, the log of each once it has ended, and its digest.
func (d *layering) builds(ctx context.Context, logged map[string]bool) error {
	var all mcv1.MachineOSBuildList
	if err := d.kube.List(ctx, &all); err != nil {
		return err
	}
	for _, b := range all.Items {
		ended := false
		for _, c := range []mcv1.BuildProgress{mcv1.MachineOSBuildPrepared, mcv1.MachineOSBuilding, mcv1.MachineOSBuildSucceeded, mcv1.MachineOSBuildFailed, mcv1.MachineOSBuildInterrupted} {
			if is := apimeta.FindStatusCondition(b.Status.Conditions, string(c)); is != nil && is.Status == metav1.ConditionTrue {
				d.show("build "+b.Name, is.Message)
				ended = c == mcv1.MachineOSBuildSucceeded || c == mcv1.MachineOSBuildFailed
			}
		}
		if !ended || logged[b.Name] {
			continue
		}
		log, err := buildLog(ctx, d.kube, b.Name)
		if err != nil {
			continue // it is written soon, or never: the image was carried over
		}
		logged[b.Name] = true
		for line := range strings.Lines(log) {
			fmt.Fprintf(d.out, "           | %s\n", strings.TrimRight(line, "\n"))
		}
		if b.Status.DigestedImagePushSpec != "" {
			d.show("image", string(b.Status.DigestedImagePushSpec))
		}
	}
	return nil
}

// registry returns the repository of the lab's OS images: that of the base image.
func (d *layering) registry(ctx context.Context) (string, error) {
	c := &mcv1.ControllerConfig{}
	if err := d.kube.Get(ctx, client.ObjectKey{Name: machineconfig.ControllerConfigName}, c); err != nil {
		return "", err
	}
	host, _, ok := strings.Cut(c.Spec.BaseOSContainerImage, "/")
	if !ok {
		return "", fmt.Errorf("the base image of the ControllerConfig is %q: this lab has no registry", c.Spec.BaseOSContainerImage)
	}
	return host, nil
}

// layeringObjects are the MachineConfig and the MachineOSConfig.
func layeringObjects(registry string) []client.Object {
	config := `{"ignition":{"version":"3.5.0"},` +
		`"storage":{"files":[{"path":"` + layeringFile + `","mode":420,"overwrite":true,"contents":{"source":"data:,greeting%20=%20hello%0A"}}]},` +
		`"systemd":{"units":[{"name":"` + layeringUnit + `","enabled":true,"contents":"[Unit]\nDescription=Demonstration\n[Service]\nType=oneshot\nRemainAfterExit=yes\nExecStart=/bin/true\n[Install]\nWantedBy=multi-user.target\n"}]}}`
	return []client.Object{
		&mcv1.MachineConfig{
			TypeMeta:   metav1.TypeMeta{APIVersion: mcv1.GroupVersion.String(), Kind: "MachineConfig"},
			ObjectMeta: metav1.ObjectMeta{Name: layeringConfig, Labels: map[string]string{mcv1.MachineConfigRoleLabelKey: machineconfig.WorkerPool}},
			Spec:       mcv1.MachineConfigSpec{Config: runtime.RawExtension{Raw: []byte(config)}, KernelArguments: []string{"demo=1"}},
		},
		&mcv1.MachineOSConfig{
			TypeMeta:   metav1.TypeMeta{APIVersion: mcv1.GroupVersion.String(), Kind: "MachineOSConfig"},
			ObjectMeta: metav1.ObjectMeta{Name: machineconfig.WorkerPool},
			Spec: mcv1.MachineOSConfigSpec{
				MachineConfigPool:       mcv1.MachineConfigPoolReference{Name: machineconfig.WorkerPool},
				ImageBuilder:            mcv1.MachineOSImageBuilder{ImageBuilderType: mcv1.JobBuilder},
				BaseImagePullSecret:     &mcv1.ImageSecretObjectReference{Name: lab.PullSecret},
				RenderedImagePushSecret: mcv1.ImageSecretObjectReference{Name: lab.PushSecret},
				RenderedImagePushSpec:   mcv1.ImageTagFormat(registry + "/lab/worker:latest"),
				Containerfile:           []mcv1.MachineOSContainerfile{{ContainerfileArch: mcv1.NoArch, Content: "FROM configs AS final\nLABEL demo=layering\n"}},
			},
		},
	}
}

// proof shows that a node has all of the configuration from the image, and no local file of it.
func (d *layering) proof(ctx context.Context, st control.Status, host string) error {
	c := control.NewClient(d.o.state)
	for _, name := range []string{layeringFile, "/proc/cmdline"} {
		f, err := c.Files(ctx, host, name)
		if err != nil {
			return err
		}
		fmt.Fprintf(d.out, "\n%s of %s: %s", name, host, f.Content)
	}
	changes, err := c.FileChanges(ctx, host)
	if err != nil {
		return err
	}
	for _, x := range changes {
		if x.Path == layeringFile || strings.HasSuffix(x.Path, "/"+layeringUnit) {
			return fmt.Errorf("%s is a local file of %s: it should be the image's", x.Path, host)
		}
	}
	d.o.say(d.out, `
No file of the configuration is a local file of the node: all come from the image.

The lab is still up: labctl down ends it. See for yourself:
  export KUBECONFIG=%s
  labctl mco status %s -o wide
  labctl kubectl get mcp,machineosconfigs,machineosbuilds,machineconfignodes
  labctl host files %s %s
  labctl host cp FILE %s:%s   # drift: the node becomes Degraded
`, st.Kubeconfig, machineconfig.WorkerPool, host, layeringFile, host, layeringFile)
	return nil
}
