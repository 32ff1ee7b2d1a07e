package redfish

import (
	"net"
	"net/http"
	"net/netip"
	"strconv"
)

// Redirect returns the handler of plain HTTP: it redirects each client to the HTTPS
// port of its BMC. httpsPort returns that port for the address at which the request
// arrived; for a BMC that has none the response is 404. The handler reads no
// credentials: everybody on the network can read those that a client sends here
// (DSP0266, "Session login").
func Redirect(httpsPort func(local netip.AddrPort) (port uint16, ok bool)) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		port, ok := httpsPort(localAddress(r))
		host, _, err := net.SplitHostPort(r.Host)
		if err != nil { // r.Host has no port
			host = r.Host
		}
		if !ok || host == "" {
			w.WriteHeader(http.StatusNotFound)
			return
		}
		if port != 443 {
			host = net.JoinHostPort(host, strconv.Itoa(int(port)))
		}
		status := http.StatusPermanentRedirect // the client keeps the method
		if r.Method == http.MethodGet || r.Method == http.MethodHead {
			status = http.StatusMovedPermanently // some clients do not know 308
		}
		w.Header().Set("Location", "https://"+host+r.URL.RequestURI())
		w.WriteHeader(status)
	})
}
