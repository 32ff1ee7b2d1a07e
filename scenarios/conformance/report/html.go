package report

import (
	_ "embed"
	"fmt"
	"html/template"
	"io"
	"slices"
	"strings"

	"github.com/metalab-dev/metalab/scenarios/conformance"
)

//go:embed report.html.tmpl
var page string

// Bounds of the evidence in the page; evidence.har has all.
const (
	pageExchanges = 12       // exchanges of a check
	pageBody      = 4 << 10  // bytes of a body
	pageTotal     = 20 << 20 // bytes of all bodies
)

// view is the data of the page.
type view struct {
	*Document
	Chart  chart
	Groups []group
}

type group struct {
	Name   string
	Checks []shown
}

type shown struct {
	Check
	Exchanges []shownExchange
	More      int // exchanges that only evidence.har has
}

type shownExchange struct {
	conformance.Exchange
	Path, Sent, Received string
	Millis               float64
}

// Open reports whether the check's row is unfolded.
func (s shown) Open() bool { return s.Verdict == conformance.Fail }

// HTML writes the report as one page that needs no other file.
func HTML(w io.Writer, d *Document, evidence []conformance.Exchange) error {
	t, err := template.New("report").Parse(page)
	if err != nil {
		return fmt.Errorf("html: %w", err)
	}
	byID := map[int]conformance.Exchange{}
	for _, x := range evidence {
		byID[x.ID] = x
	}
	v := view{Document: d, Chart: newChart(d.Latency)}
	budget := pageTotal
	for _, c := range d.Checks {
		s := shown{Check: c}
		for _, id := range c.Evidence {
			x, there := byID[id]
			if !there || len(s.Exchanges) == pageExchanges || budget <= 0 {
				s.More++
				continue
			}
			e := shownExchange{Exchange: x, Path: pathOf(x.URL), Sent: shorten(x.RequestBody), Received: shorten(x.Body), Millis: millis(x.TTFB)}
			budget -= len(e.Sent) + len(e.Received)
			s.Exchanges = append(s.Exchanges, e)
		}
		at := slices.IndexFunc(v.Groups, func(g group) bool { return g.Name == c.Group() })
		if at < 0 {
			at = len(v.Groups)
			v.Groups = append(v.Groups, group{Name: c.Group()})
		}
		v.Groups[at].Checks = append(v.Groups[at].Checks, s)
	}
	if err := t.Execute(w, v); err != nil {
		return fmt.Errorf("html: %w", err)
	}
	return nil
}

func shorten(b []byte) string {
	if len(b) > pageBody {
		return strings.ToValidUTF8(string(b[:pageBody]), "") + fmt.Sprintf("\n... %d bytes more in evidence.har", len(b)-pageBody)
	}
	return strings.ToValidUTF8(string(b), "")
}

// chart is the latency as a polyline of an SVG.
type chart struct {
	Width, Height int
	Points        string
	Lines         []chartLine
}

type chartLine struct {
	Y     float64
	Label string
}

// newChart draws times to the first byte over the requests, up to the slowest.
func newChart(l Latency) chart {
	c := chart{Width: 900, Height: 160}
	if len(l.Times) < 2 || l.Max <= 0 {
		return c
	}
	y := func(ms float64) float64 { return float64(c.Height) - 10 - ms/l.Max*float64(c.Height-30) }
	var points []string
	for i, ms := range l.Times {
		points = append(points, fmt.Sprintf("%.1f,%.1f", float64(i)/float64(len(l.Times)-1)*float64(c.Width), y(ms)))
	}
	c.Points = strings.Join(points, " ")
	for _, line := range []struct {
		name string
		ms   float64
	}{{"p50", l.P50}, {"p95", l.P95}, {"max", l.Max}} {
		c.Lines = append(c.Lines, chartLine{Y: y(line.ms), Label: fmt.Sprintf("%s %.1f ms", line.name, line.ms)})
	}
	return c
}
