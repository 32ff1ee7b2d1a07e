package docs

import (
	"embed"
	"io/fs"
	"path"
	"regexp"
	"strings"
)

//go:embed *.md how-to/*.md statements/*.md
var files embed.FS

// Page is a page of the documentation.
type Page struct {
	Name  string `json:"name"`           // path below docs/ without .md; for a README.md that of its folder
	Title string `json:"title"`          // first heading
	Text  string `json:"text,omitempty"` // Markdown
}

// marks are the comments around generated parts, which are for the generator alone.
var marks = regexp.MustCompile(`(?m)^<!-- (?:begin|end) [a-z-]+ -->\n\n?`)

// Pages returns all pages, by name.
func Pages() ([]Page, error) {
	var all []Page
	err := fs.WalkDir(files, ".", func(file string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		text, err := files.ReadFile(file)
		if err != nil {
			return err
		}
		p := Page{Name: Name(file), Text: marks.ReplaceAllString(string(text), "")}
		heading, _, _ := strings.Cut(p.Text, "\n")
		p.Title = strings.TrimPrefix(heading, "# ")
		all = append(all, p)
		return nil
	})
	return all, err
}

// Name returns the name of the page that a path or a link of another page leads to:
// how-to/vendor for docs/how-to/vendor.md, ../how-to/vendor.md#anchor and itself.
func Name(link string) string {
	file, _, _ := strings.Cut(link, "#")
	file = strings.TrimPrefix(strings.TrimPrefix(path.Join("/", file), "/"), "docs/") // Join takes ../ away
	return strings.TrimSuffix(strings.TrimSuffix(file, ".md"), "/README")
}
