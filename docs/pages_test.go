package docs

import (
	"slices"
	"strings"
	"testing"
)

// TestEveryPageIsEmbedded compares the pages that programs show with the files.
func TestEveryPageIsEmbedded(t *testing.T) {
	all, err := Pages()
	if err != nil {
		t.Fatal(err)
	}
	var names, want []string
	for _, p := range all {
		names = append(names, p.Name)
		if p.Title == "" || strings.HasPrefix(p.Title, "#") || !strings.HasPrefix(p.Text, "# "+p.Title+"\n") {
			t.Errorf("%s: title %q: a page begins with # and its title", p.Name, p.Title)
		}
		if strings.Contains(p.Text, "<!-- begin") || strings.Contains(p.Text, "<!-- end") {
			t.Errorf("%s: the text has the marks of generated parts", p.Name)
		}
	}
	for _, file := range pages(t) {
		want = append(want, Name(file))
	}
	slices.Sort(names)
	slices.Sort(want)
	if !slices.Equal(names, want) {
		t.Errorf("Pages() = %q, want %q", names, want)
	}
}

func TestNameOfALinkIsThatOfItsPage(t *testing.T) {
	for link, want := range map[string]string{
		"quirks": "quirks", "quirks.md": "quirks", "docs/quirks.md": "quirks", "docs/quirks": "quirks", "../quirks.md": "quirks",
		"how-to/vendor.md#keys": "how-to/vendor", "how-to/README.md": "how-to", "how-to/": "how-to", "docs/how-to": "how-to",
	} {
		if got := Name(link); got != want {
			t.Errorf("Name(%q) = %q, want %q", link, got, want)
		}
	}
}
