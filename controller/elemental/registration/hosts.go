package registration

import (
	"context"
	"errors"
	"maps"
	"net/http"
	"strings"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	elementalv1 "github.com/metalab-dev/metalab/controller/api/elemental/v1beta1"
	"github.com/metalab-dev/metalab/controller/elemental/condition"
	"github.com/metalab-dev/metalab/controller/elemental/object"
)

// request is one request of an agent.
type request struct {
	*API
	w http.ResponseWriter
	r *http.Request

	namespace, name string // namespace and name of the registration
	host            string // "" where the path names none
}

const registrationNotFound = "ElementalRegistration '%s' not found"

// loadRegistration returns the registration that the path names.
func (r *request) loadRegistration() (*elementalv1.ElementalRegistration, error) {
	if !valid(r.namespace) || !valid(r.name) { // it is in no cache, and must not be part of a URL
		return nil, refuse(http.StatusNotFound, nil, registrationNotFound, r.name)
	}
	g := new(elementalv1.ElementalRegistration)
	key := client.ObjectKey{Namespace: r.namespace, Name: r.name}
	err := r.Client.Get(r.context(), key, g)
	if apierrors.IsNotFound(err) {
		err = r.Reader.Get(r.context(), key, g)
	}
	switch {
	case apierrors.IsNotFound(err):
		return nil, refuse(http.StatusNotFound, nil, registrationNotFound, r.name)
	case err != nil:
		return nil, refuse(http.StatusInternalServerError, err, "Could not fetch ElementalRegistration '%s'", r.name)
	}
	return g, nil
}

// valid reports whether an object can have a name.
func valid(name string) bool { return len(validation.IsDNS1123Subdomain(name)) == 0 }

// loadHost returns the host that the path names, whichever registration it is of.
func (r *request) loadHost() (*elementalv1.ElementalHost, error) {
	return r.loadHostBy(r.hosts.Get)
}

// loadHostNow returns it as the API has it, past the cache.
func (r *request) loadHostNow() (*elementalv1.ElementalHost, error) {
	return r.loadHostBy(func(ctx context.Context, key client.ObjectKey, o client.Object) error {
		return r.Reader.Get(ctx, key, o)
	})
}

func (r *request) loadHostBy(get func(context.Context, client.ObjectKey, client.Object) error) (*elementalv1.ElementalHost, error) {
	if !valid(r.host) {
		return nil, refuse(http.StatusNotFound, nil, "ElementalHost '%s' not found", r.host)
	}
	h := new(elementalv1.ElementalHost)
	err := get(r.context(), client.ObjectKey{Namespace: r.namespace, Name: r.host}, h)
	switch {
	case apierrors.IsNotFound(err):
		return nil, refuse(http.StatusNotFound, nil, "ElementalHost '%s' not found", r.host)
	case err != nil:
		return nil, refuse(http.StatusInternalServerError, err, "Could not fetch ElementalHost '%s'", r.host)
	}
	return h, nil
}

// authorized returns the registration and the host that the path names, if the request has a
// token of that host.
func (r *request) authorized() (*elementalv1.ElementalHost, error) {
	g, err := r.loadRegistration()
	if err != nil {
		return nil, err
	}
	h, err := r.loadHost()
	if err == nil {
		err = r.authorizeHost(h.Name, h.Spec.PubKey, g)
	}
	if refused := new(refusal); errors.As(err, &refused) && refused.status == http.StatusForbidden {
		// The cache may still have the host as it was before it was reset and registered again,
		// with another key.
		if h, err = r.loadHostNow(); err == nil {
			err = r.authorizeHost(h.Name, h.Spec.PubKey, g)
		}
	}
	return h, err
}

// registration answers with the configuration of a registration.
func (r *request) registration() (answer, error) {
	g, err := r.loadRegistration()
	if err == nil {
		err = r.authorizeRegistration(g)
	}
	if err != nil {
		return answer{}, err
	}
	return answer{status: http.StatusOK, body: registrationResponse{HostLabels: g.Spec.HostLabels, HostAnnotations: g.Spec.HostAnnotations, Config: g.Spec.Config}}, nil
}

// create makes a host. The body comes before the tokens: it has the key of the host's.
func (r *request) create() (answer, error) {
	g, err := r.loadRegistration()
	if err != nil {
		return answer{}, err
	}
	var body createRequest
	if err := r.decode(&body, "Could not decode request body"); err != nil {
		return answer{}, err
	}
	if err := r.authorizeHost(body.Name, body.PubKey, g); err != nil {
		return answer{}, err
	}
	if err := r.authorizeRegistration(g); err != nil {
		return answer{}, err
	}
	if problems := validation.IsDNS1123Subdomain(body.Name); len(problems) > 0 {
		return answer{}, refuse(http.StatusBadRequest, nil, "Could not create Elemental Host '%s': "+strings.Join(problems, ", "), body.Name)
	}
	h := &elementalv1.ElementalHost{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: r.namespace, Name: body.Name,
			Labels: merge(g.Spec.HostLabels, body.Labels), Annotations: merge(g.Spec.HostAnnotations, body.Annotations),
			OwnerReferences: []metav1.OwnerReference{{
				APIVersion: elementalv1.GroupVersion.String(), Kind: "ElementalRegistration", Name: g.Name, UID: g.UID, Controller: ptr.To(true),
			}},
			// The controller would add it in a write of its own.
			Finalizers: []string{elementalv1.Finalizer},
		},
		Spec: elementalv1.ElementalHostSpec{PubKey: body.PubKey},
	}
	err = r.Client.Create(r.context(), h)
	switch {
	case apierrors.IsAlreadyExists(err):
		// Upstream has the two names in this order.
		return answer{}, refuse(http.StatusConflict, nil, "Host '%s' in namespace '%s' already exists", r.namespace, body.Name)
	case err != nil:
		return answer{}, failure(err, "Could not create Elemental Host '%s'", body.Name)
	}
	r.hosts.Wrote(h)
	return answer{status: http.StatusCreated, location: Path(r.namespace, r.name) + "/hosts/" + h.Name}, nil
}

// merge returns the entries of both maps; those of over win.
func merge(base, over map[string]string) map[string]string {
	if len(base)+len(over) == 0 {
		return nil
	}
	out := map[string]string{}
	maps.Copy(out, base)
	maps.Copy(out, over)
	return out
}

// maxAttempts bounds the attempts of a change that others change the host during.
const maxAttempts = 8

// patch changes a host by what its agent reports.
func (r *request) patch() (answer, error) {
	h, err := r.authorized()
	if err != nil {
		return answer{}, err
	}
	var body patchRequest
	if err := r.decode(&body, "Could not decode request"); err != nil {
		return answer{}, err
	}
	uid := h.UID
	bootstrapped := body.Bootstrapped != nil && *body.Bootstrapped
	if bootstrapped && h.Spec.BootstrapSecret == nil { // the cache may be late: see bootstrap
		if h, err = r.loadHostNow(); err != nil {
			return answer{}, err
		}
		if h.UID != uid {
			return answer{}, r.notFound()
		}
	}
	for range maxAttempts {
		if bootstrapped && h.Spec.BootstrapSecret == nil {
			return answer{}, refuse(http.StatusBadRequest, nil, "Can't mark the Host as bootstrapped if no bootstrap secret has been associated yet.")
		}
		after := h.DeepCopy()
		if err := r.apply(&body, after); err != nil {
			return answer{}, err
		}
		// The status comes first: with the label reset the controller lets the host go, and the
		// agent must learn that its report has arrived.
		if err = object.PatchStatusFirst(r.context(), r.Client, h, after); err == nil {
			r.hosts.Wrote(after)
			return answer{status: http.StatusOK, body: responseOf(after)}, nil
		}
		if !apierrors.IsConflict(err) {
			break
		}
		if h, err = r.loadHostNow(); err != nil {
			return answer{}, err
		}
		if h.UID != uid { // the token was another host's
			return answer{}, r.notFound()
		}
	}
	if apierrors.IsNotFound(err) {
		return answer{}, r.notFound()
	}
	return answer{}, failure(err, "Could not patch ElementalHost '%s'", r.host)
}

// notFound refuses to change a host that is gone.
func (r *request) notFound() error {
	return refuse(http.StatusNotFound, nil, "Updated ElementalHost '%s' not found", r.host)
}

// maxConditions bounds the conditions of a host: agents have five.
const maxConditions = 32

// apply changes a host by what its agent reports. Labels and annotations are added and never
// removed.
func (r *request) apply(p *patchRequest, h *elementalv1.ElementalHost) error {
	h.Annotations, h.Labels = merge(h.Annotations, p.Annotations), merge(h.Labels, p.Labels)
	for _, l := range []struct {
		label string
		value *bool
	}{{elementalv1.InstalledLabel, p.Installed}, {elementalv1.BootstrappedLabel, p.Bootstrapped}, {elementalv1.ResetLabel, p.Reset}} {
		if l.value != nil && (*l.value || r.Compat.Labels) {
			metav1.SetMetaDataLabel(&h.ObjectMeta, l.label, elementalv1.True)
		}
	}
	if p.InPlaceUpdate != nil {
		metav1.SetMetaDataLabel(&h.ObjectMeta, elementalv1.InPlaceUpdateLabel, *p.InPlaceUpdate)
	}
	if p.Condition != nil {
		if p.Condition.Type == "" || p.Condition.Status == "" {
			return refuse(http.StatusBadRequest, nil, "Could not patch ElementalHost '%s': condition.type and condition.status are missing", r.host)
		}
		if condition.Set(h, *p.Condition, r.Wall.Now()); len(h.Status.Conditions) > maxConditions {
			return refuse(http.StatusBadRequest, nil, "Could not patch ElementalHost '%s': it has too many conditions", r.host)
		}
	}
	if p.Phase != nil {
		h.Status.Phase = *p.Phase
	}
	return nil
}

// remove deletes a host. Its finalizer keeps it until its agent reports the reset.
func (r *request) remove() (answer, error) {
	h, err := r.authorized()
	if err != nil {
		return answer{}, err
	}
	if h.DeletionTimestamp.IsZero() {
		err := r.Client.Delete(r.context(), h, client.Preconditions{UID: &h.UID})
		if apierrors.IsNotFound(err) || apierrors.IsConflict(err) { // another host has the name by now
			return answer{}, refuse(http.StatusNotFound, nil, "ElementalHost '%s' not found", r.host)
		}
		if err != nil {
			return answer{}, failure(err, "Could not delete ElementalHost '%s'", r.host)
		}
		r.hosts.Forget(h)
	}
	return answer{status: http.StatusAccepted}, nil
}

// The keys of a bootstrap Secret (Cluster API, contract of bootstrap providers).
const (
	formatKey     = "format"
	valueKey      = "value"
	defaultFormat = "cloud-config"
)

// bootstrap answers with the host's bootstrap data.
func (r *request) bootstrap() (answer, error) {
	h, err := r.authorized()
	if err != nil {
		return answer{}, err
	}
	ref := h.Spec.BootstrapSecret
	if ref == nil { // the cache may be late, and the agent has learnt of the secret by a PATCH
		if h, err = r.loadHostNow(); err != nil {
			return answer{}, err
		}
		if ref = h.Spec.BootstrapSecret; ref == nil {
			return answer{}, refuse(http.StatusNotFound, nil, "There is no associated boostrap secret yet")
		}
	}
	var s corev1.Secret
	// A Secret of another namespace is none of the host's.
	err = r.Reader.Get(r.context(), client.ObjectKey{Namespace: r.namespace, Name: ref.Name}, &s)
	switch {
	case apierrors.IsNotFound(err):
		return answer{}, refuse(http.StatusInternalServerError, nil, "Could not find expected Bootstrap secret")
	case err != nil:
		return answer{}, refuse(http.StatusInternalServerError, err, "Could not fetch Bootstrap secret")
	}
	value, ok := s.Data[valueKey]
	if !ok {
		return answer{}, refuse(http.StatusInternalServerError, nil, "Could not prepare bootstrap response: CAPI bootstrap secret does not contain any config")
	}
	out := bootstrapResponse{Format: defaultFormat, Config: string(value)}
	if format, ok := s.Data[formatKey]; ok {
		out.Format = string(format)
	}
	return answer{status: http.StatusOK, body: out}, nil
}
