// Package quiet owns one switch of the process: etcd's client library does not
// log to standard error. It must be imported for its effect, by nothing but
// controller/kube.
//
// Upstream's API server makes the logger of its etcd clients while its packages
// are initialised, from a configuration that is exported, and offers no way to
// change it later; the clients then warn of every request that a stop cuts
// short. What is wrong in earnest comes back as the error of a request, and is
// logged by who made it. This package imports only the configuration, so the
// language initialises it before the API server: of all packages whose imports
// are done, the first by import path comes next.
//
// It refuses to know all else.
package quiet

import (
	"os"

	"go.etcd.io/etcd/client/pkg/v3/logutil"
)

func init() {
	logutil.DefaultZapLoggerConfig.OutputPaths = []string{os.DevNull}
}
