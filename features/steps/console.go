package steps

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"strings"

	"github.com/cucumber/godog"
)

// consoleText returns the text that the server's console has shown.
func (s *scenario) consoleText() string {
	text, _ := s.machine().Console.Since(0)
	return strings.ReplaceAll(string(text), "\r\n", "\n")
}

func (s *scenario) consoleShows(ctx context.Context, want *godog.DocString) error {
	return eventually(ctx, "the console shows it", func(context.Context) (bool, string, error) {
		rest := s.consoleText()
		for line := range strings.Lines(want.Content) {
			if strings.Trim(line, " \n…") == "" {
				return false, "", fmt.Errorf("the line %q of the step is on every console: write a text", line)
			}
			pattern, err := regexp.Compile(strings.ReplaceAll(regexp.QuoteMeta(strings.TrimSpace(line)), "…", `\S*`))
			if err != nil {
				return false, "", err
			}
			match := pattern.FindStringIndex(rest)
			if match == nil {
				return false, fmt.Sprintf("%q is not on it after what came before: %s", strings.TrimSpace(line), s.consoleText()), nil
			}
			rest = rest[match[1]:]
		}
		return true, "", nil
	})
}

// token matches an agent's token: the ID of a boot, and a code over it.
var token = regexp.MustCompile(`\w_[^\s._/]+\.[A-Za-z0-9_-]{16,}`)

func (s *scenario) consoleHoldsNoToken() error {
	if text := s.consoleText(); text == "" {
		return errors.New("it shows nothing at all")
	} else if found := token.FindString(text); found != "" {
		return fmt.Errorf("it shows %q", found)
	}
	return nil
}
