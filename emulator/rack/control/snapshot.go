package control

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"path/filepath"

	"github.com/metalab-dev/metalab/emulator/rack/snapshot"
)

// snapshotRequest is the body of a request to save a snapshot.
type snapshotRequest struct {
	To string `json:"to"` // absolute path
}

// snapshotProgress is a line of the response: the progress, and at the end the
// snapshot or an error.
type snapshotProgress struct {
	Done  int64          `json:"done,omitempty"` // bytes
	All   int64          `json:"all,omitempty"`
	Info  *snapshot.Info `json:"info,omitempty"`
	Error string         `json:"error,omitempty"`
}

// progressEvery is how many bytes are copied between two lines.
const progressEvery = 64 << 20

func (s *Server) saveSnapshot(w http.ResponseWriter, r *http.Request) {
	c := &apiRequest{Request: r, s: s, rack: s.c.Rack}
	c.Body = http.MaxBytesReader(w, r.Body, maxBody)
	var in snapshotRequest
	err := c.decodeBody(&in)
	if err == nil && !filepath.IsAbs(in.To) {
		err = fmt.Errorf("%q: name an absolute path", in.To)
	}
	if err != nil {
		s.answer(w, http.StatusBadRequest, errorBody{err.Error()})
		return
	}
	w.Header().Set("Content-Type", "application/x-ndjson")
	out, control := json.NewEncoder(w), http.NewResponseController(w)
	report := func(line snapshotProgress) {
		if err := errors.Join(out.Encode(line), control.Flush()); err != nil {
			s.c.Log.Debug("client gone", "err", err)
		}
	}
	reported := int64(0)
	info, err := c.rack.SaveSnapshot(r.Context(), in.To, func(done, all int64) {
		if done-reported >= progressEvery {
			reported = done
			report(snapshotProgress{Done: done, All: all})
		}
	})
	if err != nil {
		report(snapshotProgress{Error: err.Error()})
		return
	}
	report(snapshotProgress{Info: &info})
}

// SaveSnapshot makes the lab save itself to a new tar file when to ends in .tar,
// else to a new directory, and calls report with the progress.
func (c *Client) SaveSnapshot(ctx context.Context, to string, report snapshot.Progress) (snapshot.Info, error) {
	body, err := c.open(ctx, http.MethodPost, "/v1/snapshot", snapshotRequest{To: to})
	if err != nil {
		return snapshot.Info{}, err
	}
	defer body.Close()
	lines := json.NewDecoder(bufio.NewReader(body))
	for {
		var line snapshotProgress
		switch err := lines.Decode(&line); {
		case errors.Is(err, io.EOF):
			return snapshot.Info{}, errors.New("the lab ended before the snapshot was there")
		case err != nil:
			return snapshot.Info{}, err
		case line.Error != "":
			return snapshot.Info{}, &Refused{Status: http.StatusInternalServerError, Text: line.Error}
		case line.Info != nil:
			return *line.Info, nil
		case report != nil:
			report(line.Done, line.All)
		}
	}
}
