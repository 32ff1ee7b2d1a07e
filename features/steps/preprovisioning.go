package steps

import (
	"context"
	"fmt"
	"io"
	"net/http"

	metal3 "github.com/metal3-io/baremetal-operator/apis/metal3.io/v1alpha1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/metalab-dev/metalab/lab"
)

func (s *scenario) registerPreprovisioning(sc *stepRegistry) {
	sc.Step(`^the host's PreprovisioningImage is ready$`, "waits for the condition Ready of the PreprovisioningImage, and fetches the image", s.imageReady)
	sc.Step(`^it has the label "([^"]*)" of its host$`, "asserts that the PreprovisioningImage has this label of its host", s.imageLabel)
	sc.Step(`^the operator registers the server with network data for the agent$`, "applies a Secret with network data, and a labelled BareMetalHost that refers to it", s.registerWithNetwork)
	sc.Step(`^the operator removes the network data for the agent$`, "clears spec.preprovisioningNetworkDataName", func(ctx context.Context) error {
		return s.change(ctx, func(h *metal3.BareMetalHost) { h.Spec.PreprovisioningNetworkDataName = "" })
	})
	sc.Step(`^the PreprovisioningImage has the error "([^"]*)" with reason "([^"]*)"$`, "waits for the condition Error of the PreprovisioningImage", s.imageFails)
	sc.Step(`^the PreprovisioningImage is deleted$`, "waits until the PreprovisioningImage does not exist, which existed before", func(ctx context.Context) error { return s.isDeleted(ctx, "PreprovisioningImage") })
}

func (s *scenario) preprovisioningImage(ctx context.Context) (*metal3.PreprovisioningImage, error) {
	p := new(metal3.PreprovisioningImage)
	return p, s.kube.Get(ctx, client.ObjectKey{Namespace: lab.Namespace, Name: s.server.Name}, p)
}

// awaitImageCondition waits until a condition of the PreprovisioningImage is True
// with a reason and a message.
func (s *scenario) awaitImageCondition(ctx context.Context, kind metal3.ImageStatusConditionType, reason, message string) (p *metal3.PreprovisioningImage, err error) {
	err = eventually(ctx, "the image is "+string(kind), func(ctx context.Context) (bool, string, error) {
		p, err = s.preprovisioningImage(ctx)
		if err != nil {
			return false, err.Error(), client.IgnoreNotFound(err)
		}
		c := meta.FindStatusCondition(p.Status.Conditions, string(kind))
		return c != nil && c.Status == metav1.ConditionTrue && c.Reason == reason && c.Message == message, fmt.Sprintf("%+v", p.Status), nil
	})
	return p, err
}

func (s *scenario) imageReady(ctx context.Context) error {
	p, err := s.awaitImageCondition(ctx, metal3.ConditionImageReady, "ImageSuccess", "Generated image")
	if err != nil {
		return err
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, p.Status.ImageUrl, nil)
	if err != nil {
		return err
	}
	r, err := http.DefaultClient.Do(req)
	if err != nil {
		return err
	}
	defer r.Body.Close()
	n, err := io.Copy(io.Discard, r.Body)
	if err != nil || r.StatusCode != http.StatusOK || n < 32<<10 {
		return fmt.Errorf("%s: %s, %d bytes, %w", p.Status.ImageUrl, r.Status, n, err)
	}
	if p.Status.Format != metal3.ImageFormatISO || p.Status.Architecture != p.Spec.Architecture {
		return fmt.Errorf("the image is %+v, want an ISO for %s", p.Status, p.Spec.Architecture)
	}
	return nil
}

func (s *scenario) imageLabel(ctx context.Context, name string) error {
	p, err := s.preprovisioningImage(ctx)
	if h := s.recorder.host(); err == nil && (h == nil || p.Labels[name] == "" || p.Labels[name] != h.Labels[name]) {
		return fmt.Errorf("labels of the image: %v", p.Labels)
	}
	return err
}

func (s *scenario) registerWithNetwork(ctx context.Context) error {
	secret, host := lab.Objects(s.server)
	host.Spec.PreprovisioningNetworkDataName = s.server.Name + "-network"
	host.Labels = map[string]string{"rack": "r1"}
	network := &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Name: host.Spec.PreprovisioningNetworkDataName, Namespace: lab.Namespace},
		StringData: map[string]string{"networkData": "links: []"},
	}
	return s.create(ctx, network, secret, host)
}

func (s *scenario) imageFails(ctx context.Context, message, reason string) error {
	_, err := s.awaitImageCondition(ctx, metal3.ConditionImageError, reason, message)
	return err
}
