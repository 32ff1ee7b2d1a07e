package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime"
	capi "sigs.k8s.io/cluster-api/api/v1beta1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	elementalv1 "github.com/metalab-dev/metalab/controller/api/elemental/v1beta1"
	"github.com/metalab-dev/metalab/controller/config"
	"github.com/metalab-dev/metalab/emulator/machine"
	"github.com/metalab-dev/metalab/emulator/rack/control"
	"github.com/metalab-dev/metalab/lab"
)

// The demonstration's servers, and the machines of its cluster.
const elementalServers = 4

var elementalMachines = []string{"m-0", "m-1"}

// demoRegistration is the configuration of the demonstration's registration.
const demoRegistration = `cloudConfig:
  write_files: [{path: /etc/from-registration, content: demo}]
elemental:
  agent:
    osPlugin: elemental-sim
    reconciliation: 1000000000
    hostname: {useExisting: true}
    postInstall: {reboot: true}
    postReset: {reboot: true}
  install: {debug: true}
  reset: {resetOem: true}
`

func newDemoElemental(o *options) *cobra.Command {
	speed, wait := "", 15*time.Minute
	c := &cobra.Command{
		Use:   "elemental",
		Short: "Four servers register themselves, two join a cluster, one is updated and one reset; leave the lab up",
		Long: `Start a lab with the family elemental if none is up. Four servers boot a medium, register
themselves and install their disks; two become machines of a cluster of Cluster API; one takes
another version of its operating system in place; one is reset, and registers again. Show the
objects with kubectl, and the files that the agent has written on each server.

Two flows to try afterwards, or in a lab of your own:

  1. A server registers itself.
       labctl up --with elemental
       labctl kubectl apply -f registration.yaml       # an ElementalRegistration named fire, with
                                                       # agent.postInstall.reboot, else the live
                                                       # system stays
       labctl elemental seed fire --iso seed.iso --insert node-0
       labctl host power node-0 On
       labctl elemental ls
       labctl host files node-0 /var/lib/elemental/agent

  2. A machine is given up, and its server is reset.
       labctl kubectl delete machines.cluster.x-k8s.io m-0
       labctl elemental ls                             # Triggering Reset, Resetting, Registering
       labctl console node-0                           # it boots the medium again

With agent.osPlugin dummy in place of elemental-sim the agent writes its files and waits: you,
or your path units, act on install.yaml, the bootstrap configuration and needs.reset.`,
		Example: "  labctl demo elemental\n  labctl demo elemental --speed max --state ./lab",
		RunE: func(c *cobra.Command, _ []string) error {
			ctx, cancel := context.WithTimeout(c.Context(), wait)
			defer cancel()
			if _, err := control.NewClient(o.state).Status(ctx); errors.Is(err, control.ErrNoLab) {
				o.showEnding(c.ErrOrStderr())
				args := []string{"up", "--with=" + config.Elemental}
				if speed != "" {
					args = append(args, "--speed="+speed)
				}
				if err := launch(ctx, o, args, c.OutOrStdout()); err != nil {
					return err
				}
			}
			kube, st, err := elementalClient(c, o)
			if err != nil {
				return err
			}
			d := &elementalDemo{day2: &day2{o: o, kube: kube, out: c.OutOrStdout(), began: time.Now(), shown: map[string]string{}}, st: st}
			return d.run(ctx)
		},
	}
	c.Flags().StringVar(&speed, "speed", "", "speed of the lab's time, when the lab is not up yet: 60x, or max")
	c.Flags().DurationVar(&wait, "timeout", wait, "total time to wait")
	return c
}

// elementalDemo is a running demonstration.
type elementalDemo struct {
	*day2
	st      control.Status
	servers []string
}

func (d *elementalDemo) run(ctx context.Context) error {
	hosts, err := control.NewClient(d.o.state).Hosts(ctx)
	if err != nil {
		return err
	}
	if len(hosts) < elementalServers {
		return fmt.Errorf("this lab has %d servers, and elemental needs %d: give --state another folder, or stop the lab with labctl down", len(hosts), elementalServers)
	}
	for _, h := range hosts[:elementalServers] {
		d.servers = append(d.servers, h.Name)
	}
	for _, step := range []func(context.Context) error{d.register, d.join, d.update, d.reset, d.files} {
		if err := step(ctx); err != nil {
			return withoutFamily(err)
		}
	}
	return nil
}

// create creates an object, or leaves the one that is there.
func (d *elementalDemo) create(ctx context.Context, o client.Object) error {
	if err := d.kube.Create(ctx, o); err != nil && !apierrors.IsAlreadyExists(err) {
		return err
	}
	return nil
}

// register offers a registration, and boots the servers from its medium.
func (d *elementalDemo) register(ctx context.Context) error {
	r := &elementalv1.ElementalRegistration{}
	r.Namespace, r.Name = lab.Namespace, "demo"
	if err := yaml.UnmarshalStrict([]byte(demoRegistration), &r.Spec.Config); err != nil {
		return err
	}
	fmt.Fprintf(d.out, "\nElementalRegistration demo, spec.config:\n  %s\n", strings.ReplaceAll(strings.TrimSpace(demoRegistration), "\n", "\n  "))
	if err := d.create(ctx, r); err != nil {
		return err
	}
	if err := d.until(ctx, "the registration has a token", func() (bool, error) {
		err := d.kube.Get(ctx, client.ObjectKeyFromObject(r), r)
		return r.Spec.Config.Elemental.Registration.Token != "", err
	}); err != nil {
		return err
	}
	iso, err := lab.SeedISO(r)
	if err != nil {
		return err
	}
	fmt.Fprintf(d.out, "\nThe servers %s boot its medium:\n", strings.Join(d.servers, ", "))
	if err := insertSeed(ctx, d.o, d.st, r.Name, iso, d.servers); err != nil {
		return err
	}
	for _, name := range d.servers {
		if _, err := control.NewClient(d.o.state).Power(ctx, name, string(machine.ForceOn)); err != nil {
			return err
		}
	}
	if err := d.installed(ctx, d.servers, nil); err != nil {
		return err
	}
	return d.kubectl(ctx, "elementalregistrations,elementalhosts")
}

// installed waits until the hosts of servers are installed, other than the given one.
func (d *elementalDemo) installed(ctx context.Context, servers []string, not *elementalv1.ElementalHost) error {
	return d.until(ctx, "the servers are installed", func() (bool, error) {
		done := 0
		for _, name := range servers {
			h := &elementalv1.ElementalHost{}
			if err := d.kube.Get(ctx, client.ObjectKey{Namespace: lab.Namespace, Name: name}, h); err != nil {
				if !apierrors.IsNotFound(err) {
					return false, err
				}
				continue
			}
			r := rowOf(h)
			d.show("ElementalHost "+name, strings.TrimSpace(r.Phase+" "+r.Message))
			if r.Installed && r.Phase == string(elementalv1.PhaseRunning) && (not == nil || h.UID != not.UID) {
				done++
			}
		}
		return done == len(servers), nil
	})
}

// join makes two servers machines of a cluster.
func (d *elementalDemo) join(ctx context.Context) error {
	fmt.Fprintf(d.out, "\nA cluster of the machines %s:\n", strings.Join(elementalMachines, ", "))
	for _, o := range lab.ElementalCluster("demo", elementalMachines...) {
		if err := d.create(ctx, o); err != nil {
			return err
		}
	}
	if err := d.until(ctx, "the machines are ready", func() (bool, error) {
		ready := 0
		for _, name := range elementalMachines {
			m := &elementalv1.ElementalMachine{}
			if err := d.kube.Get(ctx, client.ObjectKey{Namespace: lab.Namespace, Name: name}, m); err != nil {
				return false, err
			}
			state := "waits"
			for _, c := range m.Status.Conditions {
				if c.Type == capi.ReadyCondition {
					state = strings.TrimSpace(fmt.Sprintf("Ready %s %s", c.Status, c.Reason))
				}
			}
			if m.Spec.HostRef != nil {
				state += ", host " + m.Spec.HostRef.Name
			}
			d.show("ElementalMachine "+name, state)
			if m.Status.Ready {
				ready++
			}
		}
		return ready == len(elementalMachines), nil
	}); err != nil {
		return err
	}
	return d.kubectl(ctx, "clusters.cluster.x-k8s.io,machines.cluster.x-k8s.io,elementalclusters,elementalmachines,elementalhosts,nodes")
}

// hostOf returns the host of a machine.
func (d *elementalDemo) hostOf(ctx context.Context, name string) (*elementalv1.ElementalMachine, *elementalv1.ElementalHost, error) {
	m, h := &elementalv1.ElementalMachine{}, &elementalv1.ElementalHost{}
	if err := d.kube.Get(ctx, client.ObjectKey{Namespace: lab.Namespace, Name: name}, m); err != nil {
		return nil, nil, err
	}
	if m.Spec.HostRef == nil {
		return nil, nil, fmt.Errorf("the machine %s has no host", name)
	}
	return m, h, d.kube.Get(ctx, client.ObjectKey{Namespace: lab.Namespace, Name: m.Spec.HostRef.Name}, h)
}

// update updates the first machine in place.
func (d *elementalDemo) update(ctx context.Context) error {
	m, h, err := d.hostOf(ctx, elementalMachines[0])
	if err != nil {
		return err
	}
	image := d.st.Images + lab.DemoImage
	fmt.Fprintf(d.out, "\nThe machine %s takes %s in place:\n", m.Name, image)
	before := h.DeepCopy()
	h.Labels[elementalv1.InPlaceUpdateLabel] = elementalv1.InPlaceUpdatePending
	if err := d.kube.Patch(ctx, h, client.MergeFrom(before)); err != nil {
		return err
	}
	old := m.DeepCopy()
	m.Spec.OSVersionManagement = map[string]runtime.RawExtension{"osVersion": {Raw: fmt.Appendf(nil, `{"imageUri":%q}`, image)}}
	if err := d.kube.Patch(ctx, m, client.MergeFrom(old)); err != nil {
		return err
	}
	return d.until(ctx, "the update in place is done", func() (bool, error) {
		if err := d.kube.Get(ctx, client.ObjectKeyFromObject(h), h); err != nil {
			return false, err
		}
		label := h.Labels[elementalv1.InPlaceUpdateLabel]
		d.show("ElementalHost "+h.Name, fmt.Sprintf("%s, in-place-update %s", h.Status.Phase, label))
		return label == elementalv1.InPlaceUpdateDone, nil
	})
}

// reset gives the last machine up, and waits until its server has registered again.
func (d *elementalDemo) reset(ctx context.Context) error {
	name := elementalMachines[len(elementalMachines)-1]
	_, h, err := d.hostOf(ctx, name)
	if err != nil {
		return err
	}
	fmt.Fprintf(d.out, "\nThe Machine %s is deleted, its server %s is reset and registers again:\n", name, h.Name)
	m := &capi.Machine{}
	m.Namespace, m.Name = lab.Namespace, name
	if err := d.kube.Delete(ctx, m); err != nil {
		return err
	}
	if err := d.installed(ctx, []string{h.Name}, h); err != nil {
		return err
	}
	return d.kubectl(ctx, "machines.cluster.x-k8s.io,elementalmachines,elementalhosts")
}

// demoFiles are the directories and files of the agent that the demonstration lists.
var demoFiles = []string{"/var/lib/elemental/agent", "/etc/elemental/agent", "/etc/cloud/cloud.cfg.d", "/run/cluster-api"}

// files lists the files that the agent has written on each server.
func (d *elementalDemo) files(ctx context.Context) error {
	fmt.Fprintln(d.out, "\nThe files of the agent on each server:")
	for _, server := range d.servers {
		fmt.Fprintf(d.out, "  %s\n", server)
		for _, dir := range demoFiles {
			f, err := control.NewClient(d.o.state).Files(ctx, server, dir)
			if err != nil { // the server lacks the directory
				continue
			}
			for _, e := range f.Entries {
				fmt.Fprintf(d.out, "    %s %7d %s/%s\n", e.Mode, e.Size, dir, e.Name)
			}
		}
	}
	d.o.say(d.out, `
The lab is still up: labctl down ends it. See for yourself:
  export KUBECONFIG=%s
  labctl elemental ls
  labctl kubectl describe elementalhost %s
  labctl host files %s /var/lib/elemental/agent/install.yaml
  labctl demo elemental --help    # two flows to try
`, d.st.Kubeconfig, d.servers[0], d.servers[0])
	return nil
}

// kubectl shows objects as kubectl does.
func (d *elementalDemo) kubectl(ctx context.Context, kinds string) error {
	d.o.say(d.out, "\n$ labctl kubectl get %s\n", kinds)
	self, err := os.Executable()
	if err != nil {
		return err
	}
	c := exec.CommandContext(ctx, self, "kubectl", "--state", d.o.state, "get", kinds, "--namespace", lab.Namespace)
	c.Stdout, c.Stderr = d.out, d.out
	return c.Run()
}

// insertSeed serves the medium of a registration, inserts it into servers, and makes their boot
// order the disk and then the medium.
func insertSeed(ctx context.Context, o *options, st control.Status, registration string, iso []byte, servers []string) error {
	file := seedFile(registration)
	if err := replaceFile(filepath.Join(o.state, lab.ImagesDir, file), iso, 0o600); err != nil {
		return err
	}
	labAPI := control.NewClient(o.state)
	for _, name := range servers {
		slots, err := labAPI.Media(ctx, name)
		if err != nil {
			return err
		}
		if len(slots) == 0 {
			return fmt.Errorf("%s has no virtual media", name)
		}
		i := max(0, slices.IndexFunc(slots, func(m control.Media) bool { return !m.Inserted }))
		if _, err := labAPI.InsertMedia(ctx, name, slots[i].Slot, control.Image{URL: st.Images + file, WriteProtected: true}); err != nil {
			return err
		}
		if _, err := labAPI.Boot(ctx, name, control.Override{Order: "Hdd,Cd"}); err != nil {
			return err
		}
	}
	return nil
}
