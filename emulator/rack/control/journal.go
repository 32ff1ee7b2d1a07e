package control

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/metalab-dev/metalab/emulator/rack/journal"
)

// Question is a query of a running lab's journal.
type Question struct {
	Host, Kind, Method, Path, Status, User, What string // as in journal.Query
	Since                                        string // a time of the lab, or a duration before now: "5m"
	Last                                         int
}

func (q Question) values() url.Values {
	v := url.Values{}
	for name, s := range q.fields() { // a map gets them: the order is not seen
		if *s != "" {
			v.Set(name, *s)
		}
	}
	if q.Last != 0 {
		v.Set("last", strconv.Itoa(q.Last))
	}
	return v
}

func (q *Question) fields() map[string]*string {
	return map[string]*string{
		"host": &q.Host, "kind": &q.Kind, "method": &q.Method, "path": &q.Path, "status": &q.Status, "user": &q.User,
		"what": &q.What, "since": &q.Since,
	}
}

// query reads a query from the URL.
func (c *apiRequest) query() (journal.Query, error) {
	v, err := url.ParseQuery(c.URL.RawQuery)
	if err != nil {
		return journal.Query{}, err
	}
	var q Question
	texts := q.fields()
	for name := range v { // any wrong name is reported
		if texts[name] == nil && name != "last" {
			return journal.Query{}, fmt.Errorf("%s: there is no such question", name)
		}
		if texts[name] != nil {
			*texts[name] = v.Get(name)
		}
	}
	if s := v.Get("last"); s != "" {
		if q.Last, err = strconv.Atoi(s); err != nil {
			return journal.Query{}, fmt.Errorf("last: %q is no number", s)
		}
	}
	out := journal.Query{
		Host: q.Host, Kind: journal.Kind(q.Kind), Method: strings.ToUpper(q.Method), Path: q.Path, Status: q.Status, User: q.User,
		What: q.What, Last: q.Last,
	}
	if q.Since != "" {
		if ago, err := time.ParseDuration(q.Since); err == nil {
			out.Since = c.rack.Clock().Now().Add(-ago)
		} else if out.Since, err = time.Parse(time.RFC3339Nano, q.Since); err != nil {
			return journal.Query{}, fmt.Errorf("since: %q: use a form like 5m or 2031-01-02T03:04:05Z", q.Since)
		}
	}
	return out, nil
}

func queryJournal(c *apiRequest) (any, error) {
	q, err := c.query()
	if err != nil {
		return nil, err
	}
	out, _, err := c.rack.Journal().Select(q)
	return out, err
}

// followJournal sends entries, one per line, as they are added, until the client or
// the lab ends.
func (s *Server) followJournal(w http.ResponseWriter, r *http.Request) {
	c := &apiRequest{Request: r, s: s, rack: s.c.Rack}
	q, err := c.query()
	var all []journal.Entry
	var mark journal.Mark
	if err == nil {
		all, mark, err = c.rack.Journal().Select(q)
	}
	if err != nil {
		s.answer(w, http.StatusBadRequest, errorBody{err.Error()})
		return
	}
	w.Header().Set("Content-Type", "application/x-ndjson")
	control := http.NewResponseController(w)
	q.Last = 0
	for {
		lines, err := journal.Lines(all)
		if err == nil {
			_, err = w.Write(lines)
		}
		if err = errors.Join(err, control.Flush()); err != nil {
			return
		}
		if c.rack.Journal().Wait(r.Context(), mark) != nil {
			return
		}
		q.After = mark
		if all, mark, err = c.rack.Journal().Select(q); err != nil {
			return
		}
	}
}

// Journal returns the entries that match a query, oldest first.
func (c *Client) Journal(ctx context.Context, q Question) ([]journal.Entry, error) {
	var out []journal.Entry
	err := c.do(ctx, http.MethodGet, "/v1/journal?"+q.values().Encode(), nil, &out)
	return out, err
}

// Follow calls f with the entries that match a query, and with further ones as they
// are added, until ctx or the lab ends or f returns an error.
func (c *Client) Follow(ctx context.Context, q Question, f func(journal.Entry) error) error {
	body, err := c.open(ctx, http.MethodGet, "/v1/journal/follow?"+q.values().Encode(), nil)
	if err != nil {
		return err
	}
	defer body.Close()
	lines := bufio.NewReader(body)
	for {
		line, err := lines.ReadBytes('\n')
		if ctx.Err() != nil || errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
			return nil
		}
		var e journal.Entry
		if err == nil {
			err = json.Unmarshal(line, &e)
		}
		if err != nil {
			return err
		}
		if err := f(e); err != nil {
			return err
		}
	}
}
