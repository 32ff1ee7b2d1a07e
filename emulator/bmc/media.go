package bmc

import (
	"fmt"
	"time"
)

// Transfer is how an image shall come; the values are Redfish's (DSP2046,
// VirtualMedia.TransferMethod), of which the zero one is Upload.
type Transfer string

// The ways. An image is read ahead whole either way: what is streamed does not
// depend on its server for longer than what is uploaded.
const (
	Stream Transfer = "Stream"
	Upload Transfer = "Upload"
)

// InsertMedia puts an image into a slot. The slot shows the image once it was
// fetched; until then it is in use.
type InsertMedia struct {
	Slot           string
	Image          string // URL
	WriteProtected bool
	User, Password string // for the image's server
	Transfer       Transfer
}

func (c InsertMedia) apply(b *BMC, now time.Time) ([]Event, error) {
	s := b.slot(c.Slot)
	if s == nil {
		return nil, fmt.Errorf("%w: media slot %s", ErrNotFound, c.Slot)
	}
	if s.Image != "" {
		return nil, fmt.Errorf("%w: media slot %s", ErrInUse, c.Slot)
	}
	if !b.net().Media.On {
		return nil, fmt.Errorf("%w: virtual media", ErrDisabled)
	}
	m := b.forkMedia()
	m.Fetches++
	in := Slot{
		ID: c.Slot, Image: c.Image, WriteProtected: c.WriteProtected,
		User: c.User, Password: c.Password, Fetch: m.Fetches, Since: now, Transfer: c.Transfer, Verify: s.Verify, EjectAfterBoots: s.EjectAfterBoots,
	}
	b.setSlot(in)
	return []Event{MediaRequested{At: now, Slot: in}}, nil
}

// MediaFetched answers MediaWanted: the image is here.
type MediaFetched struct {
	Slot  string
	Fetch uint64 // of the event
	Size  int64  // bytes
}

func (c MediaFetched) apply(b *BMC, now time.Time) ([]Event, error) {
	s := b.slot(c.Slot)
	if s == nil || s.Fetch != c.Fetch || s.Image == "" {
		return nil, fmt.Errorf("%w: fetch %d of media slot %s", ErrNotFound, c.Fetch, c.Slot)
	}
	in := *s
	in.Inserted, in.Size = true, c.Size
	b.setSlot(in)
	return []Event{MediaInserted{At: now, Slot: c.Slot, Image: in.Image}}, nil
}

// MediaFetchFailed answers MediaWanted: the image cannot be had. The slot is empty
// again.
type MediaFetchFailed struct {
	Slot  string
	Fetch uint64
}

func (c MediaFetchFailed) apply(b *BMC, now time.Time) ([]Event, error) {
	s := b.slot(c.Slot)
	if s == nil || s.Fetch != c.Fetch {
		return nil, fmt.Errorf("%w: fetch %d of media slot %s", ErrNotFound, c.Fetch, c.Slot)
	}
	return b.empty(s, now), nil
}

// VerifyMedia says whether the servers of a slot's images must show a
// certificate that the BMC trusts.
type VerifyMedia struct {
	Slot   string
	Verify bool
}

func (c VerifyMedia) apply(b *BMC, _ time.Time) ([]Event, error) {
	s := b.slot(c.Slot)
	if s == nil {
		return nil, fmt.Errorf("%w: media slot %s", ErrNotFound, c.Slot)
	}
	if s.Verify != c.Verify {
		to := *s
		to.Verify = c.Verify
		b.setSlot(to)
	}
	return nil, nil
}

// EjectMediaAfterBoots has a slot emptied when the machine has started so many times; 0
// takes that back. An image that is inserted before that goes as well.
type EjectMediaAfterBoots struct {
	Slot  string
	Boots int
}

func (c EjectMediaAfterBoots) apply(b *BMC, _ time.Time) ([]Event, error) {
	s := b.slot(c.Slot)
	if s == nil {
		return nil, fmt.Errorf("%w: media slot %s", ErrNotFound, c.Slot)
	}
	if s.EjectAfterBoots != c.Boots {
		to := *s
		to.EjectAfterBoots = c.Boots
		b.setSlot(to)
	}
	return nil, nil
}

// emptied counts a start of the machine, and empties the slots whose time has
// come.
func (b *BMC) emptied(now time.Time) []Event {
	var evs []Event
	for _, s := range b.st.Media.Slots {
		if s.EjectAfterBoots == 0 {
			continue
		}
		s.EjectAfterBoots--
		b.setSlot(s)
		if s.EjectAfterBoots == 0 && s.Image != "" {
			evs = append(evs, b.empty(&s, now)...)
		}
	}
	return evs
}

// EjectMedia empties a slot; an empty one is no error.
type EjectMedia struct{ Slot string }

func (c EjectMedia) apply(b *BMC, now time.Time) ([]Event, error) {
	s := b.slot(c.Slot)
	if s == nil {
		return nil, fmt.Errorf("%w: media slot %s", ErrNotFound, c.Slot)
	}
	if s.Image == "" {
		return nil, nil
	}
	return b.empty(s, now), nil
}

func (b *BMC) empty(s *Slot, now time.Time) []Event {
	ev := MediaEjected{At: now, Slot: s.ID, Fetch: s.Fetch}
	b.setSlot(Slot{ID: s.ID, Verify: s.Verify, Since: now})
	return []Event{ev}
}

// MediaRequested asks for the image of a slot to be fetched.
type MediaRequested struct {
	At   time.Time
	Slot Slot // with the password
}

// MediaInserted tells that the machine can see the image.
type MediaInserted struct {
	At          time.Time
	Slot, Image string
}

// MediaEjected tells that the machine cannot see the image any longer.
type MediaEjected struct {
	At    time.Time
	Slot  string
	Fetch uint64 // that filled it
}

// Time implements Event.
func (e MediaRequested) Time() time.Time { return e.At }

// Time implements Event.
func (e MediaInserted) Time() time.Time { return e.At }

// Time implements Event.
func (e MediaEjected) Time() time.Time { return e.At }

// MediaFault says why an image could not be had. The zero value means that it
// is not known closer.
type MediaFault string

// The faults.
const (
	Unreachable MediaFault = "unreachable" // no connection
	Absent      MediaFault = "absent"      // the server has no such image
	Denied      MediaFault = "denied"      // the server wants other credentials, or none help
	Protocol    MediaFault = "protocol"    // the server speaks another protocol
	Format      MediaFault = "format"      // it is no image
)

// MediaError is the ErrMedia of a fault that is known.
type MediaError struct {
	Fault MediaFault
	Err   error // without credentials
}

// Error implements error.
func (e *MediaError) Error() string {
	return ErrMedia.Error() + ": " + string(e.Fault) + ": " + e.Err.Error()
}

// Unwrap makes it an ErrMedia as well.
func (e *MediaError) Unwrap() []error { return []error{ErrMedia, e.Err} }
