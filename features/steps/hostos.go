package steps

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/cucumber/godog"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/util/retry"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	clusterv1 "github.com/metalab-dev/metalab/controller/api/cluster/v1alpha1"
	hostprofilev1 "github.com/metalab-dev/metalab/controller/api/hostprofile/v1alpha1"
	kaasv1 "github.com/metalab-dev/metalab/controller/api/kaas/v1alpha1"
	lcmv1 "github.com/metalab-dev/metalab/controller/api/lcm/v1alpha1"
	"github.com/metalab-dev/metalab/controller/config"
	"github.com/metalab-dev/metalab/lab"
)

// registerHostOS binds the steps on HostOSConfigurations and their modules.
func (s *scenario) registerHostOS(sc *stepRegistry) {
	sc.Step(`^a lab with host OS configuration$`, "gives the scenario a lab of the family hoc", func(ctx context.Context) error {
		return s.startKind(ctx, 1, labKind{with: config.HOC})
	})
	s.registerVendor(sc)
	sc.Step(`^the operator lists the modules "([^"]*)"$`, "makes NAME VERSION, … the modules of HostOSConfigurationModules; the archives, of modules of fixtures, are served", func(ctx context.Context, list string) error {
		return s.listModules(ctx, list, "")
	})
	sc.Step(`^the operator lists the modules "([^"]*)" with (another SHA-256|no archive on the server|a damaged archive|an archive of another module)$`, "the same, with this fault of all of them", s.listModules)
	sc.Step(`^the operator publishes the archives of the modules "([^"]*)"$`, "serves archives that were missing", func(list string) error { return s.publishModules(list) })
	sc.Step(`^the module server (stalls|continues)$`, "lets the server of modules answer no request, or all again", func(what string) {
		if what == "stalls" {
			s.modules.stall()
		} else {
			s.modules.resume()
		}
	})
	sc.Step(`^the archive of the module "([^"]*)" is replaced by (a damaged one|that of another module)$`, "changes what the server of modules has for a module; the list keeps its SHA-256", s.replaceArchive)
	sc.Step(`^the module "([^"]*)" is (available|deprecated)$`, "waits until a module, NAME VERSION, has this state, and what its archive says of it", s.moduleIs)
	sc.Step(`^the module "([^"]*)" has the error "([^"]*)"$`, "waits until a module has state error and this text in its error; URL, WANT and GOT stand for its URL and digests", s.moduleFails)
	sc.Step(`^the operator applies the host OS configuration "([^"]*)":$`, "creates a HostOSConfiguration with this spec, or replaces the spec", s.applyHOC)
	sc.Step(`^the operator creates the host OS configuration "([^"]*)" in another namespace:$`, "creates a HostOSConfiguration where no Machine is", func(ctx context.Context, name string, text *godog.DocString) error {
		err := s.kube.Create(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: otherNamespace}})
		if err != nil && !apierrors.IsAlreadyExists(err) {
			return err
		}
		return s.createHOC(ctx, otherNamespace, name, text.Content)
	})
	sc.Step(`^the operator (clears|restores) the selector of the host OS configuration "([^"]*)"$`, "makes machineSelector empty, or that of the label day2", s.setSelector)
	sc.Step(`^the operator sets the Secret "([^"]*)" to:$`, "creates a Secret with these values, or replaces them", s.setSecret)
	sc.Step(`^the host OS configuration "([^"]*)" is valid$`, "waits until isValid is true for the spec as it is", func(ctx context.Context, name string) error { return s.hocIs(ctx, name, true, "") })
	sc.Step(`^the host OS configuration "([^"]*)" is not valid: "([^"]*)"$`, "waits until isValid is false for the spec as it is, and the error of a config has this text", func(ctx context.Context, name, text string) error {
		return s.hocIs(ctx, name, false, text)
	})
	sc.Step(`^the host OS configuration "([^"]*)" has a deprecated module$`, "waits until containsDeprecatedModules is true and a config has moduleDeprecatedBy", func(ctx context.Context, name string) error {
		return s.awaitHOC(ctx, name, "has a deprecated module", func(o *kaasv1.HostOSConfiguration) bool {
			return o.Status.ContainsDeprecatedModules && slices.ContainsFunc(o.Status.Configs, func(c kaasv1.ConfigStatus) bool { return len(c.ModuleDeprecatedBy) > 0 })
		})
	})
	sc.Step(`^the item "([^"]*)" of "([^"]*)" is "([^"]*)" on "([^"]*)"$`, "waits until an item of a HostOSConfiguration has this state in machinesStates, with a hash if it is Success", s.itemIs)
	sc.Step(`^the host OS configuration "([^"]*)" waits for "([^"]*)": "([^"]*)"$`, "waits until the message of a machine in machinesStates contains this text", func(ctx context.Context, name, machine, text string) error {
		return s.awaitHOC(ctx, name, "says "+text, func(o *kaasv1.HostOSConfiguration) bool {
			return strings.Contains(o.Status.MachinesStates[lab.Namespace+"/"+machine].Message, text)
		})
	})
	sc.Step(`^the host OS configuration "([^"]*)" selects "([^"]*)"$`, "waits until these machines, and no others, are in machinesStates and selected", s.hocSelects)
	sc.StepWithOptionalText(`^the change of the Secret of "([^"]+)" is (reported|done) on "([^"]+)"$`, "waits until secretValuesChanged of a machine is true, or false", func(ctx context.Context, name, what, machine string) error {
		return s.awaitHOC(ctx, name, "has reported the change of a Secret", func(o *kaasv1.HostOSConfiguration) bool {
			m, exists := o.Status.MachinesStates[lab.Namespace+"/"+machine]
			return exists && m.SecretValuesChanged == (what == "reported")
		})
	})
	sc.Step(`^the operator deletes the host OS configuration "([^"]*)"$`, "deletes the object without waiting", func(ctx context.Context, name string) error {
		return s.kube.Delete(ctx, &kaasv1.HostOSConfiguration{ObjectMeta: day2Meta(name)})
	})
	sc.Step(`^the host OS configuration "([^"]*)" no longer exists$`, "waits until the object is gone", func(ctx context.Context, name string) error {
		return eventually(ctx, name+" is gone", func(ctx context.Context) (bool, string, error) {
			o, err := s.readHOC(ctx, name)
			return apierrors.IsNotFound(err), fmt.Sprintf("%v, %+v", o.Finalizers, o.Status.MachinesStates), client.IgnoreNotFound(err)
		})
	})
	sc.NegativeStep(`^the host OS configuration "([^"]*)" still exists$`, "asserts, once each controller has reconciled every object, that the object exists", func(ctx context.Context, name string) error {
		if err := s.letDay2ControllersAct(ctx); err != nil {
			return err
		}
		_, err := s.readHOC(ctx, name)
		return err
	})
	sc.NegativeStep(`^no object contains "([^"]*)"$`, "asserts, once each controller has reconciled every object, that no object that the API serves, except Secrets and Proxies, and no line of the lab's log has this text", s.nothingContains)
}

// otherNamespace has no Machines.
const otherNamespace = "elsewhere"

// day2Meta returns the metadata of an object of the family hoc.
func day2Meta(name string) metav1.ObjectMeta {
	return metav1.ObjectMeta{Namespace: lab.Namespace, Name: name}
}

func (s *scenario) readHOC(ctx context.Context, name string) (*kaasv1.HostOSConfiguration, error) {
	o := &kaasv1.HostOSConfiguration{ObjectMeta: day2Meta(name)}
	return o, s.kube.Get(ctx, client.ObjectKeyFromObject(o), o)
}

// awaitHOC waits until ok accepts a HostOSConfiguration.
func (s *scenario) awaitHOC(ctx context.Context, name, what string, ok func(*kaasv1.HostOSConfiguration) bool) error {
	return eventually(ctx, "the host OS configuration "+name+" "+what, func(ctx context.Context) (bool, string, error) {
		o, err := s.readHOC(ctx, name)
		return ok(o), fmt.Sprintf("%+v", o.Status), client.IgnoreNotFound(err)
	})
}

func (s *scenario) createHOC(ctx context.Context, namespace, name, text string) error {
	o := &kaasv1.HostOSConfiguration{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}}
	if err := yaml.UnmarshalStrict([]byte(text), &o.Spec); err != nil {
		return fmt.Errorf("the step's YAML: %w", err)
	}
	return s.kube.Create(ctx, o)
}

func (s *scenario) applyHOC(ctx context.Context, name string, text *godog.DocString) error {
	err := s.createHOC(ctx, lab.Namespace, name, text.Content)
	if !apierrors.IsAlreadyExists(err) {
		return err
	}
	return s.changeHOC(ctx, name, func(spec *kaasv1.HostOSConfigurationSpec) error {
		*spec = kaasv1.HostOSConfigurationSpec{}
		return yaml.UnmarshalStrict([]byte(text.Content), spec)
	})
}

func (s *scenario) changeHOC(ctx context.Context, name string, change func(*kaasv1.HostOSConfigurationSpec) error) error {
	return retry.RetryOnConflict(conflictBackoff, func() error {
		o, err := s.readHOC(ctx, name)
		if err == nil {
			err = change(&o.Spec)
		}
		if err != nil {
			return err
		}
		return s.kube.Update(ctx, o)
	})
}

func (s *scenario) setSelector(ctx context.Context, what, name string) error {
	return s.changeHOC(ctx, name, func(spec *kaasv1.HostOSConfigurationSpec) error {
		spec.MachineSelector = metav1.LabelSelector{}
		if what == "restores" {
			spec.MachineSelector.MatchLabels = map[string]string{day2Label: "true"}
		}
		return nil
	})
}

func (s *scenario) setSecret(ctx context.Context, name string, text *godog.DocString) error {
	secret := &corev1.Secret{ObjectMeta: day2Meta(name)}
	if err := yaml.UnmarshalStrict([]byte(text.Content), &secret.StringData); err != nil {
		return fmt.Errorf("the step's YAML: %w", err)
	}
	err := s.kube.Create(ctx, secret.DeepCopy())
	if !apierrors.IsAlreadyExists(err) {
		return err
	}
	return s.kube.Update(ctx, secret)
}

func (s *scenario) hocIs(ctx context.Context, name string, valid bool, text string) error {
	return s.awaitHOC(ctx, name, fmt.Sprintf("has isValid %v", valid), func(o *kaasv1.HostOSConfiguration) bool {
		var errs []string
		for _, c := range o.Status.Configs {
			errs = append(errs, c.Error)
		}
		return o.Status.ObservedGeneration == o.Generation && ptr.Deref(o.Status.IsValid, !valid) == valid && strings.Contains(strings.Join(errs, "\n"), text)
	})
}

func (s *scenario) itemIs(ctx context.Context, item, name, state, machine string) error {
	return s.awaitHOC(ctx, name, "has the item "+item+" in state "+state, func(o *kaasv1.HostOSConfiguration) bool {
		for _, statuses := range o.Status.MachinesStates[lab.Namespace+"/"+machine].ConfigStateItemsStatuses {
			if status, exists := statuses[item]; exists {
				return string(status.State) == state && (status.Hash != "") == (status.State == kaasv1.ItemSuccess)
			}
		}
		return false
	})
}

func (s *scenario) hocSelects(ctx context.Context, name, machines string) error {
	want := fields(machines)
	return s.awaitHOC(ctx, name, "selects "+machines, func(o *kaasv1.HostOSConfiguration) bool {
		for _, m := range want {
			if !o.Status.MachinesStates[lab.Namespace+"/"+m].Selected {
				return false
			}
		}
		return len(o.Status.MachinesStates) == len(want)
	})
}

// fields splits a list of names that are separated by commas.
func fields(list string) (out []string) {
	for _, name := range strings.Split(list, ",") {
		out = append(out, strings.TrimSpace(name))
	}
	return out
}

// letDay2ControllersAct lets the controllers act until none of them writes: each acts on
// what another one has written.
func (s *scenario) letDay2ControllersAct(ctx context.Context) error {
	before := ""
	for {
		if err := s.letControllersAct(ctx); err != nil {
			return err
		}
		now := ""
		for _, list := range day2Lists() {
			if err := s.kube.List(ctx, list); err != nil {
				return err
			}
			err := meta.EachListItem(list, func(o runtime.Object) error {
				m, err := meta.Accessor(o)
				now += " " + m.GetName() + "@" + m.GetResourceVersion()
				return err
			})
			if err != nil {
				return err
			}
		}
		if now == before {
			return nil
		}
		before = now
	}
}

// day2Lists returns an empty list of each kind of the family hoc.
func day2Lists() []client.ObjectList {
	return []client.ObjectList{
		&kaasv1.HostOSConfigurationList{}, &kaasv1.HostOSConfigurationModulesList{}, &lcmv1.LCMClusterList{}, &lcmv1.LCMMachineList{}, &clusterv1.MachineList{},
		&kaasv1.GracefulRebootRequestList{}, &clusterv1.ClusterList{}, &kaasv1.ClusterDeploymentStatusList{}, &kaasv1.ClusterUpdatePlanList{},
	}
}

// deleteDay2 deletes all objects of the family hoc. No agent removes their results any more,
// so deleteDay2 removes the finalizers of configurations itself. The provider removes the
// finalizers of Clusters and Machines, whose hosts are deleted already.
func (b *testLab) deleteDay2(ctx context.Context) error {
	for _, o := range []client.Object{&kaasv1.GracefulRebootRequest{}, &kaasv1.Proxy{}, &kaasv1.PublicKey{}, &kaasv1.UpdateGroup{}, &kaasv1.HostOSConfiguration{}, &hostprofilev1.BareMetalHostProfile{}, &clusterv1.Cluster{}, &lcmv1.LCMMachine{}, &lcmv1.LCMCluster{}, &clusterv1.Machine{}} {
		for _, in := range []string{lab.Namespace, otherNamespace} {
			if err := b.kube.DeleteAllOf(ctx, o, client.InNamespace(in)); err != nil {
				return err
			}
		}
	}
	if err := b.kube.DeleteAllOf(ctx, &kaasv1.KaaSRelease{}, client.HasLabels{scenarioLabel}); err != nil {
		return err
	}
	if err := b.kube.Delete(ctx, &corev1.Secret{ObjectMeta: day2Meta(machineUserData)}); client.IgnoreNotFound(err) != nil {
		return err
	}
	// Without locks, the controllers remove the finalizers of LCMMachines whose nodes leave the
	// cluster.
	for _, o := range []client.Object{&kaasv1.HostOSConfigurationModules{}, &lcmv1.NodeWorkloadLock{}, &corev1.Node{}} {
		if err := b.kube.DeleteAllOf(ctx, o); err != nil {
			return err
		}
	}
	return wait.PollUntilContextTimeout(ctx, pollInterval, resetTimeout, true, func(ctx context.Context) (bool, error) {
		var l kaasv1.HostOSConfigurationList
		left := 0
		for _, list := range []client.ObjectList{&l, &clusterv1.ClusterList{}, &clusterv1.MachineList{}, &lcmv1.LCMMachineList{}} {
			if err := b.kube.List(ctx, list); err != nil {
				return false, err
			}
			left += meta.LenList(list)
		}
		for i := range l.Items {
			before := l.Items[i].DeepCopy()
			l.Items[i].Finalizers = nil
			if err := b.kube.Patch(ctx, &l.Items[i], client.MergeFrom(before)); client.IgnoreNotFound(err) != nil {
				return false, err
			}
		}
		return left == 0, nil
	})
}
