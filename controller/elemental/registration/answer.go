package registration

import (
	"encoding/json"
	"errors"
	"fmt"
	"html"
	"net/http"
	"os"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
)

// answer is a response: a text, or a body as JSON.
type answer struct {
	status   int
	text     string
	body     any    // as JSON instead of text
	location string // Location header: path of the host that was created
}

// write writes the response. Texts have the type text/plain, as upstream's have.
func (a answer) write(w http.ResponseWriter) {
	body := []byte(a.text)
	if a.body != nil {
		var err error
		if body, err = json.Marshal(a.body); err != nil { // a value of a user's free-form fields
			a.status, body = http.StatusInternalServerError, []byte("Could not encode response body")
		} else {
			w.Header().Set("Content-Type", "application/json")
		}
	}
	if a.location != "" {
		w.Header().Set("Location", a.location)
	}
	if len(body) > 0 && w.Header().Get("Content-Type") == "" {
		w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	}
	w.WriteHeader(a.status)
	_, _ = w.Write(body) // a client that has gone needs no answer
}

// refusal is an error with the status and text of its answer.
type refusal struct {
	status int
	text   string
	cause  error // may be nil; for the log
}

func (e *refusal) Error() string {
	if e.cause != nil {
		return e.text + ": " + e.cause.Error()
	}
	return e.text
}

func (e *refusal) Unwrap() error { return e.cause }

// refuse returns a refusal whose text has names of the request, which are escaped.
func refuse(status int, cause error, format string, names ...string) error {
	var args []any
	for _, n := range names {
		args = append(args, html.EscapeString(n))
	}
	return &refusal{status: status, text: fmt.Sprintf(format, args...), cause: cause}
}

// failure returns the refusal of a write that the Kubernetes API did not take: 400 where the
// values of the request are at fault, else 500.
func failure(err error, format string, names ...string) error {
	status := http.StatusInternalServerError
	if apierrors.IsInvalid(err) || apierrors.IsBadRequest(err) {
		status = http.StatusBadRequest
	}
	return refuse(status, err, format, names...)
}

// decode decodes the body of a request, which may have fields that nobody knows.
func (r *request) decode(into any, prefix string) error {
	c := http.NewResponseController(r.w)
	err := c.SetReadDeadline(time.Now().Add(bodyDeadline)) // a socket's deadline is in real time
	if err != nil && !errors.Is(err, http.ErrNotSupported) {
		return refuse(http.StatusBadRequest, err, prefix)
	}
	err = json.NewDecoder(http.MaxBytesReader(r.w, r.r.Body, maxBody)).Decode(into)
	if tooLarge := new(http.MaxBytesError); errors.As(err, &tooLarge) {
		return &refusal{status: http.StatusRequestEntityTooLarge, text: fmt.Sprintf("%s: the body has more than %d bytes", prefix, maxBody)}
	}
	if errors.Is(err, os.ErrDeadlineExceeded) {
		return &refusal{status: http.StatusRequestTimeout, text: fmt.Sprintf("%s: the body did not come within %s", prefix, bodyDeadline)}
	}
	if err != nil {
		return &refusal{status: http.StatusBadRequest, text: prefix + ": " + err.Error()}
	}
	return nil
}
