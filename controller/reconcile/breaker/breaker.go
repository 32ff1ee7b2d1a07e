// Package breaker keeps an API that does not answer from holding the controllers. Users of a namespace give
// controllers the kubeconfig of an API of theirs; a server there that takes requests and never answers would
// hold a worker for each, and all namespaces would wait. Breakers limit each request, and then ask the APIs of
// that namespace that have not answered one at a time, with growing pauses.
//
// The package knows HTTP and names. Its time is real: so are the APIs.
package breaker

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"sync"
	"time"

	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

const (
	// Limit is that of a request, in real time: of all of its answer, or of the first byte of a watch's.
	Limit = 15 * time.Second
	// Pauses of an API after an answer that was too slow, in real time; each is twice as long as the last, also
	// when answers in time came between: they begin anew when there were none but these for a while.
	firstPause, lastPause, forgiven = 15 * time.Second, 5 * time.Minute, 10 * time.Minute
	// namespacePause is that of all APIs of the namespace that have not answered: after the first slow answer
	// they hold one worker for a third of the time, however many there are.
	namespacePause = 2 * Limit
)

// Breakers are those of the APIs of clusters. The zero value is ready.
type Breakers struct {
	mu       sync.Mutex
	clusters map[client.ObjectKey]*cluster
	// namespaces are those with an answer that was too slow.
	namespaces map[string]*namespace
}

// cluster is the API of one.
type cluster struct {
	answered bool // the last answer came in time
	until    time.Time
	pause    time.Duration
}

type namespace struct {
	until time.Time
	trial bool // an API that has not answered is asked now
}

// Wrap has the requests of a configuration pass the breaker of a cluster's API. Every configuration of the
// cluster has the same.
func (b *Breakers) Wrap(c *rest.Config, cluster client.ObjectKey) {
	c.Wrap(func(next http.RoundTripper) http.RoundTripper { return &transport{b, cluster, next} })
}

// PausedError says that an API is not asked now. A later request may be.
type PausedError struct{ text string }

// Error implements error.
func (e *PausedError) Error() string { return e.text }

// admit returns an error while no request may be sent to an API; trial means that no other API of the
// namespace that has not answered is asked before done.
func (b *Breakers) admit(key client.ObjectKey) (trial bool, err error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	n, c := b.namespaces[key.Namespace], b.of(key)
	if n == nil || c.answered {
		return false, nil
	}
	now, until := time.Now(), c.until
	if n.until.After(until) {
		until = n.until
	}
	switch {
	case n.trial:
		return false, &PausedError{fmt.Sprintf("the API of cluster %s is not asked while another one of namespace %s is, which has not answered within %s", key, key.Namespace, Limit)}
	case now.Before(until):
		return false, &PausedError{fmt.Sprintf("the API of cluster %s is not asked for %s: an API of namespace %s has not answered within %s", key, until.Sub(now).Round(time.Second), key.Namespace, Limit)}
	}
	n.trial = true
	return true, nil
}

func (b *Breakers) of(key client.ObjectKey) *cluster {
	if b.clusters == nil {
		b.clusters, b.namespaces = map[client.ObjectKey]*cluster{}, map[string]*namespace{}
	}
	c := b.clusters[key]
	if c == nil {
		c = new(cluster)
		b.clusters[key] = c
	}
	return c
}

// An outcome is that of a request.
type outcome int

const (
	answered outcome = iota // in time; a refused connection holds nobody, either
	slow
	abandoned // by the caller, which says nothing about the API
)

// done ends a request that was admitted.
func (b *Breakers) done(key client.ObjectKey, trial bool, o outcome) {
	b.mu.Lock()
	defer b.mu.Unlock()
	c, n := b.of(key), b.namespaces[key.Namespace]
	if trial {
		n.trial = false
	}
	switch o {
	case abandoned:
	case answered:
		c.answered = true
	case slow:
		if n == nil {
			n = new(namespace)
			b.namespaces[key.Namespace] = n
		}
		now := time.Now()
		n.until = now.Add(namespacePause)
		if c.answered || !now.Before(c.until) { // else it was sent before the pause
			if now.Sub(c.until) > forgiven {
				c.pause = 0
			}
			c.answered, c.pause = false, min(max(2*c.pause, firstPause), lastPause)
			c.until = now.Add(c.pause)
		}
	}
}

// transport passes the requests of one configuration.
type transport struct {
	breakers *Breakers
	cluster  client.ObjectKey
	next     http.RoundTripper
}

// RoundTrip implements http.RoundTripper.
func (t *transport) RoundTrip(req *http.Request) (*http.Response, error) {
	trial, err := t.breakers.admit(t.cluster)
	if err != nil {
		return nil, err
	}
	late := fmt.Errorf("the API of cluster %s has not answered within %s", t.cluster, Limit)
	ctx, cancel := context.WithCancelCause(req.Context())
	timer := time.AfterFunc(Limit, func() { cancel(late) })
	end := sync.OnceFunc(func() {
		timer.Stop()
		o, cause := answered, context.Cause(ctx)
		if errors.Is(cause, late) {
			o = slow
		} else if cause != nil {
			o = abandoned
		}
		t.breakers.done(t.cluster, trial, o)
	})
	resp, err := t.next.RoundTrip(req.WithContext(ctx))
	switch {
	case err != nil:
		end()
		if errors.Is(context.Cause(ctx), late) {
			err = late
		}
		cancel(err)
		return nil, err
	case resp.StatusCode == http.StatusSwitchingProtocols: // its body is a connection
		end()
		context.AfterFunc(req.Context(), func() { cancel(nil) })
		return resp, nil
	case req.URL.Query().Get("watch") == "true":
		end()
	}
	resp.Body = &body{resp.Body, func() { end(); cancel(nil) }}
	return resp, nil
}

// body is that of an answer.
type body struct {
	io.ReadCloser
	end func()
}

// Close implements io.Closer.
func (b *body) Close() error {
	err := b.ReadCloser.Close()
	b.end()
	return err
}
