package lab

import (
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/metalab-dev/metalab/controller/config"
	"github.com/metalab-dev/metalab/scenarios/charts"
)

// servesCharts reports whether the lab has controllers that install charts.
func (w *World) servesCharts() bool {
	return slices.Contains(w.cfg.Settings.Families(), config.HOC)
}

// withCharts returns a handler of the repository of charts, and of others for all other
// paths. It does not clean paths, as http.ServeMux does: one with .. is not found.
func (w *World) withCharts(others http.Handler) (http.Handler, error) {
	if !w.servesCharts() {
		return others, nil
	}
	dir := filepath.Join(w.cfg.Dir, ChartsDir)
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, fmt.Errorf("world: charts: %w", err)
	}
	s, err := charts.New(charts.Config{Dir: dir, Log: w.cfg.Log, Enter: w.clock.Enter})
	if err != nil {
		return nil, err
	}
	return http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
		if strings.HasPrefix(r.URL.Path, charts.PathPrefix) {
			s.ServeHTTP(rw, r)
			return
		}
		others.ServeHTTP(rw, r)
	}), nil
}

// ChartsURL returns the URL of the repository of charts, with a trailing slash; "" in a lab
// without the family hoc.
func (w *World) ChartsURL() string {
	if !w.servesCharts() {
		return ""
	}
	return "http://" + w.ports.Images + charts.PathPrefix
}
