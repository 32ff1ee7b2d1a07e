package steps

import (
	"context"
	"fmt"
	"slices"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/util/retry"
	"sigs.k8s.io/controller-runtime/pkg/client"

	kaasv1 "github.com/metalab-dev/metalab/controller/api/kaas/v1alpha1"
	"github.com/metalab-dev/metalab/controller/config"
	"github.com/metalab-dev/metalab/controller/mosk/hostos/module"
)

// The vendor's index, and the list that is made of it.
const (
	vendorsIndex = "/modules/index.yaml"
	vendorsList  = "mcc-modules"
)

// registerVendor binds the steps on the vendor's modules, and on the removal of modules.
func (s *scenario) registerVendor(sc *stepRegistry) {
	sc.Step(`^a lab with host OS configuration and a vendor's index$`, "gives the scenario a lab of the family hoc whose controllers read an index; the vendor has published none yet", func(ctx context.Context) error {
		return s.startKind(ctx, 1, labKind{with: config.HOC, vendor: true})
	})
	sc.Step(`^the vendor publishes the modules "([^"]*)"$`, "serves an index of NAME VERSION, … in this order, without URLs, and the archives beside it", s.publishIndex)
	sc.Step(`^the vendor's list has the modules "([^"]*)"$`, "waits until mcc-modules has these modules, NAME VERSION, … in this order", s.vendorsListHas)
	sc.Step(`^the operator makes the vendor's list the modules "([^"]*)"$`, "replaces the modules of mcc-modules, with a digest of zeros", s.editVendorsList)
	sc.NegativeStep(`^the vendor's list still has the module "([^"]*)"$`, "asserts, once each controller has reconciled every object, that mcc-modules has a module, NAME VERSION", func(ctx context.Context, text string) error {
		if err := s.letDay2ControllersAct(ctx); err != nil {
			return err
		}
		modules, err := s.modulesOf(ctx, vendorsList)
		if err == nil && !slices.Contains(modules, text) {
			err = fmt.Errorf("the vendor's list has %q", modules)
		}
		return err
	})
	sc.Step(`^the operator tries to remove the module "([^"]*)"$`, "removes a module, NAME VERSION, from the list of modules in a dry run", s.tryRemoval)
	sc.Step(`^the operator tries to delete the list of modules$`, "deletes the list in a dry run", func(ctx context.Context) error {
		s.dryRun = true
		s.admissionError = s.kube.Delete(ctx, &kaasv1.HostOSConfigurationModules{ObjectMeta: metav1.ObjectMeta{Name: modulesName}}, client.DryRunAll)
		return nil
	})
}

func (s *scenario) publishIndex(_ context.Context, list string) error {
	x := module.NewIndex(vendorsList)
	for _, text := range fields(list) {
		name, version, err := ofModule(text)
		if err != nil {
			return err
		}
		archive, err := s.buildModule(name, version)
		if err != nil {
			return err
		}
		s.testLab.vendor.put("/modules"+archivePath(name, version), archive)
		x.Spec.Modules = append(x.Spec.Modules, module.Entry{Name: name, Version: version, SHA256: module.Sum(archive)})
	}
	text, err := x.Text()
	if err == nil {
		s.testLab.vendor.put(vendorsIndex, text)
	}
	return err
}

// modulesOf returns the modules of a list, NAME VERSION each.
func (s *scenario) modulesOf(ctx context.Context, name string) (out []string, err error) {
	o := &kaasv1.HostOSConfigurationModules{ObjectMeta: metav1.ObjectMeta{Name: name}}
	err = s.kube.Get(ctx, client.ObjectKeyFromObject(o), o)
	for _, m := range o.Spec.Modules {
		out = append(out, string(m.Name)+" "+string(m.Version))
	}
	return out, err
}

func (s *scenario) vendorsListHas(ctx context.Context, list string) error {
	return eventually(ctx, "the vendor's list has "+list, func(ctx context.Context) (bool, string, error) {
		modules, err := s.modulesOf(ctx, vendorsList)
		return err == nil && slices.Equal(modules, fields(list)), strings.Join(modules, ", "), client.IgnoreNotFound(err)
	})
}

func (s *scenario) editVendorsList(ctx context.Context, list string) error {
	return retry.RetryOnConflict(conflictBackoff, func() error {
		o := &kaasv1.HostOSConfigurationModules{ObjectMeta: metav1.ObjectMeta{Name: vendorsList}}
		if err := s.kube.Get(ctx, client.ObjectKeyFromObject(o), o); err != nil {
			return err
		}
		o.Spec.Modules = nil
		for _, text := range fields(list) {
			name, version, err := ofModule(text)
			if err != nil {
				return err
			}
			o.Spec.Modules = append(o.Spec.Modules, kaasv1.Module{Name: kaasv1.ModuleName(name), Version: kaasv1.SemVer(version), SHA256Sum: strings.Repeat("0", 64)})
		}
		return s.kube.Update(ctx, o)
	})
}

func (s *scenario) tryRemoval(ctx context.Context, text string) error {
	s.dryRun = true
	return retry.RetryOnConflict(conflictBackoff, func() error {
		o := &kaasv1.HostOSConfigurationModules{ObjectMeta: metav1.ObjectMeta{Name: modulesName}}
		if err := s.kube.Get(ctx, client.ObjectKeyFromObject(o), o); err != nil {
			return err
		}
		before := len(o.Spec.Modules)
		o.Spec.Modules = slices.DeleteFunc(o.Spec.Modules, func(m kaasv1.Module) bool { return string(m.Name)+" "+string(m.Version) == text })
		if len(o.Spec.Modules) == before {
			return fmt.Errorf("the list has no module %s", text)
		}
		err := s.kube.Update(ctx, o, client.DryRunAll)
		if apierrors.IsConflict(err) {
			return err
		}
		s.admissionError = err
		return nil
	})
}
