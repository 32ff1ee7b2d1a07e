package hostos

import (
	"errors"
	"net/http"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/metalab-dev/metalab/controller/reconcile/events"
	"github.com/metalab-dev/metalab/controller/reconcile/queue"
)

// Config configures the reconcilers.
type Config struct {
	queue.Work
	Client client.Client
	// HTTP fetches archives and the index. Nil means one with the Proxy of the management
	// cluster, else with that of the environment.
	HTTP *http.Client
	// Index is the file or URL of the vendor's index, "" for none. Modules without url are
	// beside it.
	Index string
	// Namespaces are those of the configurations; empty means all.
	Namespaces []string

	events *events.Recorder
}

// check returns an error when a required field is nil, and fills in the others.
func (c *Config) check() error {
	if c.Client == nil || c.Clock == nil {
		return errors.New("hostos: Config.Client or Config.Clock is nil")
	}
	if c.HTTP == nil {
		c.HTTP = &http.Client{Transport: &http.Transport{Proxy: c.proxy, TLSHandshakeTimeout: fetchTimeout}}
	}
	c.events = events.New(c.Client, c.Clock)
	return nil
}

const (
	// fetchTimeout limits the download of an archive, in real time.
	fetchTimeout = time.Minute
	// retryAfter is when a module that cannot be loaded is tried again: a server may be back,
	// or a proxy allow its URL.
	retryAfter = time.Minute
	// maxText limits the text of an error in a status.
	maxText = 2048
)

// short returns a text of at most maxText bytes.
func short(text string) string {
	if len(text) <= maxText {
		return text
	}
	return text[:maxText] + "…"
}
