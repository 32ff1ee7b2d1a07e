package journal

import (
	"fmt"
	"path"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/metalab-dev/metalab/emulator/fault"
)

// Query selects entries. The zero value selects all.
type Query struct {
	Host   string    // name, or a pattern with * ? [a-z]
	Kind   Kind      // "" is every kind
	Method string    // method of the request
	Path   string    // path of the request; a pattern as in fault rules
	Status string    // status of the request: 404, 5xx, or none when it has no response
	User   string    // user of the request
	What   string    // What of an entry that is no request; a pattern with *
	Since  time.Time // the lab's time
	After  Mark      // entries added after this position
	Last   int       // only the latest; 0 is all
}

// FieldError is an error in a field of a query.
type FieldError struct {
	Field string // in lower case, as the flags and the parameters of a query have it
	Text  string
}

// Error implements error.
func (e *FieldError) Error() string { return e.Field + ": " + e.Text }

// Check returns a *FieldError when a field has no meaning.
func (q Query) Check() error {
	_, err := q.parse()
	return err
}

// parse checks a query and returns a function that reports whether an entry matches.
func (q Query) parse() (func(*Entry) bool, error) {
	wrong := func(field, text string, args ...any) (func(*Entry) bool, error) {
		return nil, &FieldError{field, fmt.Sprintf(text, args...)}
	}
	if _, err := path.Match(q.Host, ""); err != nil {
		return wrong("host", "%q: is no pattern: close each [", q.Host)
	}
	if _, err := path.Match(q.What, ""); err != nil {
		return wrong("what", "%q: is no pattern: close each [", q.What)
	}
	if q.Kind != "" && !slices.Contains(Kinds, q.Kind) {
		return wrong("kind", "%q: must be one of %s, %s, %s", q.Kind, Request, Event, Control)
	}
	low, high, err := statuses(q.Status)
	if err != nil {
		return wrong("status", "%v", err)
	}
	if q.Path != "" {
		if _, err := fault.Matches(q.Path, "/"); err != nil {
			return wrong("path", "%s", strings.TrimPrefix(err.Error(), "path "))
		}
	}
	if q.Last < 0 {
		return wrong("last", "%d: must not be negative", q.Last)
	}
	requests := q.Method != "" || q.Path != "" || q.Status != "" || q.User != ""
	like := func(glob, s string) bool {
		ok, err := path.Match(glob, s)
		return glob == "" || ok && err == nil
	}
	return func(e *Entry) bool {
		if e.At.Before(q.Since) || !like(q.Host, e.Host) || q.Kind != "" && e.Kind != q.Kind || !like(q.What, e.What) {
			return false
		}
		if !requests {
			return true
		}
		if e.Kind != Request || q.Method != "" && e.Method != q.Method || q.User != "" && e.User != q.User ||
			q.Status != "" && (e.Status < low || e.Status > high) {
			return false
		}
		if q.Path == "" {
			return true
		}
		ok, err := fault.Matches(q.Path, e.Path)
		return ok && err == nil
	}, nil
}

// noAnswer is the Status of requests that got no response.
const noAnswer = "none"

// statuses returns the range of status codes that a Query.Status means.
func statuses(s string) (low, high int, err error) {
	if s == "" || s == noAnswer {
		return 0, 0, nil
	}
	if class, ok := strings.CutSuffix(s, "xx"); ok && len(class) == 1 && class[0] >= '1' && class[0] <= '5' {
		low = int(class[0]-'0') * 100
		return low, low + 99, nil
	}
	n, err := strconv.Atoi(s)
	if err != nil || n < 100 || n > 599 {
		return 0, 0, fmt.Errorf("%q: use a form like 404, 5xx or %s", s, noAnswer)
	}
	return n, n, nil
}
