package rack

import (
	"context"
	"errors"
	"net"
	"net/http"
	"strings"

	"github.com/metalab-dev/metalab/emulator/bmc"
	"github.com/metalab-dev/metalab/emulator/redfish"
)

// runJob sends the request of a scheduled job as if its creator sent it now. The
// caller holds h.mu.
func (h *Host) runJob(p bmc.Job) {
	if h.ended || h.rack.service == nil {
		return
	}
	leave := h.rack.clock.Enter()
	h.rack.tasks.Go(func() {
		defer leave()
		end := bmc.EndJob{ID: p.ID, Status: h.jobStatus(p)}
		err := h.rack.untilStored(func() error {
			_, _, err := h.applyBMC(context.Background(), end, nil)
			return err
		})
		if err != nil && !errors.Is(err, bmc.ErrNotFound) { // not found: the job was deleted
			h.rack.log.Error("scheduled job not ended", "host", h.Name(), "job", p.ID, "err", err)
		}
	})
}

// jobStatus sends a job's request and returns the HTTP status of the response.
func (h *Host) jobStatus(p bmc.Job) int {
	ctx := context.WithValue(redfish.ActAs(context.Background(), p.Account), http.LocalAddrContextKey,
		net.TCPAddrFromAddrPort(h.Address()))
	r, err := http.NewRequestWithContext(ctx, p.Method, "https://"+h.Address().String()+p.Target, strings.NewReader(p.Body))
	if err != nil {
		return http.StatusBadRequest
	}
	r.RemoteAddr = net.JoinHostPort(h.Address().Addr().String(), "0")
	if p.Body != "" {
		r.Header.Set("Content-Type", "application/json")
	}
	w := &statusOnly{header: http.Header{}}
	h.rack.service.ServeHTTP(w, r)
	return w.status
}

// statusOnly is an http.ResponseWriter that keeps only the status.
type statusOnly struct {
	header http.Header
	status int
}

// Header implements http.ResponseWriter.
func (w *statusOnly) Header() http.Header { return w.header }

// WriteHeader implements http.ResponseWriter.
func (w *statusOnly) WriteHeader(status int) {
	if w.status == 0 {
		w.status = status
	}
}

// Write implements http.ResponseWriter.
func (w *statusOnly) Write(b []byte) (int, error) {
	w.WriteHeader(http.StatusOK)
	return len(b), nil
}
