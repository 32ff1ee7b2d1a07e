package steps

import (
	"context"
	"fmt"
	"os"
	"path/filepath"

	metal3 "github.com/metal3-io/baremetal-operator/apis/metal3.io/v1alpha1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/util/retry"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/metalab-dev/metalab/lab"
	"github.com/metalab-dev/metalab/scenarios/images"
)

func (s *scenario) registerDataImages(sc *stepRegistry) {
	sc.Step(`^the operator sets the DataImage "([^"]*)"$`, "creates or changes the host's DataImage to an ISO that the lab serves", s.giveData)
	sc.Step(`^the operator sets a DataImage that does not exist$`, "creates or changes the host's DataImage to a URL that answers 404", func(ctx context.Context) error { return s.setData(ctx, "nowhere.iso") })
	sc.Step(`^the operator deletes the DataImage$`, "deletes the DataImage without waiting", func(ctx context.Context) error { return s.kube.Delete(ctx, s.dataImage("")) })
	sc.Step(`^the server's virtual CD holds "([^"]*)"$`, "waits until the virtual CD holds this ISO of the lab", s.cdHolds)
	sc.Step(`^the DataImage "([^"]*)" is attached$`, "waits for status.attachedImage, without an error", s.dataAttached)
	sc.Step(`^the DataImage shows an error$`, "waits for status.error", s.dataFailed)
	sc.NegativeStep(`^the DataImage is still there$`, "asserts, once each controller has reconciled every object, that the DataImage exists", s.dataStays)
	sc.Step(`^the DataImage is deleted$`, "waits until the DataImage does not exist, which existed before", func(ctx context.Context) error { return s.isDeleted(ctx, "DataImage") })
	sc.Step(`^the DataImage is owned by the host$`, "waits until the DataImage has the host as owner, and a finalizer", s.dataOwned)
}

func (s *scenario) dataImage(file string) *metal3.DataImage {
	return &metal3.DataImage{
		ObjectMeta: metav1.ObjectMeta{Name: s.server.Name, Namespace: lab.Namespace},
		Spec:       metal3.DataImageSpec{URL: s.lab.ImagesURL() + file},
	}
}

func (s *scenario) giveData(ctx context.Context, file string) error {
	iso, err := images.BuildLiveISO()
	if err != nil {
		return err
	}
	if err := os.WriteFile(filepath.Join(s.dir, lab.ImagesDir, file), iso, 0o600); err != nil {
		return err
	}
	return s.setData(ctx, file)
}

// setData creates the DataImage, or changes its URL.
func (s *scenario) setData(ctx context.Context, file string) error {
	err := s.kube.Create(ctx, s.dataImage(file))
	if !apierrors.IsAlreadyExists(err) {
		return err
	}
	return retry.RetryOnConflict(conflictBackoff, func() error {
		d, err := s.readData(ctx)
		if err != nil {
			return err
		}
		d.Spec.URL = s.dataImage(file).Spec.URL
		return s.kube.Update(ctx, d)
	})
}

func (s *scenario) readData(ctx context.Context) (*metal3.DataImage, error) {
	d := s.dataImage("")
	return d, s.kube.Get(ctx, client.ObjectKeyFromObject(d), d)
}

func (s *scenario) cdHolds(ctx context.Context, file string) error {
	want := s.dataImage(file).Spec.URL
	return eventually(ctx, "the virtual CD holds "+want, func(context.Context) (bool, string, error) {
		current := s.host().BMC().Slots[0].Image
		return current == want, current, nil
	})
}

// awaitDataImage waits until ok accepts the DataImage.
func (s *scenario) awaitDataImage(ctx context.Context, what string, ok func(*metal3.DataImage) bool) error {
	return eventually(ctx, "the data image "+what, func(ctx context.Context) (bool, string, error) {
		d, err := s.readData(ctx)
		return ok(d), fmt.Sprintf("%+v %+v", d.ObjectMeta, d.Status), err
	})
}

func (s *scenario) dataAttached(ctx context.Context, file string) error {
	return s.awaitDataImage(ctx, "is attached", func(d *metal3.DataImage) bool {
		return d.Status.AttachedImage.URL == s.dataImage(file).Spec.URL && d.Status.Error.Count == 0 && !d.Status.LastReconciled.IsZero()
	})
}

func (s *scenario) dataFailed(ctx context.Context) error {
	return s.awaitDataImage(ctx, "tells an error", func(d *metal3.DataImage) bool {
		return d.Status.Error.Count > 0 && d.Status.Error.Message != "" && d.Status.AttachedImage.URL == ""
	})
}

func (s *scenario) dataStays(ctx context.Context) error {
	if err := s.letControllersAct(ctx); err != nil {
		return err
	}
	_, err := s.readData(ctx)
	return err
}

func (s *scenario) dataOwned(ctx context.Context) error {
	return s.awaitDataImage(ctx, "belongs to the host", func(d *metal3.DataImage) bool {
		h := s.recorder.host()
		return h != nil && len(d.OwnerReferences) == 1 && d.OwnerReferences[0].UID == h.UID &&
			len(d.Finalizers) == 1 && d.Finalizers[0] == metal3.DataImageFinalizer
	})
}
