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
func (l *Lab) servesCharts() bool {
	return slices.Contains(l.cfg.Settings.Families(), config.HOC)
}

// withCharts returns a handler of the repository of charts, and of others for all other
// paths. It does not clean paths, as http.ServeMux does: one with .. is not found.
func (l *Lab) withCharts(others http.Handler) (http.Handler, error) {
	if !l.servesCharts() {
		return others, nil
	}
	dir := filepath.Join(l.cfg.Dir, ChartsDir)
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, fmt.Errorf("charts: %w", err)
	}
	s, err := charts.New(charts.Config{Dir: dir, Log: l.cfg.Log, Enter: l.clock.Enter})
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
func (l *Lab) ChartsURL() string {
	if !l.servesCharts() {
		return ""
	}
	return "http://" + l.ports.Images + charts.PathPrefix
}
