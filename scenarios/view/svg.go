package view

import (
	"fmt"
	"html/template"
	"net/http"
	"strings"
)

// The measures of the elevations for reports, in pixels.
const (
	rowsPerColumn = 42 // as many as a rack has units
	tileWidth     = 120
	tileHeight    = 14
	tileGap       = 2
	rackGap       = 24
	headHeight    = 22
	lineWidth     = 1400 // width of a line of racks
)

// printed are the tones on paper.
var printed = map[Tone]string{
	Good: "#23875f", Busy: "#b07a05", Warn: "#c4590c", Bad: "#c42f3f", Info: "#2d6fc4", Special: "#7a52c4", Quiet: "#9aa7b8",
}

// elevation is a rack in an SVG image.
type elevation struct {
	X, Y, W, H int
	Name       string
	Tiles      []placedTile
}

// placedTile is a tile in an SVG image.
type placedTile struct {
	X, Y        int
	Name, Label string
	Fill        string
}

// key is an entry of the legend.
type key struct {
	X     int
	Fill  string
	Label string
}

var svgTemplate = template.Must(template.New("svg").Parse(`<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {{.W}} {{.H}}" width="{{.W}}" height="{{.H}}" font-family="system-ui, sans-serif" role="img">
<title>{{.Title}}</title>
<rect width="{{.W}}" height="{{.H}}" fill="#ffffff"/>
<text x="12" y="24" font-size="16" font-weight="600" fill="#16202e">{{.Title}}</text>
{{range .Keys}}<rect x="{{.X}}" y="38" width="10" height="10" rx="3" fill="{{.Fill}}"/><text x="{{.X}}" dx="16" y="47" font-size="12" fill="#16202e">{{.Label}}</text>
{{end}}{{range .Racks}}<g><rect x="{{.X}}" y="{{.Y}}" width="{{.W}}" height="{{.H}}" rx="5" fill="#eef2f7" stroke="#d5dce6"/><text x="{{.X}}" dx="6" y="{{.Y}}" dy="15" font-size="12" font-weight="600" fill="#16202e">{{.Name}}</text>
{{range .Tiles}}<g><title>{{.Label}}</title><rect x="{{.X}}" y="{{.Y}}" width="120" height="14" rx="2" fill="{{.Fill}}"/><text x="{{.X}}" dx="5" y="{{.Y}}" dy="10.5" font-size="9.5" fill="#ffffff">{{.Name}}</text></g>
{{end}}</g>
{{end}}</svg>
`))

// svg answers with the racks as an image for reports.
func (s *Server) svg(w http.ResponseWriter, r *http.Request) {
	s.drawSVG(w, r, s.c.Rack.Definition().Name, func() []Tile {
		tiles, _ := s.rack.changes(0)
		return tiles
	})
}

// drawSVG answers with tiles as an image.
func (s *Server) drawSVG(w http.ResponseWriter, r *http.Request, lab string, tiles func() []Tile) {
	name := r.URL.Query().Get("colour")
	if name == "" {
		name = Schemes[0].Name
	}
	by, ok := scheme(name)
	if !ok {
		var names []string
		for _, x := range Schemes {
			names = append(names, x.Name)
		}
		http.Error(w, fmt.Sprintf("colour %q is not one of %s", name, strings.Join(names, ", ")), http.StatusBadRequest)
		return
	}
	s.watchObjects()
	w.Header().Set("Content-Type", "image/svg+xml")
	if err := svgTemplate.Execute(w, drawn(lab, tiles(), by)); err != nil {
		s.c.Log.Debug("page gone", "err", err)
	}
}

// drawing is an SVG image.
type drawing struct {
	W, H  int
	Title string
	Keys  []key
	Racks []elevation
}

// drawn lays out the tiles as elevations, in lines of racks.
func drawn(lab string, tiles []Tile, by Scheme) drawing {
	d := drawing{Title: fmt.Sprintf("%s: %d servers by %s", lab, len(tiles), strings.ToLower(by.Label))}
	x := 12
	for _, shade := range by.Shades {
		n := 0
		for i := range tiles {
			if by.value(&tiles[i]) == shade.Value {
				n++
			}
		}
		if n > 0 {
			k := key{X: x, Fill: printed[shade.Tone], Label: fmt.Sprintf("%s %d", shade.Label, n)}
			d.Keys = append(d.Keys, k)
			x += 40 + 7*len(k.Label)
		}
	}
	d.W = x
	left, top, lowest := 12, 64, 64
	for from := 0; from < len(tiles); {
		to := from
		for to < len(tiles) && tiles[to].Rack == tiles[from].Rack {
			to++
		}
		e := placed(tiles[from:to], by)
		if left > 12 && left+e.W > lineWidth {
			left, top = 12, lowest+rackGap
		}
		e.move(left, top)
		left += e.W + rackGap
		lowest = max(lowest, top+e.H)
		d.W = max(d.W, left)
		d.Racks = append(d.Racks, e)
		from = to
	}
	d.H = lowest + 16
	return d
}

// placed returns the elevation of a rack's tiles, at the origin.
func placed(tiles []Tile, by Scheme) elevation {
	columns := (len(tiles) + rowsPerColumn - 1) / rowsPerColumn
	e := elevation{Name: tiles[0].Rack}
	e.W = columns*(tileWidth+tileGap) + 10
	e.H = min(len(tiles), rowsPerColumn)*(tileHeight+tileGap) + headHeight + 8
	for i := range tiles {
		t := &tiles[i]
		e.Tiles = append(e.Tiles, placedTile{
			X: 6 + i/rowsPerColumn*(tileWidth+tileGap), Y: headHeight + i%rowsPerColumn*(tileHeight+tileGap), Fill: printed[by.tone(t)],
			Name: t.Name, Label: t.Name + ": " + by.value(t),
		})
	}
	return e
}

// move moves an elevation.
func (e *elevation) move(x, y int) {
	e.X, e.Y = e.X+x, e.Y+y
	for i := range e.Tiles {
		e.Tiles[i].X += x
		e.Tiles[i].Y += y
	}
}
