package main

import (
	"bytes"
	"context"
	"embed"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"text/template"
	"time"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/tools/clientcmd"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	clusterv1 "github.com/metalab-dev/metalab/controller/api/cluster/v1alpha1"
	kaasv1 "github.com/metalab-dev/metalab/controller/api/kaas/v1alpha1"
	"github.com/metalab-dev/metalab/controller/config"
	"github.com/metalab-dev/metalab/controller/mosk/hostos/module"
	"github.com/metalab-dev/metalab/emulator/rack/control"
	"github.com/metalab-dev/metalab/lab"
)

//go:embed manifests
var day2Manifests embed.FS

// The demonstration's machines, and the modules that its configuration uses in their order.
var (
	day2Machines = []day2Machine{{"control-0", true}, {"worker-0", false}, {"worker-1", false}}
	day2Modules  = []string{"sysctl", "file-template"}
)

// Names of the directory, in the state directory, of the manifests that were applied, and of these.
const (
	day2Dir               = "day2"
	day2ClusterFile       = "day2-cluster.yaml"
	day2ConfigurationFile = "day2-configuration.yaml"
)

// day2Manager owns the fields of the demonstration's objects.
const day2Manager = "labctl-demo"

type day2Machine struct {
	Name    string
	Control bool
}

// day2Module is an entry of a HostOSConfigurationModules.
type day2Module struct{ Name, Version, URL, SHA256 string }

func newDemoDay2(o *options) *cobra.Command {
	speed, wait := "", 15*time.Minute
	c := &cobra.Command{
		Use:   "day2",
		Short: "Deploy a cluster on three servers, configure its workers, and leave the lab up",
		Long: `Start a lab with the family hoc if none is up, and apply, as YAML that stays in the
directory day2 of the lab's state: three BareMetalHosts; a Cluster with its releases, a chart
of the lab's repository and three Machines; two modules and a HostOSConfiguration. Show each
state, the Nodes that the servers become, the Helm releases, the state items that the LCM agents
in the servers execute, and the files that these have changed.

The modules are Ansible playbooks, which run in the emulated servers: ansible-playbook must be
installed (Debian: ansible. ansible-core is enough for the demo's modules, and has no collections
for yours).`,
		Example: "  labctl demo day2\n  labctl demo day2 --speed max",
		RunE: func(c *cobra.Command, _ []string) error {
			if _, err := exec.LookPath("ansible-playbook"); err != nil {
				return errors.New("the modules need ansible-playbook: install the package ansible")
			}
			ctx, cancel := context.WithTimeout(c.Context(), wait)
			defer cancel()
			if _, err := control.NewClient(o.state).Status(ctx); errors.Is(err, control.ErrNoLab) {
				o.showEnding(c.ErrOrStderr())
				args := []string{"up", "--with=" + config.HOC}
				if speed != "" {
					args = append(args, "--speed="+speed)
				}
				if err := launch(ctx, o, args, c.OutOrStdout()); err != nil {
					return err
				}
			}
			return demoDay2(ctx, o, c.OutOrStdout())
		},
	}
	c.Flags().StringVar(&speed, "speed", "", "speed of the lab's time, when the lab is not up yet: 60x, or max")
	c.Flags().DurationVar(&wait, "timeout", wait, "total time to wait")
	return c
}

// day2 is a running demonstration.
type day2 struct {
	o     *options
	kube  client.Client
	out   io.Writer
	began time.Time
	shown map[string]string // the last state of each object that was printed
}

func demoDay2(ctx context.Context, o *options, out io.Writer) error {
	st, hosts, err := inspect(ctx, o)
	if err != nil {
		return err
	}
	if st.Kubeconfig == "" {
		return errors.New("this lab has no Kubernetes API: it was made with --no-kube")
	}
	if len(hosts) < len(day2Machines) {
		return fmt.Errorf("this lab has %d servers, and day2 needs %d: give --state another folder, or stop the lab with labctl down", len(hosts), len(day2Machines))
	}
	rest, err := clientcmd.BuildConfigFromFlags("", st.Kubeconfig)
	if err != nil {
		return fmt.Errorf("kubeconfig: %w", err)
	}
	rest.QPS = -1 // a limit of requests would fail before the timeout, with another error
	scheme, err := lab.Scheme()
	if err != nil {
		return err
	}
	kube, err := client.New(rest, client.Options{Scheme: scheme})
	if err != nil {
		return fmt.Errorf("kubernetes: %w", err)
	}
	if err := kube.List(ctx, &kaasv1.HostOSConfigurationList{}, client.Limit(1)); meta.IsNoMatchError(err) {
		return fmt.Errorf("this lab lacks the family %s: stop it with labctl down, and start it with labctl up --with %s", config.HOC, config.HOC)
	} else if err != nil {
		return fmt.Errorf("kubernetes: %w", err)
	}
	d := &day2{o: o, kube: kube, out: out, began: time.Now(), shown: map[string]string{}}
	if err := d.deploy(ctx, st, hosts[:len(day2Machines)]); err != nil {
		return err
	}
	for _, step := range []func(context.Context) error{d.nodes, d.charts} {
		if err := step(ctx); err != nil {
			return err
		}
	}
	if err := d.configure(ctx, st); err != nil {
		return err
	}
	return d.changes(ctx, st)
}

// deploy applies the hosts, the Cluster and its Machines, and waits until these are Ready.
func (d *day2) deploy(ctx context.Context, st control.Status, hosts []control.Host) error {
	var text bytes.Buffer
	for _, h := range hosts {
		secret, host := lab.Objects(h)
		host.Labels = map[string]string{"day2": "true"}
		for _, o := range []client.Object{secret, host} {
			y, err := yaml.Marshal(o)
			if err != nil {
				return err
			}
			fmt.Fprintf(&text, "---\n%s", y)
		}
	}
	text.WriteString("---\n")
	if st.Agent == nil {
		return errors.New("the lab has no releases: start it with --with hoc")
	}
	values := struct {
		Image, Charts string
		Agent         control.Program
		NodeUnit      []string // lines
		Machines      []day2Machine
	}{st.Images + lab.DemoImage, st.Charts, *st.Agent, nodeUnit(), day2Machines}
	if err := d.apply(ctx, day2ClusterFile, text.Bytes(), values); err != nil {
		return err
	}
	return d.until(ctx, "the Machines are Ready", func() (bool, error) {
		ready := 0
		for _, x := range day2Machines {
			m := &clusterv1.Machine{}
			if err := d.kube.Get(ctx, client.ObjectKey{Namespace: lab.Namespace, Name: x.Name}, m); err != nil {
				return false, err
			}
			s := m.Status.ProviderStatus
			if s == nil {
				continue
			}
			state := s.Status
			if i := s.ProviderInstanceState; i != nil && state == "Provision" {
				state = fmt.Sprintf("%s on %s, %s", state, i.ID, i.State)
			}
			for _, c := range s.Conditions {
				if !c.Ready && c.Message != "" {
					state += ": " + c.Message
				}
			}
			if s.PrivateIP != "" && s.Ready {
				state += ", " + s.PrivateIP
			}
			d.show("Machine "+x.Name, state)
			if s.Ready {
				ready++
			}
		}
		return ready == len(day2Machines), nil
	})
}

// configure serves the modules from the lab's images, applies the configuration, and waits
// until each item of each machine has succeeded.
func (d *day2) configure(ctx context.Context, st control.Status) error {
	var values struct{ Modules []day2Module }
	for _, name := range day2Modules {
		files, err := moduleFiles(builtin + name)
		if err != nil {
			return err
		}
		archive, m, err := module.Build(files)
		if err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
		if err := replaceFile(filepath.Join(d.o.state, lab.ImagesDir, m.FileName()), archive, 0o644); err != nil {
			return err
		}
		values.Modules = append(values.Modules, day2Module{m.Name, m.Version, st.Images + m.FileName(), m.SHA256})
	}
	if err := d.apply(ctx, day2ConfigurationFile, nil, values); err != nil {
		return err
	}
	workers := 0
	for _, x := range day2Machines {
		if !x.Control {
			workers++
		}
	}
	return d.until(ctx, "the configuration has succeeded", func() (bool, error) {
		o := &kaasv1.HostOSConfiguration{}
		if err := d.kube.Get(ctx, client.ObjectKey{Namespace: lab.Namespace, Name: "day2"}, o); err != nil {
			return false, err
		}
		for _, c := range o.Status.Configs {
			if c.Error != "" {
				d.show("HostOSConfiguration day2", c.Error)
			}
		}
		done := len(o.Status.MachinesStates) == workers
		for _, name := range slices.Sorted(maps.Keys(o.Status.MachinesStates)) {
			m := o.Status.MachinesStates[name]
			if m.Message != "" {
				d.show(name, m.Message)
			}
			items := 0
			for _, config := range slices.Sorted(maps.Keys(m.ConfigStateItemsStatuses)) {
				for _, item := range slices.Sorted(maps.Keys(m.ConfigStateItemsStatuses[config])) {
					s := m.ConfigStateItemsStatuses[config][item].State
					d.show(strings.TrimPrefix(name, lab.Namespace+"/")+" "+item, string(s))
					done = done && s == kaasv1.ItemSuccess
					items++
				}
			}
			done = done && items == 2*len(day2Modules)
		}
		return done, nil
	})
}

// changes prints the files that differ from the image on one of the workers.
func (d *day2) changes(ctx context.Context, st control.Status) error {
	m := &clusterv1.Machine{}
	if err := d.kube.Get(ctx, client.ObjectKey{Namespace: lab.Namespace, Name: "worker-0"}, m); err != nil {
		return err
	}
	i := m.Status.ProviderStatus.ProviderInstanceState
	if i == nil {
		return errors.New("worker-0 has lost its host")
	}
	_, host, _ := strings.Cut(i.ID, "/")
	fmt.Fprintf(d.out, "\nThe LCM agent of worker-0 runs in the server %s; these files differ from its image:\n", host)
	f, err := control.NewClient(d.o.state).FileChanges(ctx, host)
	if err != nil {
		return err
	}
	for _, c := range f {
		if strings.HasPrefix(c.Path, "/etc/day2") || strings.HasPrefix(c.Path, "/etc/sysctl.d") {
			fmt.Fprintf(d.out, "  %s %s\n", c.Change, c.Path)
		}
	}
	d.o.say(d.out, `
The lab is still up: labctl down ends it. Its objects are in %s; see for yourself:
  export KUBECONFIG=%s
  labctl kubectl get clusters,machines,lcmclusters,lcmmachines,hocm,hoc,bmh
  labctl kubectl get nodes -o wide
  labctl kubectl get helmbundle day2 -o yaml
  labctl kubectl get configmap day2-settings -o yaml
  labctl kubectl get hoc day2 -o yaml
  labctl host files %s /etc/day2/app.conf
  labctl host exec %s -- sysctl vm.swappiness
`, filepath.Join(d.o.state, day2Dir), st.Kubeconfig, host, host)
	return nil
}

// apply renders a manifest, behind the objects in more, stores it in the state directory,
// and applies its objects.
func (d *day2) apply(ctx context.Context, name string, more []byte, values any) error {
	t, err := template.ParseFS(day2Manifests, "manifests/"+name)
	if err != nil {
		return err
	}
	text := bytes.NewBuffer(more)
	if err := t.Execute(text, values); err != nil {
		return err
	}
	dir := filepath.Join(d.o.state, day2Dir)
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return err
	}
	file := filepath.Join(dir, name)
	if err := os.WriteFile(file, text.Bytes(), 0o600); err != nil { // it has passwords of BMCs
		return err
	}
	fmt.Fprintf(d.out, "\nApplying %s:\n", file)
	for document := range bytes.SplitSeq(text.Bytes(), []byte("---\n")) {
		o := &unstructured.Unstructured{}
		if err := yaml.Unmarshal(document, &o.Object); err != nil {
			return fmt.Errorf("%s: %w", file, err)
		}
		if len(o.Object) == 0 {
			continue
		}
		if err := d.kube.Apply(ctx, client.ApplyConfigurationFromUnstructured(o), client.FieldOwner(day2Manager), client.ForceOwnership); err != nil {
			return fmt.Errorf("%s %s: %w", o.GetKind(), o.GetName(), err)
		}
		fmt.Fprintf(d.out, "  %s %s\n", o.GetKind(), o.GetName())
	}
	fmt.Fprintln(d.out)
	return nil
}

// day2Poll is how often, in real time, objects are read.
const day2Poll = 300 * time.Millisecond

// until calls step until it returns true.
func (d *day2) until(ctx context.Context, what string, step func() (bool, error)) error {
	tick := time.NewTicker(day2Poll)
	defer tick.Stop()
	for {
		done, err := step()
		if err != nil && ctx.Err() != nil { // a request that the timeout has ended
			return fmt.Errorf("waiting until %s: %w", what, ctx.Err())
		}
		if err != nil || done {
			return err
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("waiting until %s: %w", what, ctx.Err())
		case <-tick.C:
		}
	}
}

// show prints a state that is new.
func (d *day2) show(object, state string) {
	if d.shown[object] == state {
		return
	}
	d.shown[object] = state
	fmt.Fprintf(d.out, "%7.1fs  %s: %s\n", time.Since(d.began).Seconds(), object, state)
}
