// Package etcdquiet stops etcd's client library from logging to standard error, for
// the whole process. controller/kube imports it for that effect; no other package may.
//
// Upstream's API server creates the logger of its etcd clients in the initialisation
// of its packages, from an exported configuration, and offers no way to change it
// later. Those clients warn of every request that a shutdown interrupts. Real failures
// come back as errors of requests, and whoever made the request logs them.
//
// The package has to be initialised before the API server's. It imports the logger's
// configuration and nothing else, because Go initialises, among the packages whose
// imports are all initialised, the one with the first import path next.
package etcdquiet

import (
	"os"

	"go.etcd.io/etcd/client/pkg/v3/logutil"
)

func init() {
	logutil.DefaultZapLoggerConfig.OutputPaths = []string{os.DevNull}
}
