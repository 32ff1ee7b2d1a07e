package view

import (
	"bytes"
	"embed"
	"html/template"
	"log/slog"
	"net/http"
	"path"
	"strings"

	"github.com/metalab-dev/metalab/emulator/dialect/quirk"
)

//go:embed assets
var assets embed.FS

var pageTemplate = template.Must(template.ParseFS(assets, "assets/page.html"))

// page answers with the page. The lab's data comes as events.
func (s *Server) page(w http.ResponseWriter, _ *http.Request) {
	render(w, s.c.Rack.Definition().Name, "", s.c.Log)
}

// render answers with the page of a lab, or of a recording of one, which is a file.
func render(w http.ResponseWriter, name, recorded string, log *slog.Logger) {
	var b bytes.Buffer
	if err := pageTemplate.Execute(&b, pageData(name, recorded, nil)); err != nil {
		log.Error("the page cannot be rendered", "err", err)
		http.Error(w, "the page cannot be rendered", http.StatusInternalServerError)
		return
	}
	w.Header().Set("Content-Type", "text/html; charset=utf-8")
	if _, err := w.Write(b.Bytes()); err != nil {
		log.Debug("page gone", "err", err)
	}
}

// pageData is the data of the page's template.
func pageData(name, recorded string, inside *embedded) map[string]any {
	var quirks []string
	for i := range quirk.All {
		quirks = append(quirks, quirk.All[i].ID)
	}
	return map[string]any{"Name": name, "Recorded": recorded, "Schemes": Schemes, "Actions": AllActions, "Quirks": quirks, "Inside": inside}
}

// mediaTypes are the types of the static files.
var mediaTypes = map[string]string{".mjs": "text/javascript; charset=utf-8", ".css": "text/css; charset=utf-8", ".svg": "image/svg+xml"}

// asset answers with a static file.
func asset(w http.ResponseWriter, r *http.Request) {
	name := strings.TrimPrefix(path.Clean(r.URL.Path), "/")
	media, ok := mediaTypes[path.Ext(name)]
	b, err := assets.ReadFile(name)
	if err != nil || !ok {
		http.NotFound(w, r)
		return
	}
	w.Header().Set("Content-Type", media)
	_, _ = w.Write(b) // the page may be gone
}
