package manager

import (
	"context"
	"fmt"
	"net"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/metalab-dev/metalab/controller/inband"
)

// Identity reads what agents know the controllers of a cluster by from a
// Secret, or makes it: a controller that replaces another is known to the
// agents that the other has booted. now is the wall time, addresses are those
// that agents reach this process at.
func Identity(ctx context.Context, c client.Client, at client.ObjectKey, now time.Time, addresses ...net.IP) (inband.Identity, error) {
	var s corev1.Secret
	err := c.Get(ctx, at, &s)
	if apierrors.IsNotFound(err) {
		s = corev1.Secret{
			ObjectMeta: metav1.ObjectMeta{Namespace: at.Namespace, Name: at.Name},
			Immutable:  ptr.To(true), // whoever changed it would lose all agents
		}
		if s.Data, err = inband.NewSecrets(now); err != nil {
			return inband.Identity{}, err
		}
		if err = c.Create(ctx, &s); apierrors.IsAlreadyExists(err) { // another was faster
			err = c.Get(ctx, at, &s)
		}
	}
	if err != nil {
		return inband.Identity{}, fmt.Errorf("manager: identity: %w", err)
	}
	id, err := inband.NewIdentity(s.Data, now, addresses...)
	if err != nil {
		return inband.Identity{}, fmt.Errorf("manager: secret %s: %w", at, err)
	}
	return id, nil
}
