package session

import (
	"bytes"
	"time"
)

const (
	// remembered is how many requests a session remembers: a client has one in
	// work, but a network may bring a repeated one after the next.
	remembered = 4
	// repeats is how long after its answer a request can be a repeated one.
	// Clients that never count (rqSeq) can ask the same again later.
	repeats = 10 * time.Second
)

// past is the last requests of a session and their answers.
type past struct {
	list []answered // made at the first
	next int
}

type answered struct {
	at              time.Time
	request, answer []byte
}

// Repeat is the answer to a message that has been answered lately. A client
// that has lost an answer asks again with a new session sequence number, but
// the same message with the same number of its own (rqSeq): it must get its
// answer without a second effect.
func (s *Session) Repeat(request []byte) (answer []byte, again bool) {
	if s.opening != nil { // Activate Session has an answer of its own
		return nil, false
	}
	for i := range s.past.list {
		a := &s.past.list[i]
		if bytes.Equal(a.request, request) && s.Used.Sub(a.at) < repeats {
			return a.answer, true
		}
	}
	return nil, false
}

// Remember notes the answer to a message. Both are copied.
func (s *Session) Remember(request, answer []byte) {
	if s.opening != nil {
		return
	}
	if s.past.list == nil {
		s.past.list = make([]answered, remembered)
	}
	a := &s.past.list[s.past.next]
	s.past.next = (s.past.next + 1) % remembered
	a.at = s.Used
	a.request, a.answer = append(a.request[:0], request...), append(a.answer[:0], answer...)
}
