package bmc

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"time"
)

// ErrTooManySubscriptions means that the maximum number of subscriptions
// exists.
var ErrTooManySubscriptions = errors.New("bmc: too many subscriptions")

// Subscription is an event subscription (DSP2046, EventDestination). The
// service that sends events interprets its names.
type Subscription struct {
	ID                       string        `json:"id"`
	Stream                   bool          `json:"-"` // a server-sent event stream, which ends with its connection
	Destination              string        `json:"destination"`
	Context                  string        `json:"context,omitempty"` // client-supplied string, repeated in events
	Owner                    string        `json:"owner,omitempty"`   // ID of the account that created it
	Reports                  bool          `json:"reports,omitempty"` // metric reports instead of events
	Filter                   Filter        `json:"filter,omitzero"`
	IncludeOriginOfCondition bool          `json:"whole,omitempty"`     // events contain the resource that they originate from
	Heartbeat                time.Duration `json:"heartbeat,omitempty"` // interval; 0: no heartbeats
	NextHeartbeat            time.Time     `json:"beat,omitzero"`       // client time at which the next is due
	Headers                  []Header      `json:"headers,omitempty"`   // sent with events; may hold secrets
	Verify                   bool          `json:"verify,omitempty"`    // verify the destination's certificate
	Retry                    Retry         `json:"retry,omitempty"`
	Suspended                bool          `json:"suspended,omitempty"`
	Failures                 int           `json:"failures,omitempty"` // consecutive failed attempts
}

// Filter selects events: those that match every list. An empty list matches
// all.
type Filter struct {
	Registries    []string `json:"registries,omitempty"`
	NotRegistries []string `json:"notRegistries,omitempty"`
	Messages      []string `json:"messages,omitempty"` // besides those of Registries
	NotMessages   []string `json:"notMessages,omitempty"`
	Types         []string `json:"types,omitempty"` // resource types of origins
	Kinds         []string `json:"kinds,omitempty"` // event types
	Origins       []string `json:"origins,omitempty"`
	Subordinate   bool     `json:"subordinate,omitempty"` // include resources below Origins
	Severities    []string `json:"severities,omitempty"`
	Reports       []string `json:"reports,omitempty"` // metric report definitions
}

// Header is an HTTP header sent with events.
type Header struct {
	Name  string `json:"name"`
	Value string `json:"value"`
}

// Retry says what happens to a subscription whose events cannot be delivered;
// the values are Redfish's DeliveryRetryPolicy.
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

// Subscriptions holds the persistent subscriptions and the delivery settings. A
// BMC has none until the first subscription.
type Subscriptions struct {
	Next           uint64         `json:"next"`               // ID of the next subscription
	LastEventID    uint64         `json:"told"`               // ID of the last event that was sent
	Off            bool           `json:"off,omitempty"`      // event delivery is disabled
	Attempts       int            `json:"attempts"`           // retries; only with Set
	Interval       time.Duration  `json:"interval"`           // between retries; only with Set
	Set            bool           `json:"set,omitempty"`      // Attempts and Interval are not the defaults
	List           []Subscription `json:"list,omitempty"`     // in the order of creation
	EverSubscribed bool           `json:"listened,omitempty"` // there was a subscription at some time
}

// Delivery defaults and limits.
const (
	DefaultAttempts = 3
	DefaultInterval = 30 * time.Second

	// MaxSubscriptions is the maximum number of subscriptions without streams.
	MaxSubscriptions = 64
	// MaxStreams is the maximum number of streams.
	MaxStreams = 16

	maxBackOff = time.Hour
)

// Subscribers holds the subscriptions and delivery settings of a View.
type Subscribers struct {
	Off      bool
	Attempts int
	Interval time.Duration
	List     []Subscription // without header values; streams last
}

// NextEvent assigns an event its ID; false when nobody subscribes, and nobody
// did who could ask for missed events.
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

// forkSubscriptions returns a copy that a step may change, and stores it.
func (b *BMC) forkSubscriptions() *Subscriptions {
	s := &Subscriptions{Next: 1}
	if b.st.Subscriptions != nil {
		s = new(*b.st.Subscriptions)
		s.List = slices.Clone(s.List)
	}
	b.st.Subscriptions = s
	return s
}

// setStreams replaces the streams.
func (b *BMC) setStreams(streams []Subscription) {
	b.streams, b.subscribers = streams, nil
}

// keepStreams closes the streams that were opened after a state.
func (b *BMC) keepStreams(st State) {
	b.setStreams(slices.DeleteFunc(slices.Clone(b.streams), func(s Subscription) bool {
		n, _ := strconv.ParseUint(s.ID, 10, 64)
		return st.Subscriptions == nil || n >= st.Subscriptions.Next
	}))
}

// publicSubscribers returns the subscriptions as a View shows them.
func (b *BMC) publicSubscribers() *Subscribers {
	s := b.st.Subscriptions
	if s == nil {
		return noSubscribers
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

var noSubscribers = &Subscribers{Attempts: DefaultAttempts, Interval: DefaultInterval}

// sameSubscribers reports whether two states look the same in a View: the last
// event ID, which changes all the time, is not shown.
func sameSubscribers(a, b *Subscriptions) bool {
	if a == b || a == nil || b == nil {
		return a == b
	}
	return a.Off == b.Off && a.Set == b.Set && a.Attempts == b.Attempts && a.Interval == b.Interval &&
		slices.EqualFunc(a.List, b.List, func(x, y Subscription) bool {
			return x.ID == y.ID && x.Context == y.Context && x.Verify == y.Verify && x.Retry == y.Retry &&
				x.Suspended == y.Suspended && x.Failures == y.Failures // the rest is immutable
		})
}

// Subscription returns a subscription with its header values.
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

// Subscribe adds a subscription. The event Subscribed reports its ID.
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
		c.NextHeartbeat = b.clientTime(now).Add(c.Heartbeat)
		s.List = append(s.List, c.Subscription)
	}
	shown := c.Subscription
	shown.Headers = nil
	return []Event{Subscribed{At: now, Subscription: shown}}, nil
}

// ChangeSubscription changes a subscription; nil fields do not change.
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

// Unsubscribe ends a subscription or stream.
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

// SuspendSubscription suspends the delivery to a subscription.
type SuspendSubscription struct{ ID string }

func (c SuspendSubscription) apply(b *BMC, _ time.Time) ([]Event, error) {
	return nil, b.changeSubscription(c.ID, func(s *Subscription) { s.Suspended = true })
}

// ResumeSubscription resumes the delivery to a suspended subscription. Buffered
// is the time before now whose missed events are delivered.
type ResumeSubscription struct {
	ID       string
	Buffered time.Duration
}

func (c ResumeSubscription) apply(b *BMC, now time.Time) ([]Event, error) {
	err := b.changeSubscription(c.ID, func(s *Subscription) {
		s.Suspended, s.Failures, s.NextHeartbeat = false, 0, b.clientTime(now).Add(s.Heartbeat)
	})
	if err != nil {
		return nil, err
	}
	return []Event{SubscriptionResumed{At: now, ID: c.ID, Since: now.Add(-c.Buffered)}}, nil
}

// SetDelivery changes the delivery settings; nil fields do not change.
type SetDelivery struct {
	Off      *bool
	Attempts *int
	Interval *time.Duration
}

func (c SetDelivery) apply(b *BMC, now time.Time) ([]Event, error) {
	a := b.publicSubscribers()
	s := b.forkSubscriptions()
	if c.Attempts != nil || c.Interval != nil {
		s.Set, s.Attempts, s.Interval = true, a.Attempts, a.Interval
	}
	set(&s.Off, c.Off)
	set(&s.Attempts, c.Attempts)
	set(&s.Interval, c.Interval)
	var evs []Event
	if s.Off { // streams are closed
		for _, st := range b.streams {
			evs = append(evs, Unsubscribed{At: now, ID: st.ID, Stream: true})
		}
		b.setStreams(nil)
	}
	return evs, nil
}

// Delivered reports that an event has reached its subscriber.
type Delivered struct{ ID string }

func (c Delivered) apply(b *BMC, _ time.Time) ([]Event, error) {
	if s, ok := b.Subscription(c.ID); ok && s.Failures == 0 {
		return nil, nil
	}
	return nil, b.changeSubscription(c.ID, func(s *Subscription) { s.Failures = 0 })
}

// DeliveryFailed reports that an attempt to deliver an event has failed. The
// response is RetryDelivery, Unsubscribed, or none when the subscription is
// suspended.
type DeliveryFailed struct{ ID string }

func (c DeliveryFailed) apply(b *BMC, now time.Time) ([]Event, error) {
	var is Subscription
	err := b.changeSubscription(c.ID, func(s *Subscription) { s.Failures++; is = *s })
	if err != nil {
		return nil, err
	}
	a := b.publicSubscribers()
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

// heartbeats returns the heartbeats that are due.
func (b *BMC) heartbeats(now time.Time) []Event {
	client := b.clientTime(now)
	if at, ok := b.nextBeat(); !ok || client.Before(at) {
		return nil
	}
	var evs []Event
	for i, s := range b.forkSubscriptions().List {
		if s.hasHeartbeat() && !client.Before(s.NextHeartbeat) {
			b.st.Subscriptions.List[i].NextHeartbeat = client.Add(s.Heartbeat)
			evs = append(evs, HeartbeatDue{At: now, ID: s.ID})
		}
	}
	return evs
}

// hasHeartbeat reports whether a subscription gets heartbeats.
func (s *Subscription) hasHeartbeat() bool { return s.Heartbeat > 0 && !s.Suspended }

// nextBeat returns the client time at which the next heartbeat is due.
func (b *BMC) nextBeat() (first time.Time, ok bool) {
	if b.st.Subscriptions == nil || b.st.Subscriptions.Off {
		return first, false
	}
	for i := range b.st.Subscriptions.List {
		if s := &b.st.Subscriptions.List[i]; s.hasHeartbeat() && (!ok || s.NextHeartbeat.Before(first)) {
			first, ok = s.NextHeartbeat, true
		}
	}
	return first, ok
}

// SubmitTestEvent sends a test event. The service that sends it interprets its
// fields.
type SubmitTestEvent struct{ Fields map[string]any }

func (c SubmitTestEvent) apply(_ *BMC, now time.Time) ([]Event, error) {
	return []Event{TestEvent{At: now, Fields: c.Fields}}, nil
}

// TestEvent reports a test event.
type TestEvent struct {
	At     time.Time
	Fields map[string]any
}

// Time implements Event.
func (e TestEvent) Time() time.Time { return e.At }

// Subscribed reports a new subscription, without headers.
type Subscribed struct {
	At           time.Time
	Subscription Subscription
}

// Unsubscribed reports that a subscription has ended.
type Unsubscribed struct {
	At     time.Time
	ID     string
	Stream bool
}

// SubscriptionResumed reports that delivery resumes with the events since
// Since.
type SubscriptionResumed struct {
	At    time.Time
	ID    string
	Since time.Time
}

// RetryDelivery asks for another attempt to deliver to a subscription.
type RetryDelivery struct {
	At    time.Time
	ID    string
	After time.Duration // delay in client time
}

// HeartbeatDue asks for a heartbeat to a subscription.
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
