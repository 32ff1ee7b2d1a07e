package steps

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"github.com/cucumber/godog"
	metal3 "github.com/metal3-io/baremetal-operator/apis/metal3.io/v1alpha1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/util/retry"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/metalab-dev/metalab/emulator/machine"
	"github.com/metalab-dev/metalab/lab"
	"github.com/metalab-dev/metalab/scenarios/images"
)

// The Secrets and the file that these steps create.
const (
	userDataSecret = "user-data"
	metaDataSecret = "meta-data"
	liveISOFile    = "live.iso"
)

func (s *scenario) registerConfig(sc *stepRegistry) {
	sc.Step(`^the operator sets user data "([^"]*)" and the name "([^"]*)"$`, "creates Secrets with user data and metadata, and sets spec.userData and spec.metaData", s.createConfigSecrets)
	sc.Step(`^the operator sets user data "([^"]*)" and the name "([^"]*)" from Secrets of another namespace$`, "creates the Secrets in a namespace of their own, and sets spec.userData and spec.metaData with it", s.createForeignConfigSecrets)
	sc.Step(`^the operator sets the name "([^"]*)" and the user data:$`, "likewise, with this text as user data", func(ctx context.Context, name string, doc *godog.DocString) error {
		return s.createConfigSecrets(ctx, doc.Content, name)
	})
	sc.Step(`^the operator changes the user data to:$`, "changes the Secret with user data", s.changeUserData)
	sc.Step(`^the operator refers to user data that does not exist$`, "sets spec.userData and spec.metaData to Secrets that do not exist", s.referToConfigSecrets)
	sc.Step(`^the server's first disk ends with a config drive that holds "([^"]*)" and "([^"]*)"$`, "looks for a config drive with these texts at the end of the first disk", s.diskEndsWithDrive)
	sc.Step(`^the server's first disk ends with a config drive that names the host$`, "looks for a config drive with the host's name and UID, and without user data, at the end of the first disk", s.diskEndsWithDefaultDrive)
	sc.Step(`^the operator sets a live ISO$`, "sets spec.image to a bootable ISO with the format live-iso",
		func(ctx context.Context) error { return s.requestLiveISO(ctx, s.lab.ImagesURL()) })
	sc.Step(`^the operator sets a live ISO with an HTTPS URL$`, "sets spec.image to a live ISO at the lab's HTTPS server of images",
		func(ctx context.Context) error { return s.requestLiveISO(ctx, s.lab.SecureImagesURL()) })
	sc.Step(`^the server runs from its virtual CD$`, "waits until the server has booted from its virtual CD", s.runsCD)
	sc.Step(`^the operator sets the deployment method "([^"]*)"$`, "sets customDeploy.method", s.requestDeployMethod)
}

func (s *scenario) referToConfigSecrets(ctx context.Context) error { return s.referToConfig(ctx, "") }

func (s *scenario) referToConfig(ctx context.Context, namespace string) error {
	return s.change(ctx, func(h *metal3.BareMetalHost) {
		h.Spec.UserData = &corev1.SecretReference{Name: userDataSecret, Namespace: namespace}
		h.Spec.MetaData = &corev1.SecretReference{Name: metaDataSecret, Namespace: namespace}
	})
}

func (s *scenario) createConfigSecrets(ctx context.Context, userData, name string) error {
	_, host := lab.Objects(s.server)
	if err := s.createConfig(ctx, host.Namespace, userData, name); err != nil {
		return err
	}
	return s.referToConfigSecrets(ctx)
}

func (s *scenario) changeUserData(ctx context.Context, doc *godog.DocString) error {
	_, host := lab.Objects(s.server)
	return retry.RetryOnConflict(conflictBackoff, func() error {
		var secret corev1.Secret
		if err := s.kube.Get(ctx, client.ObjectKey{Namespace: host.Namespace, Name: userDataSecret}, &secret); err != nil {
			return err
		}
		secret.Data = map[string][]byte{"userData": []byte(doc.Content)}
		return s.kube.Update(ctx, &secret)
	})
}

func (s *scenario) createForeignConfigSecrets(ctx context.Context, userData, name string) error {
	namespace := s.server.Name + "-data"
	if err := s.create(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: namespace}}); err != nil {
		return err
	}
	if err := s.createConfig(ctx, namespace, userData, name); err != nil {
		return err
	}
	return s.referToConfig(ctx, namespace)
}

// createConfig creates the Secrets with user data and metadata.
func (s *scenario) createConfig(ctx context.Context, namespace, userData, name string) error {
	for secret, data := range map[string]map[string]string{ // in any order: the Secrets are independent
		userDataSecret: {"userData": userData}, metaDataSecret: {"metaData": "name: " + name},
	} {
		o := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: secret, Namespace: namespace}, StringData: data}
		if err := s.create(ctx, o); err != nil {
			return err
		}
	}
	return nil
}

// configDriveRange is how many bytes at the end of a disk are searched for a config
// drive.
const configDriveRange = 66 << 20

func (s *scenario) diskEndsWithDrive(userData, name string) error {
	return s.diskEndsWith([]string{"config-2", "user_data", userData, `"name":"` + name + `"`}, nil)
}

func (s *scenario) diskEndsWithDefaultDrive(ctx context.Context) error {
	h, err := s.read(ctx)
	if err != nil {
		return err
	}
	return s.diskEndsWith([]string{"config-2", `"local-hostname":"` + h.Name + `"`, `"name":"` + h.Name + `"`, `"uuid":"` + string(h.UID) + `"`},
		[]string{"user_data", "network_data.json"})
}

// diskEndsWith looks for texts in the range of a config drive, which must not hold others.
func (s *scenario) diskEndsWith(present, absent []string) error {
	m, size, err := s.disk(0)
	if err != nil {
		return err
	}
	tail := make([]byte, configDriveRange)
	if _, err := m.ReadAt(tail, size-configDriveRange); err != nil && !errors.Is(err, io.EOF) {
		return err
	}
	for _, want := range present {
		if !bytes.Contains(tail, []byte(want)) {
			return fmt.Errorf("the disk's last %d bytes do not hold %q", configDriveRange, want)
		}
	}
	for _, unwanted := range absent {
		if bytes.Contains(tail, []byte(unwanted)) {
			return fmt.Errorf("the disk's last %d bytes hold %q", configDriveRange, unwanted)
		}
	}
	return nil
}

func (s *scenario) requestLiveISO(ctx context.Context, at string) error {
	iso, err := images.BuildLiveISO()
	if err != nil {
		return err
	}
	if err := os.WriteFile(filepath.Join(s.dir, lab.ImagesDir, liveISOFile), iso, 0o600); err != nil {
		return err
	}
	format := "live-iso"
	return s.change(ctx, func(h *metal3.BareMetalHost) {
		h.Spec.Image = &metal3.Image{URL: at + liveISOFile, DiskFormat: &format}
	})
}

func (s *scenario) runsCD(ctx context.Context) error {
	return eventually(ctx, "the server runs its virtual CD", func(context.Context) (bool, string, error) {
		v := s.machine()
		return v.Phase == machine.Running && v.OS.Source.Kind == machine.Cd, fmt.Sprintf("%s, %+v", v.Phase, v.OS), nil
	})
}

func (s *scenario) requestDeployMethod(ctx context.Context, method string) error {
	return s.change(ctx, func(h *metal3.BareMetalHost) { h.Spec.CustomDeploy = &metal3.CustomDeploy{Method: method} })
}
