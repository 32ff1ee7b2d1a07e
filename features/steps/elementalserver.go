package steps

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/cucumber/godog"
	corev1 "k8s.io/api/core/v1"
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

// elementalDir has the files of the Elemental agent in a server.
const elementalDir = "/var/lib/elemental/agent/"

// registerElementalServers binds the steps on servers that register themselves: they boot a
// medium, and the agent in their systems does all the rest. With hostname.useExisting a host is
// named as its server.
func (s *scenario) registerElementalServers(sc *stepRegistry) {
	sc.Step(`^a lab with (\d+) servers? that can register (?:itself|themselves)$`, "gives the scenario unused servers in a lab of the family elemental, which no other scenario gets", func(ctx context.Context, servers int) error {
		return s.startKind(ctx, servers, labKind{with: config.Elemental, alone: true})
	})
	sc.Step(`^the operator offers the registration "([^"]*)":$`, "creates an ElementalRegistration with this config, and waits until it has a token", s.offerRegistration)
	sc.Step(`^the operator replaces the config of the registration "([^"]*)":$`, "replaces the config of an ElementalRegistration, but for its address and token", s.replaceRegistration)
	sc.Step(`^the servers boot the seed of "([^"]*)"$`, "makes the medium of a registration, inserts it into all servers, which are off, makes their boot order the disk and then the medium, and switches them on", s.bootSeed)
	sc.Step(`^the server "([^"]*)" is installed by its registration$`, "waits until its ElementalHost has the label installed, and it runs the system on its disk", s.isInstalledHost)
	sc.Step(`^the ElementalHost of the server "([^"]*)" has the phase "([^"]*)"$`, "waits until the host has this phase", func(ctx context.Context, server, phase string) error {
		return s.hostBecomes(ctx, server, func(h *elementalv1.ElementalHost) bool { return string(h.Status.Phase) == phase })
	})
	sc.Step(`^the ElementalHost of the server "([^"]*)" has the condition "([^"]*)" (True|False)(?: by "([^"]*)")?$`, "waits until a condition of the host has this status, and this reason", func(ctx context.Context, server, kind, status, reason string) error {
		return s.hostBecomes(ctx, server, func(h *elementalv1.ElementalHost) bool {
			for _, c := range h.Status.Conditions {
				if string(c.Type) == kind {
					return string(c.Status) == status && c.Reason == reason
				}
			}
			return false
		})
	})
	sc.Step(`^the operator makes a cluster of the machines? "([^"]*)"$`, "creates a Cluster, an ElementalCluster, and a Machine with an ElementalMachine for each name", func(ctx context.Context, names string) error {
		for _, o := range lab.ElementalCluster("life", strings.Split(names, ", ")...) {
			if err := s.kube.Create(ctx, o); err != nil {
				return err
			}
		}
		return nil
	})
	sc.Step(`^the ElementalMachine "([^"]*)" is ready, and its Node has its provider ID$`, "waits until the machine is ready on a host, and a Node of the host's name has the provider ID", s.elementalMachineIsReady)
	sc.Step(`^the operator updates "([^"]*)" in place to the image "([^"]*)"$`, "sets osVersionManagement.osVersion.imageUri of an ElementalMachine to a file of the image server and, once the host has it, the label of the host to pending", s.updateInPlace)
	sc.Step(`^the update in place of "([^"]*)" is done$`, "waits until the host has the label done, and the condition OSVersionReady True", func(ctx context.Context, name string) error {
		return s.hostOfMachineBecomes(ctx, name, func(h *elementalv1.ElementalHost) bool {
			return h.Labels[elementalv1.InPlaceUpdateLabel] == elementalv1.InPlaceUpdateDone && isTrue(h.Status.Conditions, elementalv1.OSVersionReady)
		})
	})
	sc.Step(`^the file "([^"]*)" on the host of "([^"]*)" contains "([^"]*)"$`, "waits until a file of the running system of an ElementalMachine's server contains a text", func(ctx context.Context, path, name, text string) error {
		server, err := s.serverOfElementalMachine(ctx, name)
		if err != nil {
			return err
		}
		return s.fileOfContains(ctx, server, path, text)
	})
	sc.Step(`^the file "([^"]*)" of the server "([^"]*)" contains "([^"]*)"$`, "waits until a file of the running system of a server contains a text", func(ctx context.Context, path, server, text string) error {
		return s.fileOfContains(ctx, server, path, text)
	})
	sc.Step(`^the operator gives up the machine "([^"]*)"$`, "deletes a Machine of Cluster API, remembers the host and the boots of its server, and waits until the Machine is gone", s.deleteElementalMachine)
	sc.Step(`^its server registers again and is installed$`, "waits until another ElementalHost of the server's name is installed, after boots from the medium and from the disk", s.registersAgain)
	sc.Step(`^the server "([^"]*)" is another host, and installed$`, "waits until another ElementalHost of the server's name than that of the Machine which was given up is installed, however often the server has booted", func(ctx context.Context, server string) error {
		return s.hostBecomes(ctx, server, s.isAnotherHost)
	})
	sc.Step(`^the agent on the server "([^"]*)" is (killed|stopped)$`, "kills the unit of the agent, which systemd starts again, or stops it", s.endElementalAgent)
	sc.Step(`^the power of the server "([^"]*)" fails and returns$`, "cuts the power of a server and switches it on", func(ctx context.Context, server string) error {
		if err := s.cutPower(ctx, server); err != nil {
			return err
		}
		_, err := s.lab.Control().Power(ctx, server, string(machine.ForceOn))
		return err
	})
	sc.Step(`^the Secret of the registration "([^"]*)" is deleted$`, "deletes the Secret with the signing key", func(ctx context.Context, name string) error {
		o := &corev1.Secret{}
		o.Namespace, o.Name = lab.Namespace, name
		return s.kube.Delete(ctx, o)
	})
	sc.Step(`^the operator gives the registration "([^"]*)" a new key$`, "removes privateKeyRef and token of a registration, and waits until it has others", s.rekeyRegistration)
	sc.NegativeStep(`^no server registers with "([^"]*)"$`, "asserts, once each server has tried the registration twice, that there is no ElementalHost", s.nobodyRegisters)
}

func isTrue(all capi.Conditions, kind capi.ConditionType) bool {
	for _, c := range all {
		if c.Type == kind {
			return c.Status == corev1.ConditionTrue
		}
	}
	return false
}

func (s *scenario) readRegistration(ctx context.Context, name string) (*elementalv1.ElementalRegistration, error) {
	r := &elementalv1.ElementalRegistration{}
	return r, s.kube.Get(ctx, client.ObjectKey{Namespace: lab.Namespace, Name: name}, r)
}

func (s *scenario) offerRegistration(ctx context.Context, name string, text *godog.DocString) error {
	r := &elementalv1.ElementalRegistration{}
	r.Namespace, r.Name = lab.Namespace, name
	if err := yaml.UnmarshalStrict([]byte(text.Content), &r.Spec.Config); err != nil {
		return err
	}
	if err := s.kube.Create(ctx, r); err != nil {
		return err
	}
	return s.hasToken(ctx, name, "")
}

// hasToken waits until a registration has another token.
func (s *scenario) hasToken(ctx context.Context, name, than string) error {
	return eventually(ctx, "the registration has a token", func(ctx context.Context) (bool, string, error) {
		r, err := s.readRegistration(ctx, name)
		token := r.Spec.Config.Elemental.Registration.Token
		return token != "" && token != than, fmt.Sprintf("conditions %v", r.Status.Conditions), err
	})
}

func (s *scenario) changeRegistration(ctx context.Context, name string, edit func(*elementalv1.ElementalRegistration) error) error {
	r, err := s.readRegistration(ctx, name)
	if err != nil {
		return err
	}
	before := r.DeepCopy()
	if err := edit(r); err != nil {
		return err
	}
	return s.kube.Patch(ctx, r, client.MergeFrom(before))
}

func (s *scenario) replaceRegistration(ctx context.Context, name string, text *godog.DocString) error {
	return s.changeRegistration(ctx, name, func(r *elementalv1.ElementalRegistration) error {
		keep := r.Spec.Config.Elemental.Registration
		r.Spec.Config = elementalv1.Config{}
		if err := yaml.UnmarshalStrict([]byte(text.Content), &r.Spec.Config); err != nil {
			return err
		}
		r.Spec.Config.Elemental.Registration = keep
		return nil
	})
}

func (s *scenario) rekeyRegistration(ctx context.Context, name string) error {
	r, err := s.readRegistration(ctx, name)
	if err != nil {
		return err
	}
	old := r.Spec.Config.Elemental.Registration.Token
	if err := s.changeRegistration(ctx, name, func(r *elementalv1.ElementalRegistration) error {
		r.Spec.PrivateKeyRef, r.Spec.Config.Elemental.Registration.Token = nil, ""
		return nil
	}); err != nil {
		return err
	}
	return s.hasToken(ctx, name, old)
}

func (s *scenario) bootSeed(ctx context.Context, name string) error {
	s.testLab.registered = true
	r, err := s.readRegistration(ctx, name)
	if err != nil {
		return err
	}
	iso, err := lab.SeedISO(r)
	if err != nil {
		return err
	}
	file := "seed-" + name + ".iso"
	if err := os.WriteFile(filepath.Join(s.dir, lab.ImagesDir, file), iso, 0o600); err != nil {
		return err
	}
	labAPI := s.lab.Control()
	for _, h := range s.servers {
		if err := s.cutPower(ctx, h.Name); err != nil {
			return err
		}
		slots, err := labAPI.Media(ctx, h.Name)
		if err == nil && slots[0].Inserted {
			_, err = labAPI.EjectMedia(ctx, h.Name, slots[0].Slot)
		}
		if err != nil {
			return err
		}
		if _, err := labAPI.InsertMedia(ctx, h.Name, slots[0].Slot, control.Image{URL: s.lab.ImagesURL() + file, WriteProtected: true}); err != nil {
			return err
		}
		if _, err := labAPI.Boot(ctx, h.Name, control.Override{Order: "Hdd,Cd"}); err != nil {
			return err
		}
		if _, err := labAPI.Power(ctx, h.Name, string(machine.ForceOn)); err != nil {
			return err
		}
	}
	return nil
}

// cutPower switches a server off at once, and waits until it is.
func (s *scenario) cutPower(ctx context.Context, server string) error {
	h, err := s.hostNamed(server)
	if err != nil {
		return err
	}
	if h.Machine().Power == machine.PowerOff {
		return nil
	}
	if _, err := s.lab.Control().Power(ctx, server, string(machine.ForceOff)); err != nil {
		return err
	}
	return eventually(ctx, server+" is off", func(context.Context) (bool, string, error) {
		power := h.Machine().Power
		return power == machine.PowerOff, fmt.Sprint(power), nil
	})
}

// elementalHost returns a host; nil when there is none.
func (s *scenario) elementalHost(ctx context.Context, name string) (*elementalv1.ElementalHost, error) {
	h := &elementalv1.ElementalHost{}
	err := s.kube.Get(ctx, client.ObjectKey{Namespace: lab.Namespace, Name: name}, h)
	if client.IgnoreNotFound(err) != nil {
		return nil, err
	}
	if err != nil {
		return nil, nil
	}
	return h, nil
}

func (s *scenario) hostBecomes(ctx context.Context, name string, ok func(*elementalv1.ElementalHost) bool) error {
	return eventually(ctx, "the ElementalHost "+name+" is so", func(ctx context.Context) (bool, string, error) {
		h, err := s.elementalHost(ctx, name)
		if err != nil || h == nil {
			return false, "no host", err
		}
		return ok(h), fmt.Sprintf("phase %q, labels %v, conditions %v", h.Status.Phase, h.Labels, h.Status.Conditions), nil
	})
}

func (s *scenario) isInstalledHost(ctx context.Context, server string) error {
	if err := s.hostBecomes(ctx, server, func(h *elementalv1.ElementalHost) bool {
		return h.Labels[elementalv1.InstalledLabel] == elementalv1.True
	}); err != nil {
		return err
	}
	return s.runsFromDisk(ctx, server)
}

// runsFromDisk waits until a server runs the system on its disk.
func (s *scenario) runsFromDisk(ctx context.Context, server string) error {
	return eventually(ctx, server+" runs the system on its disk", func(ctx context.Context) (bool, string, error) {
		d, err := s.lab.Control().Host(ctx, server)
		return d.Running == lab.DiskOS, fmt.Sprintf("running %q, phase %s", d.Running, d.Phase), err
	})
}

// serverOfElementalMachine waits until a machine has a host, and returns its name.
func (s *scenario) serverOfElementalMachine(ctx context.Context, name string) (server string, err error) {
	err = eventually(ctx, "the ElementalMachine "+name+" has a host", func(ctx context.Context) (bool, string, error) {
		m := &elementalv1.ElementalMachine{}
		if err := s.kube.Get(ctx, client.ObjectKey{Namespace: lab.Namespace, Name: name}, m); err != nil {
			return false, err.Error(), client.IgnoreNotFound(err)
		}
		if m.Spec.HostRef != nil {
			server = m.Spec.HostRef.Name
		}
		return server != "", fmt.Sprintf("conditions %v", m.Status.Conditions), nil
	})
	return server, err
}

func (s *scenario) hostOfMachineBecomes(ctx context.Context, name string, ok func(*elementalv1.ElementalHost) bool) error {
	server, err := s.serverOfElementalMachine(ctx, name)
	if err != nil {
		return err
	}
	return s.hostBecomes(ctx, server, ok)
}

func (s *scenario) elementalMachineIsReady(ctx context.Context, name string) error {
	server, err := s.serverOfElementalMachine(ctx, name)
	if err != nil {
		return err
	}
	return eventually(ctx, "the ElementalMachine "+name+" is ready", func(ctx context.Context) (bool, string, error) {
		m, n := &elementalv1.ElementalMachine{}, &corev1.Node{}
		if err := s.kube.Get(ctx, client.ObjectKey{Namespace: lab.Namespace, Name: name}, m); err != nil {
			return false, "", err
		}
		if err := s.kube.Get(ctx, client.ObjectKey{Name: server}, n); client.IgnoreNotFound(err) != nil {
			return false, "", err
		}
		h, err := s.elementalHost(ctx, server)
		want := fmt.Sprintf("elemental://%s/%s", lab.Namespace, server)
		return m.Status.Ready && m.Spec.ProviderID != nil && *m.Spec.ProviderID == want && n.Spec.ProviderID == want,
			fmt.Sprintf("conditions %v, Node's provider ID %q, host %+v", m.Status.Conditions, n.Spec.ProviderID, h), err
	})
}

func (s *scenario) updateInPlace(ctx context.Context, name, file string) error {
	server, err := s.serverOfElementalMachine(ctx, name)
	if err != nil {
		return err
	}
	m := &elementalv1.ElementalMachine{}
	if err := s.kube.Get(ctx, client.ObjectKey{Namespace: lab.Namespace, Name: name}, m); err != nil {
		return err
	}
	old, image := m.DeepCopy(), s.lab.ImagesURL()+file
	m.Spec.OSVersionManagement = map[string]runtime.RawExtension{"osVersion": {Raw: fmt.Appendf(nil, `{"imageUri":%q}`, image)}}
	if err := s.kube.Patch(ctx, m, client.MergeFrom(old)); err != nil {
		return err
	}
	// Before, the agent would reconcile the version that the host has, and report that it is done.
	if err := s.hostBecomes(ctx, server, func(h *elementalv1.ElementalHost) bool {
		return strings.Contains(string(h.Spec.OSVersionManagement["osVersion"].Raw), image)
	}); err != nil {
		return err
	}
	h, err := s.elementalHost(ctx, server)
	if err != nil || h == nil {
		return fmt.Errorf("host %s: %w", server, err)
	}
	before := h.DeepCopy()
	h.Labels[elementalv1.InPlaceUpdateLabel] = elementalv1.InPlaceUpdatePending
	return s.kube.Patch(ctx, h, client.MergeFrom(before))
}

func (s *scenario) deleteElementalMachine(ctx context.Context, name string) error {
	server, err := s.serverOfElementalMachine(ctx, name)
	if err != nil {
		return err
	}
	h, err := s.elementalHost(ctx, server)
	if err != nil || h == nil {
		return fmt.Errorf("host %s: %w", server, err)
	}
	d, err := s.lab.Control().Host(ctx, server)
	if err != nil {
		return err
	}
	s.resetHost, s.resetBoots = h, d.Boots
	m := &capi.Machine{}
	m.Namespace, m.Name = lab.Namespace, name
	if err := s.kube.Delete(ctx, m); err != nil {
		return err
	}
	return eventually(ctx, "the Machine is gone", func(ctx context.Context) (bool, string, error) {
		err := s.kube.Get(ctx, client.ObjectKeyFromObject(m), m)
		return client.IgnoreNotFound(err) == nil && err != nil, fmt.Sprintf("%v", m.Status.Conditions), client.IgnoreNotFound(err)
	})
}

// isAnotherHost reports whether a host is installed, and not the one that was reset.
func (s *scenario) isAnotherHost(h *elementalv1.ElementalHost) bool {
	return h.UID != s.resetHost.UID && h.Spec.PubKey != s.resetHost.Spec.PubKey && h.Labels[elementalv1.InstalledLabel] == elementalv1.True
}

func (s *scenario) registersAgain(ctx context.Context) error {
	server := s.resetHost.Name
	if err := s.hostBecomes(ctx, server, s.isAnotherHost); err != nil {
		return err
	}
	if err := s.runsFromDisk(ctx, server); err != nil {
		return err
	}
	d, err := s.lab.Control().Host(ctx, server)
	if err == nil && d.Boots != s.resetBoots+2 {
		err = fmt.Errorf("%s has booted %d times since the reset began, want from the medium and from the disk", server, d.Boots-s.resetBoots)
	}
	return err
}

func (s *scenario) endElementalAgent(ctx context.Context, server, how string) error {
	units := []string{"elemental-agent-register.service", "elemental-agent.service"}
	verb := map[string]string{"killed": "restart", "stopped": "stop"}[how]
	return eventually(ctx, "the unit of the agent is there", func(ctx context.Context) (bool, string, error) {
		last := "no unit"
		for _, u := range units {
			f, err := s.lab.Control().Files(ctx, server, "/etc/systemd/system/"+u)
			if err != nil || !f.File {
				last = fmt.Sprint(err)
				continue
			}
			code, out, err := s.shellOn(ctx, server, "systemctl "+verb+" "+u)
			return code == 0, out, err
		}
		return false, last, nil
	})
}

// nobodyRegisters waits until each server has asked for its registration twice.
func (s *scenario) nobodyRegisters(ctx context.Context, _ string) error {
	for _, h := range s.servers {
		if err := s.logsTwice(ctx, h.Name); err != nil {
			return err
		}
	}
	var hosts elementalv1.ElementalHostList
	if err := s.kube.List(ctx, &hosts); err != nil {
		return err
	}
	if n := len(hosts.Items); n > 0 {
		return fmt.Errorf("there are %d ElementalHosts, the first is %s", n, hosts.Items[0].Name)
	}
	return nil
}

// logsTwice waits until the agent of a server has stored its key, and two reconciliations later.
func (s *scenario) logsTwice(ctx context.Context, server string) error {
	if err := eventually(ctx, "the agent of "+server+" has a key", func(ctx context.Context) (bool, string, error) {
		f, err := s.lab.Control().Files(ctx, server, elementalDir+"private.key")
		return err == nil && f.File, fmt.Sprint(err), nil
	}); err != nil {
		return err
	}
	passed := make(chan struct{})
	t := s.lab.Clock().ClientFunc(3*time.Second, func() { close(passed) })
	defer t.Stop()
	select {
	case <-passed:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}
