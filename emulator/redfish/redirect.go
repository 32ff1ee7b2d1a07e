package redfish

import (
	"net"
	"net/http"
	"net/netip"
	"strconv"
)

// Redirect answers plain HTTP: it sends each client to where its BMC speaks
// HTTPS, which is the port that at tells for the address that was reached; a
// BMC that has none answers 404. Nothing is looked at but the address: whatever
// a client shows here it shows to everybody (DSP0266, "Session login").
func Redirect(at func(local netip.AddrPort) (port uint16, ok bool)) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		port, ok := at(local(r))
		host, _, err := net.SplitHostPort(r.Host)
		if err != nil { // without a port
			host = r.Host
		}
		if !ok || host == "" {
			w.WriteHeader(http.StatusNotFound)
			return
		}
		if port != 443 {
			host = net.JoinHostPort(host, strconv.Itoa(int(port)))
		}
		status := http.StatusPermanentRedirect // the method stays
		if r.Method == http.MethodGet || r.Method == http.MethodHead {
			status = http.StatusMovedPermanently // which every client knows
		}
		w.Header().Set("Location", "https://"+host+r.URL.RequestURI())
		w.WriteHeader(status)
	})
}
