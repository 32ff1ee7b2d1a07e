package config

import (
	"encoding/json"
	"os"
	"regexp"
	"strings"
	"testing"

	"sigs.k8s.io/yaml"
)

// The dashboard is one that Grafana imports: its panels do not overlap and each has queries.
func TestDashboardIsComplete(t *testing.T) {
	b, err := os.ReadFile("monitoring/dashboard.json")
	if err != nil {
		t.Fatal(err)
	}
	var d struct {
		Title, UID    string
		SchemaVersion int
		Panels        []struct {
			ID          int
			Type, Title string
			GridPos     struct{ H, W, X, Y int }
			Targets     []struct{ Expr, LegendFormat string }
		}
	}
	if err := json.Unmarshal(b, &d); err != nil {
		t.Fatal(err)
	}
	if d.Title == "" || d.UID == "" || d.SchemaVersion == 0 || len(d.Panels) < 15 {
		t.Errorf("title %q, uid %q, schema %d, %d panels", d.Title, d.UID, d.SchemaVersion, len(d.Panels))
	}
	ids, cells := map[int]bool{}, map[[2]int]string{}
	for _, p := range d.Panels {
		if ids[p.ID] || p.Title == "" {
			t.Errorf("panel %d %q: its ID is taken or its title is empty", p.ID, p.Title)
		}
		ids[p.ID] = true
		for x := p.GridPos.X; x < p.GridPos.X+p.GridPos.W; x++ {
			for y := p.GridPos.Y; y < p.GridPos.Y+p.GridPos.H; y++ {
				if other := cells[[2]int{x, y}]; other != "" || x >= 24 {
					t.Fatalf("panel %q overlaps %q or the edge", p.Title, other)
				}
				cells[[2]int{x, y}] = p.Title
			}
		}
		if p.Type != "row" && len(p.Targets) == 0 {
			t.Errorf("panel %q has no query", p.Title)
		}
		for _, q := range p.Targets {
			if strings.Count(q.Expr, "(") != strings.Count(q.Expr, ")") || !strings.Contains(q.Expr, `{job=~"$job"}`) || q.LegendFormat == "" {
				t.Errorf("panel %q: query %q", p.Title, q.Expr)
			}
		}
	}
}

func TestAlertsAreComplete(t *testing.T) {
	b, err := os.ReadFile("monitoring/alerts.yaml")
	if err != nil {
		t.Fatal(err)
	}
	type rule struct {
		Alert, Expr, For    string
		Labels, Annotations map[string]string
	}
	var f struct {
		Groups []struct {
			Name  string
			Rules []rule
		}
	}
	if err := yaml.UnmarshalStrict(b, &f); err != nil {
		t.Fatal(err)
	}
	seen, duration := map[string]bool{}, regexp.MustCompile(`^\d+[smh]$`)
	for _, g := range f.Groups {
		for _, r := range g.Rules {
			if seen[r.Alert] || !strings.HasPrefix(r.Alert, "Metalab") || r.Expr == "" || !duration.MatchString(r.For) || r.Labels["severity"] == "" ||
				r.Annotations["summary"] == "" || r.Annotations["description"] == "" || strings.Count(r.Expr, "(") != strings.Count(r.Expr, ")") {
				t.Errorf("%s: %+v", g.Name, r)
			}
			seen[r.Alert] = true
		}
	}
	if len(seen) < 5 {
		t.Errorf("%d alerts", len(seen))
	}
}
