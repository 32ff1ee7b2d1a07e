package session

import (
	"bytes"
	"time"
)

const (
	// historySize is the number of requests that a session remembers: a client
	// has one outstanding, but the network may deliver a repetition after the
	// next request.
	historySize = 4
	// repeatWindow is how long after its response a request counts as repeated.
	// Clients that never advance rqSeq may send an equal request later.
	repeatWindow = 10 * time.Second
)

// responseHistory holds a session's last requests and their responses.
type responseHistory struct {
	list []pastResponse // allocated by the first one
	next int
}

type pastResponse struct {
	at                time.Time
	request, response []byte
}

// Repeat returns the response to a message that was answered recently. A client
// that has lost a response retries with a new session sequence number but the
// same rqSeq; it must get its response without a second effect.
func (s *Session) Repeat(request []byte) (answer []byte, again bool) {
	if s.opening != nil { // Activate Session is repeated elsewhere
		return nil, false
	}
	for i := range s.history.list {
		a := &s.history.list[i]
		if bytes.Equal(a.request, request) && s.LastUsed.Sub(a.at) < repeatWindow {
			return a.response, true
		}
	}
	return nil, false
}

// Remember records the response to a message. Both are copied.
func (s *Session) Remember(request, answer []byte) {
	if s.opening != nil {
		return
	}
	if s.history.list == nil {
		s.history.list = make([]pastResponse, historySize)
	}
	a := &s.history.list[s.history.next]
	s.history.next = (s.history.next + 1) % historySize
	a.at = s.LastUsed
	a.request, a.response = append(a.request[:0], request...), append(a.response[:0], answer...)
}
