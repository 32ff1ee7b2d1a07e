package bmc

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"time"
)

// ErrTooManySubscriptions means that no further subscription fits.
var ErrTooManySubscriptions = errors.New("bmc: too many subscriptions")

// Subscription is somebody who is told of events, and of which. What its names
// mean the service knows that tells them.
type Subscription struct {
	ID                       string        `json:"id"`
	Stream                   bool          `json:"-"` // goes over a connection that the client opened, and lives as long
	Destination              string        `json:"destination"`
	Context                  string        `json:"context,omitempty"` // the client's, who gets it back
	Owner                    string        `json:"owner,omitempty"`   // ID of the account that made it
	Reports                  bool          `json:"reports,omitempty"` // metric reports instead of events
	Filter                   Filter        `json:"filter,omitzero"`
	IncludeOriginOfCondition bool          `json:"whole,omitempty"`     // events hold the resource that they come from
	Heartbeat                time.Duration `json:"heartbeat,omitempty"` // between two signs of life; 0: none
	NextHeartbeat            time.Time     `json:"beat,omitzero"`       // when the next is due
	Headers                  []Header      `json:"headers,omitempty"`   // sent along; they may hold secrets
	Verify                   bool          `json:"verify,omitempty"`    // the destination must prove who it is
	Retry                    Retry         `json:"retry,omitempty"`
	Suspended                bool          `json:"suspended,omitempty"`
	Failures                 int           `json:"failures,omitempty"` // attempts in a row that failed
}

// Filter says which events are told: those that every list takes. An empty list
// takes all.
type Filter struct {
	Registries    []string `json:"registries,omitempty"`
	NotRegistries []string `json:"notRegistries,omitempty"`
	Messages      []string `json:"messages,omitempty"` // beside what Registries take
	NotMessages   []string `json:"notMessages,omitempty"`
	Types         []string `json:"types,omitempty"` // of the resource that an event comes from
	Kinds         []string `json:"kinds,omitempty"` // of event
	Origins       []string `json:"origins,omitempty"`
	Subordinate   bool     `json:"subordinate,omitempty"` // what is below Origins, too
	Severities    []string `json:"severities,omitempty"`
	Reports       []string `json:"reports,omitempty"` // definitions of metric reports
}

// Header is a header that is sent along with events.
type Header struct {
	Name  string `json:"name"`
	Value string `json:"value"`
}

// Retry is what becomes of a subscription whose events cannot be delivered; the
// values are Redfish's DeliveryRetryPolicy.
type Retry string

// The policies; "" is Terminate.
const (
	Terminate Retry = "TerminateAfterRetries"
	Suspend   Retry = "SuspendRetries"
	Forever   Retry = "RetryForever"
	BackOff   Retry = "RetryForeverWithBackoff"
)

// Retries lists the policies.
var Retries = []Retry{Terminate, Suspend, Forever, BackOff}

// Subscriptions are those that outlive their connection, and how events are
// delivered. A BMC has none until somebody subscribes.
type Subscriptions struct {
	Next           uint64         `json:"next"`               // ID of the next subscription
	LastEventID    uint64         `json:"told"`               // number of the last event that was told
	Off            bool           `json:"off,omitempty"`      // nothing is told to anybody
	Attempts       int            `json:"attempts"`           // after the first; only with Set
	Interval       time.Duration  `json:"interval"`           // between attempts; only with Set
	Set            bool           `json:"set,omitempty"`      // Attempts and Interval are not the defaults
	List           []Subscription `json:"list,omitempty"`     // in the order of their making
	EverSubscribed bool           `json:"listened,omitempty"` // somebody has subscribed at some time
}

// Defaults of delivery.
const (
	DefaultAttempts = 3
	DefaultInterval = 30 * time.Second

	// MaxSubscriptions are as many as a BMC takes beside streams.
	MaxSubscriptions = 64
	// MaxStreams are as many as a BMC takes at a time.
	MaxStreams = 16

	maxBackOff = time.Hour
)

// Subscribers is who is told of events, as a View shows it.
type Subscribers struct {
	Off      bool
	Attempts int
	Interval time.Duration
	List     []Subscription // without the values of headers; those with streams last
}

// NextEvent numbers an event that is about to be told; false when nobody
// listens, and nobody has who may come back and ask for what he has missed.
func (b *BMC) NextEvent() (uint64, bool) {
	s := b.st.Subscriptions
	if s == nil || !s.EverSubscribed {
		return 0, false
	}
	s = new(*s)
	s.LastEventID++
	b.st.Subscriptions = s
	return s.LastEventID, true
}

// forkSubscriptions is a copy that a step may write, put in place.
func (b *BMC) forkSubscriptions() *Subscriptions {
	s := &Subscriptions{Next: 1}
	if b.st.Subscriptions != nil {
		s = new(*b.st.Subscriptions)
		s.List = slices.Clone(s.List)
	}
	b.st.Subscriptions = s
	return s
}

// setStreams puts streams in place of those that are there.
func (b *BMC) setStreams(streams []Subscription) {
	b.streams, b.heard = streams, nil
}

// keepStreams drops the streams that were opened after a state was.
func (b *BMC) keepStreams(st State) {
	b.setStreams(slices.DeleteFunc(slices.Clone(b.streams), func(s Subscription) bool {
		n, _ := strconv.ParseUint(s.ID, 10, 64)
		return st.Subscriptions == nil || n >= st.Subscriptions.Next
	}))
}

// audience makes what a View shows of the subscriptions.
func (b *BMC) audience() *Subscribers {
	s := b.st.Subscriptions
	if s == nil {
		return nobody
	}
	a := &Subscribers{Off: s.Off, Attempts: DefaultAttempts, Interval: DefaultInterval, List: slices.Concat(s.List, b.streams)}
	if s.Set {
		a.Attempts, a.Interval = s.Attempts, s.Interval
	}
	for i := range a.List {
		a.List[i].Headers = nil
	}
	return a
}

var nobody = &Subscribers{Attempts: DefaultAttempts, Interval: DefaultInterval}

// sameAudience says whether two states of the part show the same: the number of
// the last event is not shown, and it moves with everything that happens.
func sameAudience(a, b *Subscriptions) bool {
	if a == b || a == nil || b == nil {
		return a == b
	}
	return a.Off == b.Off && a.Set == b.Set && a.Attempts == b.Attempts && a.Interval == b.Interval &&
		slices.EqualFunc(a.List, b.List, func(x, y Subscription) bool {
			return x.ID == y.ID && x.Context == y.Context && x.Verify == y.Verify && x.Retry == y.Retry &&
				x.Suspended == y.Suspended && x.Failures == y.Failures // the rest never changes
		})
}

// Subscription is a subscription as it is, with its headers.
func (b *BMC) Subscription(id string) (Subscription, bool) {
	if b.st.Subscriptions != nil {
		if i := placeOf(b.st.Subscriptions.List, id); i >= 0 {
			return b.st.Subscriptions.List[i], true
		}
	}
	if i := placeOf(b.streams, id); i >= 0 {
		return b.streams[i], true
	}
	return Subscription{}, false
}

func placeOf(all []Subscription, id string) int {
	return slices.IndexFunc(all, func(s Subscription) bool { return s.ID == id })
}

// Subscribe adds a subscription. The event Subscribed tells its ID.
type Subscribe struct{ Subscription }

func (c Subscribe) apply(b *BMC, now time.Time) ([]Event, error) {
	c.Retry = cmp.Or(c.Retry, Terminate)
	there, most := b.streams, MaxStreams
	if !c.Stream {
		there, most = nil, MaxSubscriptions
		if b.st.Subscriptions != nil {
			there = b.st.Subscriptions.List
		}
	}
	if len(there) >= most {
		return nil, fmt.Errorf("%w: %d are there", ErrTooManySubscriptions, len(there))
	}
	s := b.forkSubscriptions()
	c.ID = strconv.FormatUint(s.Next, 10)
	s.Next++
	s.EverSubscribed = true
	if c.Stream {
		b.setStreams(append(slices.Clone(b.streams), c.Subscription))
	} else {
		c.NextHeartbeat = now.Add(c.Heartbeat)
		s.List = append(s.List, c.Subscription)
	}
	shown := c.Subscription
	shown.Headers = nil
	return []Event{Subscribed{At: now, Subscription: shown}}, nil
}

// ChangeSubscription changes what of a subscription can be changed; what is nil
// stays.
type ChangeSubscription struct {
	ID      string
	Context *string
	Headers *[]Header
	Verify  *bool
	Retry   *Retry
}

func (c ChangeSubscription) apply(b *BMC, _ time.Time) ([]Event, error) {
	return nil, b.changeSubscription(c.ID, func(s *Subscription) {
		set(&s.Context, c.Context)
		set(&s.Headers, c.Headers)
		set(&s.Verify, c.Verify)
		set(&s.Retry, c.Retry)
	})
}

// changeSubscription changes one subscription or stream.
func (b *BMC) changeSubscription(id string, how func(*Subscription)) error {
	if i := placeOf(b.streams, id); i >= 0 {
		b.setStreams(slices.Clone(b.streams))
		how(&b.streams[i])
		return nil
	}
	if b.st.Subscriptions != nil {
		if i := placeOf(b.st.Subscriptions.List, id); i >= 0 {
			how(&b.forkSubscriptions().List[i])
			return nil
		}
	}
	return fmt.Errorf("%w: subscription %s", ErrNotFound, id)
}

// Unsubscribe ends a subscription, and the stream that it may stand for.
type Unsubscribe struct{ ID string }

func (c Unsubscribe) apply(b *BMC, now time.Time) ([]Event, error) {
	old, ok := b.Subscription(c.ID)
	if !ok {
		return nil, fmt.Errorf("%w: subscription %s", ErrNotFound, c.ID)
	}
	if old.Stream {
		i := placeOf(b.streams, c.ID)
		b.setStreams(slices.Delete(slices.Clone(b.streams), i, i+1))
	} else {
		s := b.forkSubscriptions()
		i := placeOf(s.List, c.ID)
		s.List = slices.Delete(s.List, i, i+1)
		b.dropStore(SubscriptionStore(c.ID))
	}
	return []Event{Unsubscribed{At: now, ID: c.ID, Stream: old.Stream}}, nil
}

// SuspendSubscription holds back the events of a subscription.
type SuspendSubscription struct{ ID string }

func (c SuspendSubscription) apply(b *BMC, _ time.Time) ([]Event, error) {
	return nil, b.changeSubscription(c.ID, func(s *Subscription) { s.Suspended = true })
}

// ResumeSubscription has a suspended subscription told again. Buffered says of
// what time before now it is told what it has missed.
type ResumeSubscription struct {
	ID       string
	Buffered time.Duration
}

func (c ResumeSubscription) apply(b *BMC, now time.Time) ([]Event, error) {
	err := b.changeSubscription(c.ID, func(s *Subscription) {
		s.Suspended, s.Failures, s.NextHeartbeat = false, 0, now.Add(s.Heartbeat)
	})
	if err != nil {
		return nil, err
	}
	return []Event{SubscriptionResumed{At: now, ID: c.ID, Since: now.Add(-c.Buffered)}}, nil
}

// SetDelivery sets how events are delivered; what is nil stays.
type SetDelivery struct {
	Off      *bool
	Attempts *int
	Interval *time.Duration
}

func (c SetDelivery) apply(b *BMC, now time.Time) ([]Event, error) {
	a := b.audience()
	s := b.forkSubscriptions()
	if c.Attempts != nil || c.Interval != nil {
		s.Set, s.Attempts, s.Interval = true, a.Attempts, a.Interval
	}
	set(&s.Off, c.Off)
	set(&s.Attempts, c.Attempts)
	set(&s.Interval, c.Interval)
	var evs []Event
	if s.Off { // and connections end
		for _, st := range b.streams {
			evs = append(evs, Unsubscribed{At: now, ID: st.ID, Stream: true})
		}
		b.setStreams(nil)
	}
	return evs, nil
}

// Delivered tells that an event has reached its subscriber.
type Delivered struct{ ID string }

func (c Delivered) apply(b *BMC, _ time.Time) ([]Event, error) {
	if s, ok := b.Subscription(c.ID); ok && s.Failures == 0 {
		return nil, nil
	}
	return nil, b.changeSubscription(c.ID, func(s *Subscription) { s.Failures = 0 })
}

// DeliveryFailed tells that an attempt to deliver an event has failed. The answer
// is TryAgain, Unsubscribed, or nothing when the subscription is suspended.
type DeliveryFailed struct{ ID string }

func (c DeliveryFailed) apply(b *BMC, now time.Time) ([]Event, error) {
	var is Subscription
	err := b.changeSubscription(c.ID, func(s *Subscription) { s.Failures++; is = *s })
	if err != nil {
		return nil, err
	}
	a := b.audience()
	wait := a.Interval
	switch {
	case is.Suspended: // meanwhile
		return nil, nil
	case is.Retry == BackOff:
		wait = min(max(wait, time.Second)<<min(is.Failures-1, 12), maxBackOff)
	case is.Retry == Forever || is.Failures <= a.Attempts:
	case is.Retry == Suspend:
		return nil, b.changeSubscription(c.ID, func(s *Subscription) { s.Suspended = true })
	default:
		return Unsubscribe(c).apply(b, now)
	}
	return []Event{RetryDelivery{At: now, ID: c.ID, After: wait}}, nil
}

// heartbeats are the signs of life that are due.
func (b *BMC) heartbeats(now time.Time) []Event {
	if at, ok := b.nextBeat(); !ok || now.Before(at) {
		return nil
	}
	var evs []Event
	for i, s := range b.forkSubscriptions().List {
		if s.beats() && !now.Before(s.NextHeartbeat) {
			b.st.Subscriptions.List[i].NextHeartbeat = now.Add(s.Heartbeat)
			evs = append(evs, HeartbeatDue{At: now, ID: s.ID})
		}
	}
	return evs
}

// beats says whether a subscription is given signs of life.
func (s *Subscription) beats() bool { return s.Heartbeat > 0 && !s.Suspended }

// nextBeat is when the next sign of life is due.
func (b *BMC) nextBeat() (first time.Time, ok bool) {
	if b.st.Subscriptions == nil || b.st.Subscriptions.Off {
		return first, false
	}
	for i := range b.st.Subscriptions.List {
		if s := &b.st.Subscriptions.List[i]; s.beats() && (!ok || s.NextHeartbeat.Before(first)) {
			first, ok = s.NextHeartbeat, true
		}
	}
	return first, ok
}

// SubmitTestEvent tells an event that somebody has made up, to try what its
// subscribers do. What its fields mean the service knows that tells it.
type SubmitTestEvent struct{ Fields map[string]any }

func (c SubmitTestEvent) apply(_ *BMC, now time.Time) ([]Event, error) {
	return []Event{TestEvent{At: now, Fields: c.Fields}}, nil
}

// TestEvent tells an event that somebody has made up.
type TestEvent struct {
	At     time.Time
	Fields map[string]any
}

// Time implements Event.
func (e TestEvent) Time() time.Time { return e.At }

// Subscribed tells the subscription that Subscribe made, without its headers.
type Subscribed struct {
	At           time.Time
	Subscription Subscription
}

// Unsubscribed tells that a subscription has ended.
type Unsubscribed struct {
	At     time.Time
	ID     string
	Stream bool
}

// SubscriptionResumed tells that a subscription is told again, and of what it has missed
// everything from Since on.
type SubscriptionResumed struct {
	At    time.Time
	ID    string
	Since time.Time
}

// RetryDelivery asks for another attempt at delivering to a subscription.
type RetryDelivery struct {
	At    time.Time
	ID    string
	After time.Duration
}

// HeartbeatDue asks for a sign of life to a subscription.
type HeartbeatDue struct {
	At time.Time
	ID string
}

// Time implements Event.
func (e Subscribed) Time() time.Time { return e.At }

// Time implements Event.
func (e Unsubscribed) Time() time.Time { return e.At }

// Time implements Event.
func (e SubscriptionResumed) Time() time.Time { return e.At }

// Time implements Event.
func (e RetryDelivery) Time() time.Time { return e.At }

// Time implements Event.
func (e HeartbeatDue) Time() time.Time { return e.At }
