package item

// The params beside those of host OS items that runners take, and the keys of Secrets that
// agents read. None is in a public text: they may change with this file.
const (
	// ParamUnpack "false" makes a downloader write an archive as a file to ParamPath.
	ParamUnpack = "unpack"
	// ParamMode has the permissions of a file that a downloader writes, in octal.
	ParamMode = "mode"
	// ParamScript is the text of a script (bash); without it the script is fetched from
	// ParamURL, or is at ParamPath.
	ParamScript = "script"
	// ParamArgs are the arguments of a script, separated by spaces (bash).
	ParamArgs = "args"
	// ParamTimeout is a Go duration after which an item is ended and has failed (all
	// runners).
	ParamTimeout = "timeout"
)

// Keys of the Secret that LCMMachine.spec.proxySecretName names: URLs, a list of hosts, and the
// certificates, in PEM, of a proxy that reads TLS.
const (
	ProxyHTTPKey  = "HTTP_PROXY"
	ProxyHTTPSKey = "HTTPS_PROXY"
	ProxyNoneKey  = "NO_PROXY"
	ProxyCAKey    = "CA_CERTIFICATE"
)

// ProxySecret returns the name of the Secret with the proxies of a Cluster.
func ProxySecret(cluster string) string { return cluster + "-proxy" }

// TokenKey is the key of the Secret that LCMMachine.status.tokenSecret names: the agent's
// next token.
const TokenKey = "token"
