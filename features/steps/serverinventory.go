package steps

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/google/go-cmp/cmp"
	metal3 "github.com/metal3-io/baremetal-operator/apis/metal3.io/v1alpha1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/client-go/util/retry"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	clusterv1 "github.com/metalab-dev/metalab/controller/api/cluster/v1alpha1"
	kaasv1 "github.com/metalab-dev/metalab/controller/api/kaas/v1alpha1"
	"github.com/metalab-dev/metalab/lab"
)

// credentialName is the name of a scenario's BareMetalHostCredential.
const credentialName = "account"

// registerServerInventory binds the steps on BareMetalHostInventories and
// BareMetalHostCredentials.
func (s *scenario) registerServerInventory(sc *stepRegistry) {
	sc.Step(`^the operator adds the server to the inventory$`, "creates the BareMetalHostCredential and the BareMetalHostInventory of the server", func(ctx context.Context) error {
		return s.addToInventory(ctx, s.server.Password)
	})
	sc.Step(`^the operator adds the server to the inventory with a wrong password$`, "the same, with a password that the BMC refuses", func(ctx context.Context) error { return s.addToInventory(ctx, wrongPassword) })
	sc.Step(`^the operator adds the server to the inventory without its credential$`, "creates the BareMetalHostInventory alone", func(ctx context.Context) error { return s.create(ctx, s.serverInventory()) })
	sc.Step(`^the operator has added the server to the inventory$`, "creates both and waits until the host is available and no longer written", func(ctx context.Context) error {
		if err := s.addToInventory(ctx, s.server.Password); err != nil {
			return err
		}
		if err := s.awaitState(ctx, string(metal3.StateAvailable)); err != nil {
			return err
		}
		return s.followsInventory(ctx)
	})
	sc.Step(`^the operator creates the credential$`, "creates the BareMetalHostCredential of the server", func(ctx context.Context) error { return s.create(ctx, s.credential(s.server.Password)) })
	sc.Step(`^the operator corrects the password of the credential$`, "edits spec.password.value to the server's", func(ctx context.Context) error { return s.setCredential(ctx, s.server.Password) })
	sc.Step(`^the operator changes the password of the credential to "([^"]*)"$`, "edits spec.password.value", s.setCredential)
	sc.Step(`^the operator deletes the credential$`, "deletes the BareMetalHostCredential without waiting", func(ctx context.Context) error { return s.kube.Delete(ctx, s.credential("")) })
	sc.Step(`^the operator deletes the server from the inventory$`, "deletes the BareMetalHostInventory without waiting", func(ctx context.Context) error { return s.kube.Delete(ctx, s.serverInventory()) })
	sc.Step(`^the inventory and the credential are deleted$`, "waits until neither exists", func(ctx context.Context) error {
		return errors.Join(s.awaitDeletion(ctx, s.serverInventory()), s.awaitDeletion(ctx, s.credential("")))
	})
	sc.NegativeStep(`^the credential still exists$`, "asserts, once each controller has reconciled every object, that the BareMetalHostCredential exists", func(ctx context.Context) error {
		if err := s.letControllersAct(ctx); err != nil {
			return err
		}
		c := s.credential("")
		return s.kube.Get(ctx, client.ObjectKeyFromObject(c), c)
	})
	sc.NegativeStep(`^the server has no BareMetalHost$`, "asserts, once each controller has reconciled every object, that there is none", func(ctx context.Context) error {
		if err := s.letControllersAct(ctx); err != nil {
			return err
		}
		h := new(metal3.BareMetalHost)
		if err := s.kube.Get(ctx, s.hostKey(), h); !apierrors.IsNotFound(err) {
			return fmt.Errorf("there is one, %w", err)
		}
		return nil
	})
	sc.Step(`^the inventory shows the host in "([^"]*)"$`, "waits until these fields of the BareMetalHostInventory's status have the values of the host", s.inventoryShows)
	sc.Step(`^the host follows its inventory$`, "waits until the BareMetalHost has the BMC, boot MAC address, boot mode and power of its BareMetalHostInventory, and no image", s.followsInventory)
	sc.Step(`^the inventory reports '([^']*)'$`, "waits until status.errorMessage of the BareMetalHostInventory contains this text", func(ctx context.Context, text string) error {
		return s.awaitInventory(ctx, "reports "+text, func(i *kaasv1.BareMetalHostInventory) bool { return strings.Contains(i.Status.ErrorMessage, text) })
	})
	sc.Step(`^the inventory reports no error$`, "waits until the BareMetalHostInventory has neither errorMessage nor errorType", func(ctx context.Context) error {
		return s.awaitInventory(ctx, "reports no error", func(i *kaasv1.BareMetalHostInventory) bool { return i.Status.ErrorMessage+i.Status.ErrorType == "" })
	})
	sc.Step(`^the password of the credential is in a Secret alone$`, "waits until the BareMetalHostCredential names a Secret with a password, and has the text nowhere", s.passwordIsInSecret)
}

func (s *scenario) hostKey() client.ObjectKey {
	return client.ObjectKey{Namespace: lab.Namespace, Name: s.server.Name}
}

func (s *scenario) credential(password string) *kaasv1.BareMetalHostCredential {
	c := &kaasv1.BareMetalHostCredential{ObjectMeta: day2Meta(credentialName)}
	c.Labels = map[string]string{clusterv1.ProviderLabel: clusterv1.ProviderBareMetal}
	c.Spec = kaasv1.BareMetalHostCredentialSpec{Username: s.server.Username, Password: kaasv1.CredentialPassword{Value: password}}
	return c
}

func (s *scenario) serverInventory() *kaasv1.BareMetalHostInventory {
	i := &kaasv1.BareMetalHostInventory{ObjectMeta: day2Meta(s.server.Name)}
	i.Labels = map[string]string{clusterv1.ProviderLabel: clusterv1.ProviderBareMetal, "rack": "a"}
	i.Spec = kaasv1.BareMetalHostInventorySpec{
		BootMACAddress: s.server.BootMACAddress,
		BMC:            kaasv1.InventoryBMC{Address: s.server.BMCAddress, CredentialsName: credentialName},
	}
	return i
}

func (s *scenario) addToInventory(ctx context.Context, password string) error {
	return s.create(ctx, s.credential(password), s.serverInventory())
}

func (s *scenario) setCredential(ctx context.Context, password string) error {
	return retry.RetryOnConflict(conflictBackoff, func() error {
		c := s.credential("")
		if err := s.kube.Get(ctx, client.ObjectKeyFromObject(c), c); err != nil {
			return err
		}
		c.Spec.Password.Value = password
		return s.kube.Update(ctx, c)
	})
}

// awaitInventory waits until ok accepts the BareMetalHostInventory.
func (s *scenario) awaitInventory(ctx context.Context, what string, ok func(*kaasv1.BareMetalHostInventory) bool) error {
	return eventually(ctx, "the inventory "+what, func(ctx context.Context) (bool, string, error) {
		i := s.serverInventory()
		err := s.kube.Get(ctx, client.ObjectKeyFromObject(i), i)
		return err == nil && ok(i), fmt.Sprintf("%+v", i.Status), err
	})
}

func (s *scenario) inventoryShows(ctx context.Context, names string) error {
	return eventually(ctx, "the inventory shows its host", func(ctx context.Context) (bool, string, error) {
		h, err := s.read(ctx)
		if err != nil {
			return false, "", client.IgnoreNotFound(err)
		}
		i := s.serverInventory()
		if err := s.kube.Get(ctx, client.ObjectKeyFromObject(i), i); err != nil {
			return false, "", err
		}
		var want, got map[string]any
		if err := errors.Join(convert(map[string]any{
			"provisioningState": h.Status.Provisioning.State, "operationalStatus": h.Status.OperationalStatus,
			"poweredOn": h.Status.PoweredOn, "hardwareDetails": h.Status.HardwareDetails,
		}, &want), convert(i.Status, &got)); err != nil {
			return false, "", err
		}
		for _, name := range fields(names) {
			if want[name] == nil || cmp.Diff(want[name], got[name]) != "" {
				return false, name + ": " + cmp.Diff(want[name], got[name]), nil
			}
		}
		return true, "", nil
	})
}

// convert writes a value to another one by way of their fields in YAML.
func convert(from, to any) error {
	b, err := yaml.Marshal(from)
	if err != nil {
		return err
	}
	return yaml.Unmarshal(b, to)
}

func (s *scenario) followsInventory(ctx context.Context) error {
	return eventually(ctx, "the host follows its inventory", func(ctx context.Context) (bool, string, error) {
		h, err := s.read(ctx)
		if err != nil {
			return false, "", client.IgnoreNotFound(err)
		}
		spec := h.Spec
		return spec.BMC.Address == s.server.BMCAddress && spec.BootMACAddress == s.server.BootMACAddress && spec.BootMode == metal3.UEFI &&
			spec.Online && spec.Image == nil && h.Labels["rack"] == "a", fmt.Sprintf("%+v %+v", h.Labels, spec), nil
	})
}

func (s *scenario) passwordIsInSecret(ctx context.Context) error {
	return eventually(ctx, "the password is in a Secret", func(ctx context.Context) (bool, string, error) {
		c := s.credential("")
		if err := s.kube.Get(ctx, client.ObjectKeyFromObject(c), c); err != nil {
			return false, "", err
		}
		secret := new(corev1.Secret)
		if name := c.Spec.Password.Name; name == "" || c.Spec.Password.Value != "" {
			return false, "it has not moved", nil
		}
		err := s.kube.Get(ctx, client.ObjectKey{Namespace: c.Namespace, Name: c.Spec.Password.Name}, secret)
		if err != nil {
			return false, "", err
		}
		password := string(secret.Data["password"])
		b, err := yaml.Marshal(c)
		return password != "" && !strings.Contains(string(b), password), string(b), err
	})
}

// deleteInventories deletes all BareMetalHostInventories and BareMetalHostCredentials. Their
// hosts are deleted apart: the finalizers are removed.
func (b *testLab) deleteInventories(ctx context.Context) error {
	var servers kaasv1.BareMetalHostInventoryList
	var accounts kaasv1.BareMetalHostCredentialList
	in := client.InNamespace(lab.Namespace)
	if err := errors.Join(b.kube.List(ctx, &servers, in), b.kube.List(ctx, &accounts, in)); err != nil {
		return err
	}
	var all []client.Object
	for i := range servers.Items {
		all = append(all, &servers.Items[i])
	}
	for i := range accounts.Items {
		all = append(all, &accounts.Items[i])
	}
	for _, o := range all {
		if err := client.IgnoreNotFound(b.discard(ctx, o)); err != nil {
			return err
		}
	}
	return nil
}

// discard deletes an object without its controller. It removes the labels first, so that the
// provider ignores the object, and the finalizers.
func (b *testLab) discard(ctx context.Context, o client.Object) error {
	before := o.DeepCopyObject().(client.Object)
	o.SetLabels(nil)
	o.SetFinalizers(nil)
	if err := b.kube.Patch(ctx, o, client.MergeFrom(before)); err != nil {
		return err
	}
	return b.kube.Delete(ctx, o)
}
