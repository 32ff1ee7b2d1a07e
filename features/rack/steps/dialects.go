package steps

import (
	"encoding/json"
	"fmt"
	"strings"

	"github.com/cucumber/godog"
)

// registerDialects binds what clients do to servers of vendors, in the vendors'
// own words. In what is sent IMAGE is the address of an image, SECURE-IMAGE that
// of one with HTTPS.
func (s *scenario) registerDialects(sc *godog.ScenarioContext) {
	sc.Step(`^a rack of (\d+) servers? of the profile "([^"]*)"$`, func(n int, profile string) error { return s.start(profile, n) })
	methods := map[string]string{"reads": "GET", "posts to": "POST", "changes": "PATCH", "deletes": "DELETE"}
	sc.Step(`^a client (reads|posts to|changes|deletes) "([^"]*)"( with its ETag)?(?:, sending (.*))?$`, func(does, path, tagged, body string) error {
		var header []string
		if tagged != "" {
			if err := s.send("GET", path, nil); err != nil {
				return err
			}
			header = []string{"If-Match", s.response.header.Get("Etag")}
		}
		var sent any
		if body != "" {
			content := []byte(bootable)
			body = strings.ReplaceAll(body, "SECURE-IMAGE", s.images.secureURL("live.iso", content))
			body = strings.ReplaceAll(body, "IMAGE", s.images.url("live.iso", content))
			if err := json.Unmarshal([]byte(body), &sent); err != nil {
				return fmt.Errorf("%s: %w", body, err)
			}
		}
		err := s.send(methods[does], path, sent, header...)
		s.lab.Settle()
		return err
	})
	sc.Step(`^the answer holds "([^"]*)"$`, func(text string) error {
		if !strings.Contains(s.response.text, strings.ReplaceAll(text, "'", `"`)) {
			return fmt.Errorf("it is %s", s.response)
		}
		return nil
	})
}
