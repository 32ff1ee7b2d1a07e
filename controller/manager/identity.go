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

// Identity reads the controllers' identity from the Secret that key names, and creates
// the Secret if it does not exist. All controllers of a cluster share it, so that the
// agents that one process has booted accept its successor. now is the wall time;
// the certificate is valid for addresses, at which agents reach this process.
func Identity(ctx context.Context, c client.Client, key client.ObjectKey, now time.Time, addresses ...net.IP) (inband.Identity, error) {
	var s corev1.Secret
	err := c.Get(ctx, key, &s)
	if apierrors.IsNotFound(err) {
		s = corev1.Secret{
			ObjectMeta: metav1.ObjectMeta{Namespace: key.Namespace, Name: key.Name},
			Immutable:  ptr.To(true), // after a change, no running agent would be accepted
		}
		if s.Data, err = inband.NewSecrets(now); err != nil {
			return inband.Identity{}, err
		}
		if err = c.Create(ctx, &s); apierrors.IsAlreadyExists(err) { // another process was faster
			err = c.Get(ctx, key, &s)
		}
	}
	if err != nil {
		return inband.Identity{}, fmt.Errorf("identity: %w", err)
	}
	id, err := inband.NewIdentity(s.Data, now, addresses...)
	if err != nil {
		return inband.Identity{}, fmt.Errorf("secret %s: %w", key, err)
	}
	return id, nil
}
