//go:build tools

package kube

// k8s.io/kubernetes requires its staging modules at v0.0.0, a version that does not
// exist. No package of this module imports the following ones: without these imports go
// mod tidy would drop their real versions from go.mod, and then go list -m all and go
// install module@version would fail.
import (
	_ "k8s.io/cli-runtime/pkg/printers"
	_ "k8s.io/code-generator/pkg/util"
	_ "k8s.io/cri-api/pkg/apis/runtime/v1"
	_ "k8s.io/cri-streaming/pkg/streaming"
	_ "k8s.io/sample-apiserver/pkg/apis/wardle"
	_ "k8s.io/sample-cli-plugin/pkg/cmd"
	_ "k8s.io/sample-controller/pkg/signals"
)
