package manager

import (
	"context"
	"errors"
	"net/http"
	"strings"

	"github.com/go-logr/logr"
	authenticationv1 "k8s.io/api/authentication/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	authenticationclient "k8s.io/client-go/kubernetes/typed/authentication/v1"
	authorizationclient "k8s.io/client-go/kubernetes/typed/authorization/v1"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/metrics/server"
)

// gate lets clients pass whose bearer token the API knows and whose account may get the
// path of the request. It is controller-runtime's filters.WithAuthenticationAndAuthorization
// without k8s.io/apiserver, which would make lab-controller 94 MB instead of 51 MB, and
// without a cache: metrics are read a few times a minute.
type gate struct {
	tokens  authenticationclient.TokenReviewInterface
	access  authorizationclient.SubjectAccessReviewInterface
	reviews chan struct{} // holds a token for each review that the API works on
}

// maxReviews bounds the concurrent reviews at the API, which clients cause before they are
// authenticated.
const maxReviews = 8

// newGate is a server.Options.FilterProvider.
func newGate(api *rest.Config, c *http.Client) (server.Filter, error) {
	tokens, err := authenticationclient.NewForConfigAndClient(api, c)
	if err != nil {
		return nil, err
	}
	access, err := authorizationclient.NewForConfigAndClient(api, c)
	if err != nil {
		return nil, err
	}
	g := &gate{tokens: tokens.TokenReviews(), access: access.SubjectAccessReviews(), reviews: make(chan struct{}, maxReviews)}
	return func(log logr.Logger, next http.Handler) (http.Handler, error) {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if code, err := g.check(r); err != nil {
				log.V(1).Info("request refused", "path", r.URL.Path, "from", r.RemoteAddr, "reason", err.Error())
				if code == http.StatusUnauthorized {
					w.Header().Set("WWW-Authenticate", "Bearer")
				}
				http.Error(w, http.StatusText(code), code)
				return
			}
			next.ServeHTTP(w, r)
		}), nil
	}, nil
}

// check returns the status of the refusal of a request, and its reason; no error if the
// client may pass.
func (g *gate) check(r *http.Request) (code int, err error) {
	scheme, token, _ := strings.Cut(r.Header.Get("Authorization"), " ")
	if token = strings.TrimSpace(token); !strings.EqualFold(scheme, "Bearer") || token == "" {
		return http.StatusUnauthorized, errors.New("no bearer token")
	}
	select {
	case g.reviews <- struct{}{}:
		defer func() { <-g.reviews }()
	default:
		return http.StatusServiceUnavailable, errors.New("too many requests at a time")
	}
	user, err := g.authenticate(r.Context(), token)
	switch {
	case err != nil:
		return http.StatusInternalServerError, err
	case user == nil:
		return http.StatusUnauthorized, errors.New("the API does not know the token")
	}
	allowed, err := g.authorize(r.Context(), user, r)
	switch {
	case err != nil:
		return http.StatusInternalServerError, err
	case !allowed:
		return http.StatusForbidden, errors.New(user.Username + " may not")
	}
	return 0, nil
}

// authenticate returns the user with a token, nil if the API does not know it.
func (g *gate) authenticate(ctx context.Context, token string) (*authenticationv1.UserInfo, error) {
	review := &authenticationv1.TokenReview{Spec: authenticationv1.TokenReviewSpec{Token: token}}
	review, err := g.tokens.Create(ctx, review, metav1.CreateOptions{})
	if err != nil || !review.Status.Authenticated {
		return nil, err
	}
	return &review.Status.User, nil
}

// authorize reports whether a user may make a request.
func (g *gate) authorize(ctx context.Context, u *authenticationv1.UserInfo, r *http.Request) (bool, error) {
	extra := map[string]authorizationv1.ExtraValue{}
	for name, values := range u.Extra {
		extra[name] = authorizationv1.ExtraValue(values)
	}
	review := &authorizationv1.SubjectAccessReview{Spec: authorizationv1.SubjectAccessReviewSpec{
		User: u.Username, UID: u.UID, Groups: u.Groups, Extra: extra,
		NonResourceAttributes: &authorizationv1.NonResourceAttributes{Path: r.URL.Path, Verb: strings.ToLower(r.Method)},
	}}
	review, err := g.access.Create(ctx, review, metav1.CreateOptions{})
	if err != nil {
		return false, err
	}
	return review.Status.Allowed && !review.Status.Denied, nil
}
